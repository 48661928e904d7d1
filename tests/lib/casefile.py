"""Read a case folder and judge the real loader and the tool by it.

case.yaml:

    rule: >             what the loader does, in words
    glibc: ">=2.33"     optional; conditions on the running libc, comma separated
    requires: [intel]   optional; see CONDITIONS
    deadline: 1         optional; seconds
    universe: {...}     see universe.py
    expect:
      start: ok         or fails, or a regular expression of the loader's message
      objects: [/app/prog, /a/libx.so]      the link map at the end, in order
      absent: [/b/libx.so]                  optional: not mapped
      events: [ok, "null", error text]      see below
      bindings:             optional: who provides what
        /a/shim.so alpha: /a/libn.so            in every way that it is used
        /a/shim.so alpha data: /app/prog        as `plt`, `data` or `copy` only
        /a/shim.so beta call: null              `call`: lazily; `load`: while loading
    expect_now: {...}       optional: the same under LD_BIND_NOW=1

`objects` is compared without the driver, libc and the loader unless the list
names one of them.  An event is `ok`, a path that the handle must have, `null`
(no handle and no message), `no-caller`, `crash`, `timeout`, or else a regular
expression that the message of dlerror must match.

Placeholders are replaced in the text of the file: see `placeholders`.
"""

import os
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

import yaml

from system import System
from universe import DRIVER

try:
    Loader = yaml.CSafeLoader
except AttributeError:              # PyYAML without libyaml
    Loader = yaml.SafeLoader


@dataclass
class Case:
    name: str
    data: Dict[str, Any]

    @property
    def universe(self) -> Dict[str, Any]:
        return self.data["universe"]


CONDITIONS = {
    "intel": lambda s: "haswell" == s.platform or "xeon_phi" == s.platform,
    "legacy": lambda s: len(s.legacy) > 1,
    "legacy-bits": lambda s: len(s.legacy_names) >= 4,
    "x86_64": lambda s: os.uname().machine == "x86_64",
    "levels>=1": lambda s: len(s.levels) >= 1,
    "levels>=2": lambda s: len(s.levels) >= 2,
    "levels>=3": lambda s: len(s.levels) >= 3,
    "system-dirs>=2": lambda s: len(s.system_dirs) >= 2,
    "system-dirs>=4": lambda s: len(s.system_dirs) >= 4,
    "level-missing": lambda s: len(s.levels) < len(s.levels_all),
}


def placeholders(system: System) -> Dict[str, str]:
    """@NAME@ in a case file."""
    found = {"INTERP": system.interp, "INTERP_NAME": os.path.basename(system.interp),
             "INTERP_DIR": os.path.dirname(system.interp),
             "LIBC": system.libc, "DRIVER": DRIVER, "LIB": system.lib,
             "PLATFORM": system.platform,
             "LONG": "/." * 2040}           # leaves room for a few bytes below PATH_MAX
    for number, directory in enumerate(system.system_dirs, 1):
        found["SYS%d" % number] = directory
    for number, level in enumerate(system.levels, 1):
        found["LEVEL%d" % number] = level
    for number, suffix in enumerate(system.legacy, 1):
        found["LEGACY%d" % number] = suffix
    return found


def load(folder: str, system: System) -> Case:
    path = os.path.join(folder, "case.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    known = placeholders(system)
    text = re.sub(r"@([A-Z][A-Z_0-9]*)@", lambda m: known.get(m.group(1), m.group(0)), text)
    data = yaml.load(text, Loader=Loader)
    for key in ("rule", "universe", "expect"):
        if key not in data:
            raise ValueError("%s: no %s" % (path, key))
    return Case(os.path.basename(os.path.normpath(folder)), data)


def reason_to_skip(case: Case, system: System) -> Optional[str]:
    for condition in str(case.data.get("glibc", "")).split(","):
        match = re.match(r"\s*(>=|<=|<|>|==)\s*(\d+)\.(\d+)\s*$", condition)
        if match:
            wanted = (int(match.group(2)), int(match.group(3)))
            holds = {">=": system.version >= wanted, "<=": system.version <= wanted,
                     "<": system.version < wanted, ">": system.version > wanted,
                     "==": system.version == wanted}[match.group(1)]
            if not holds:
                return "glibc %d.%d is not %s" % (*system.version, condition.strip())
    for name in case.data.get("requires", []):
        if not CONDITIONS[name](system):
            return "requires %s" % name
    return None


def _judge_event(number: int, wanted: str, outcome: Dict[str, Any], exe: str) -> List[str]:
    result, error = outcome["result"], outcome["error"]
    shown = "event %d: wanted %s, real %s %s" % (number, wanted, result, error or outcome["object"])
    if wanted in ("no-caller", "crash", "timeout", "ok"):
        return [] if result == wanted else [shown]
    if wanted == "null":
        return [] if result == "null" and error is None else [shown]
    if wanted.startswith("/") or wanted.startswith("./"):
        return [] if result == "ok" and (outcome["object"] or exe) == wanted else [shown]
    return [] if result == "null" and error and re.search(wanted, error) else [shown]


def _judge_binding(text: str, wanted: Optional[str], real: Dict[str, Any], exe: str) -> List[str]:
    """`text`: OBJECT SYMBOL [class or when]..."""
    path, symbol, *words = text.split()
    matching = [b for b in real["bindings"] if (b["object"] or exe) == path
                and b["symbol"] == symbol and all(w in (b["class"], b["when"]) for w in words)]
    if not matching:
        return ["binding: there is no %s" % text]
    providers = {exe if b["to"] == "" else b["to"] for b in matching}
    return [] if providers == {wanted} else ["binding: %s: wanted %s, real %s" % (
        text, wanted, ", ".join(str(p) for p in providers))]


def judge_reality(case: Case, real: Dict[str, Any], system: System,
                  key: str = "expect") -> List[str]:
    """How the real loader differs from what the case says under `key`."""
    expect, exe = case.data[key], case.universe["exe"]
    start, wanted = real["start"], str(expect.get("start", "ok"))
    found: List[str] = []
    if wanted == "ok" and not start["ok"]:
        return ["start: wanted ok, real: %s" % start["why"]]
    if wanted != "ok":
        if start["ok"]:
            return ["start: wanted %s, real: ok, maps %s" % (
                wanted, [m["path"] for m in real["maps"]])]
        if wanted not in ("fails", start["how"]) and not re.search(wanted, start["why"]):
            return ["start: wanted %s, real: %s" % (wanted, start["why"])]
        return []
    if "objects" in expect:
        # Before 2.34 the driver's dlopen is libdl's.
        usual = {DRIVER, system.libc, system.interp, os.path.join(os.path.dirname(system.libc), "libdl.so.2")}
        usual -= set(expect["objects"])
        names = [m["path"] or exe for m in real["maps"]]
        names = [n for n in names if n not in usual and not n.startswith("linux-")]
        if names != expect["objects"]:
            found += ["objects: wanted %s" % expect["objects"], "objects: real   %s" % names]
    for name in expect.get("absent", []):
        if any(m["path"] == name for m in real["maps"]):
            found.append("%s is mapped" % name)
    if "message" in expect and not re.search(expect["message"], real["stderr"]):
        found.append("stderr: wanted %s, real: %s" % (expect["message"], real["stderr"]))
    events = [str(e) for e in expect.get("events", [])]
    if len(events) != len(real["events"]):
        found.append("events: %d in the universe, %d expected" % (len(real["events"]), len(events)))
    for number, (wanted, outcome) in enumerate(zip(events, real["events"]), 1):
        found += _judge_event(number, wanted, outcome, exe)
    for text, wanted in expect.get("bindings", {}).items():
        found += _judge_binding(text, wanted, real, exe)
    return found
