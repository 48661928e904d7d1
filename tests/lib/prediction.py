"""Ask ncclwhich about a root, and compare its answer with the real loader's."""

import functools
import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional, Tuple

import reality
from universe import Root, events_of

TIMEOUT = 10.0
PRLIMIT = shutil.which("prlimit")
MEMORY = 1 << 30            # address space; a tool that runs wild must not take the machine along


class Malfunction(Exception):
    """The tool crashed, hung or printed what is not a report."""


def find_tool() -> Optional[str]:
    """NCCLWHICH, else build/ncclwhich of the source tree."""
    given = os.environ.get("NCCLWHICH")
    if given:
        return os.path.abspath(given)
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for candidate in (os.path.join(top, "build", "ncclwhich"), os.path.join(top, "ncclwhich")):
        if os.access(candidate, os.X_OK):
            return candidate
    return None


@functools.lru_cache(maxsize=4)
def _is_sanitized(tool: str) -> bool:
    """Address sanitizer reserves more than any limit would leave."""
    with open(tool, "rb") as file:
        return b"__asan_init" in file.read()


def event_argument(event: Dict[str, Any], exe: str) -> str:
    """The --dlopen argument of one event: [OBJECT:]NAME[,FLAG...]."""
    caller = event["from"]
    text = "" if caller in (None, "", exe) else caller + ":"
    text += event["open"] or ""
    flags = [flag for flag in event["flags"] if flag != "none"]
    return ",".join([text] + flags)


def command(tool: str, root: Root, events: List[Dict[str, Any]]) -> List[str]:
    universe = root.universe
    result = [tool, "tree", "-f", "json", "--root", root.path, "--hwcaps", "auto", "--clean-env",
              "--bindings"]
    for name, value in universe.get("env", {}).items():
        result += ["--env", "%s=%s" % (name, value)]
    if universe.get("cwd", "/") != "/":
        result += ["--cwd", universe["cwd"]]
    for event in events:
        result += ["--dlopen", event_argument(event, universe["exe"])]
    return result + [universe["exe"]]


def predict(tool: str, root: Root, real: Dict[str, Any]) -> Tuple[Dict[str, Any], List[int]]:
    """The tool's first run, and which of the universe's events it was given.

    Left out are events whose caller was not mapped in reality, and whatever
    comes after an event that killed or blocked the process.
    """
    given, events = [], []
    for number, (event, outcome) in enumerate(zip(events_of(root.universe), real["events"])):
        if outcome["result"] == "unreached":
            break
        if outcome["result"] != "no-caller" and event["open"] is not None:
            given.append(number)
            events.append(dict(event, **{"from": outcome["caller"]}))
    arguments = command(tool, root, events)
    who: Dict[str, Any] = {}
    if not _is_sanitized(tool):
        # prlimit(1) rather than preexec_fn: that would make each start much slower.
        arguments = [PRLIMIT, "--as=%d" % MEMORY] + arguments if PRLIMIT else arguments
    if root.universe.get("user") == "nobody":
        who = dict(user=reality.NOBODY, group=reality.NOBODY, extra_groups=[])
    try:
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT, check=False, **who)
    except subprocess.TimeoutExpired:
        raise Malfunction("no answer in %g s" % TIMEOUT) from None
    if done.returncode not in (0, 1):
        raise Malfunction("exit status %d: %s" % (done.returncode,
                                                  done.stderr.decode("utf-8", "replace").strip()[-800:]))
    try:
        run = json.loads(done.stdout)["runs"][0]
        run["start"]["ok"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Malfunction("not a report (%r): %s" % (error, done.stdout[:200])) from None
    if (done.returncode == 0) != bool(run["start"]["ok"]):
        raise Malfunction("exit status %d does not fit start %s" % (done.returncode, run["start"]))
    return run, given


def _name_of(entry: Dict[str, Any], key: str) -> Optional[str]:
    """A path of the report; bytes that are not UTF-8 are under KEY_hex."""
    if key + "_hex" in entry:
        return os.fsdecode(bytes.fromhex(entry[key + "_hex"]))
    return entry.get(key)


def _predicted_maps(run: Dict[str, Any], namespace: int) -> List[Dict[str, Any]]:
    return [o for o in run["objects"] if o.get("namespace", 0) == namespace and o["how"] != "vdso"]


def _real_maps(maps: List[Dict[str, Any]], exe: str) -> List[Dict[str, Any]]:
    result = []
    for entry in maps:
        if entry["path"].startswith("linux-vdso") or entry["path"].startswith("linux-gate"):
            continue
        result.append(dict(entry, path=entry["path"] or exe))
    return result


def compare_maps(label: str, root: Root, real: List[Dict[str, Any]],
                 predicted: List[Dict[str, Any]]) -> List[str]:
    """List, order, names; then the file behind each."""
    ours = [_name_of(o, "path") for o in predicted]
    theirs = [entry["path"] for entry in real]
    if ours != theirs:
        return ["%s: real %s" % (label, theirs), "%s: tool %s" % (label, ours)]
    found = []
    for entry, obj in zip(real, predicted):
        realpath = _name_of(obj, "realpath") or ""
        try:
            st = os.stat(root.path + "/" + realpath.lstrip("/"))
            identity = (st.st_dev, st.st_ino)
        except OSError as error:
            found.append("%s: realpath %r of %r: %s" % (label, realpath, entry["path"],
                                                        error.strerror))
            continue
        if identity != (entry["dev"], entry["ino"]):
            found.append("%s: %r is not the file %r" % (label, entry["path"], realpath))
    return found


Bindings = Dict[Tuple[str, str, str], List[Tuple[Optional[str], str]]]


def real_bindings(real: Dict[str, Any], exe: str) -> Bindings:
    """(object, symbol, class) -> [(provider, when)...], each pair once, sorted.  There is more
    than one pair where an object has several symbols of that name, by version."""
    found: Bindings = {}
    for entry in real["bindings"]:
        to = exe if entry["to"] == "" else entry["to"]
        found.setdefault((entry["object"] or exe, entry["symbol"], entry["class"]), []) \
            .append((to, entry["when"]))
    return _sorted(found)


def predicted_bindings(run: Dict[str, Any], ours: List[str]) -> Bindings:
    """The same of the tool's report, for the objects `ours`."""
    paths = {o["id"]: _name_of(o, "path") for o in run["objects"] if o.get("namespace", 0) == 0}
    found: Bindings = {}
    for entry in run["bindings"]:
        path = paths.get(entry["object"], "object %s" % entry["object"])
        if path in ours:
            to = entry["to"]
            found.setdefault((path, _name_of(entry, "symbol"), entry["class"]), []).append(
                (None if to is None else paths.get(to, "object %s" % to), entry["when"]))
    return _sorted(found)


def _sorted(bindings: Bindings) -> Bindings:
    return {key: sorted(set(pairs), key=lambda pair: (pair[0] or "", pair[1]))
            for key, pairs in bindings.items()}


def show_binding(key: Tuple[str, str, str], pairs: Optional[List]) -> str:
    where = "no such binding" if pairs is None else \
        " and ".join("%s at %s" % (to or "nothing", when) for to, when in pairs)
    return "%s %s (%s) -> %s" % (*key, where)


def compare_bindings(real: Dict[str, Any], run: Dict[str, Any], exe: str) -> List[str]:
    theirs = real_bindings(real, exe)
    ours = predicted_bindings(run, [path or exe for path in real["ours"]])
    found = []
    for key in sorted(set(theirs) | set(ours)):
        if theirs.get(key) != ours.get(key):
            found += ["binding: real " + show_binding(key, theirs.get(key)),
                      "binding: tool " + show_binding(key, ours.get(key))]
    return found


def loader_broke(real: Dict[str, Any]) -> bool:
    """The loader itself crashed, hung or hit an assertion: nothing to agree with."""
    start = real["start"]
    if not start["ok"]:
        return start["how"] in ("signal", "timeout") or "Inconsistency detected" in start["why"]
    if "Inconsistency detected" in real["stderr"]:      # in one of the late calls
        return True
    return any(event["result"] in ("crash", "timeout") for event in real["events"])


def differences(root: Root, real: Dict[str, Any], run: Dict[str, Any],
                given: List[int]) -> List[str]:
    """Everything in which tool and loader disagree; empty when they agree."""
    universe = root.universe
    start = real["start"]
    if bool(run["start"]["ok"]) != start["ok"]:
        return ["start: real %s, tool %s" % (
            "ok" if start["ok"] else "fails (%s: %s)" % (start.get("how"), start.get("why")),
            "ok" if run["start"]["ok"] else "fails (%s)" % run["start"].get("error"))]
    if not start["ok"]:
        return []
    found = []
    events = events_of(universe)
    answers = run.get("events", [])
    if len(answers) != len(given):
        return ["events: %d given, %d answered" % (len(given), len(answers))]
    by_id = {o["id"]: o for o in run["objects"]}
    dead = False
    for number, answer in zip(given, answers):
        outcome = real["events"][number]
        event = dict(events[number], **{"from": outcome["caller"]})
        label = "event %d (%s)" % (number + 1, event_argument(event, universe["exe"]))
        dead = dead or outcome["result"] in ("crash", "timeout")
        works = outcome["result"] == "ok"
        if works != (answer["object"] is not None):
            found.append("%s: real %s%s, tool %s" % (
                label, outcome["result"],
                " (%s)" % outcome["error"] if outcome["error"] else "",
                "ok" if answer["object"] is not None else "null (%s)" % answer.get("error")))
        elif works:
            obj = by_id.get(answer["object"])
            theirs = outcome["object"] or universe["exe"]
            if obj is None:
                found.append("%s: object %r is not in the list" % (label, answer["object"]))
                continue
            if obj["how"] != "vdso" and _name_of(obj, "path") != theirs:
                found.append("%s: real %r, tool %r" % (label, theirs, _name_of(obj, "path")))
            if "namespace" in outcome and obj.get("namespace", 0) != 0:
                found += compare_maps(label + " namespace", root,
                                      _real_maps(outcome["namespace"], universe["exe"]),
                                      _predicted_maps(run, obj["namespace"]))
    if not dead:
        found += compare_maps("maps", root, _real_maps(real["maps"], universe["exe"]),
                              _predicted_maps(run, 0))
    if not dead and not found:      # bindings of another link map say nothing
        if not real["complete"]:
            return ["bindings: the driver died: %s" % real["stderr"]]
        found += compare_bindings(real, run, universe["exe"])
    return found
