"""Make a failing universe smaller, and write it down as a case folder."""

import copy
import os
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

import yaml

import prediction
from system import System
from universe import DRIVER

BUDGET = 500                # universes tried for one shrink
SECONDS = 30.0              # and the time for it: hangs are slow to reproduce


def with_callers(universe: Dict[str, Any], real: Dict[str, Any]) -> Dict[str, Any]:
    """The same with "#N" replaced by the caller that it came to mean."""
    universe = copy.deepcopy(universe)
    for event, outcome in zip(universe.get("events", []), real["events"]):
        if str(event.get("from") or "").startswith("#"):
            if outcome.get("caller") is not None:
                event["from"] = outcome["caller"] or None
    return universe


def _removals(node: Any, path: Tuple = ()) -> Iterator[Tuple]:
    """Places of things that may be left out, big ones first."""
    if isinstance(node, dict):
        for key in list(node):
            if key not in ("exe", "program", "files", "open", "key", "path") and node[key] is not None:
                yield path + (key,)
        for key in list(node):
            yield from _removals(node[key], path + (key,))
    elif isinstance(node, list):
        for number in reversed(range(len(node))):
            yield path + (number,)
        for number in range(len(node)):
            yield from _removals(node[number], path + (number,))
    elif isinstance(node, str) and ":" in node:
        for number in range(node.count(":") + 1):
            yield path + ("element", number)


def _without(universe: Dict[str, Any], place: Tuple) -> Any:
    """A copy without the thing at `place`, or None where it makes no sense."""
    result = copy.deepcopy(universe)
    if len(place) > 1 and place[-2] == "element":
        *way, last, _, number = place
    else:
        *way, last = place
        number = None
    node: Any = result
    try:
        for key in way:
            node = node[key]
        if number is not None:
            elements = node[last].split(":")
            del elements[number]
            node[last] = ":".join(elements)
        else:
            if way == ["files"] and last == universe.get("program", universe["exe"]):
                return None
            del node[last]
    except (KeyError, IndexError, TypeError):
        return None
    return result


def _well_formed(universe: Dict[str, Any]) -> bool:
    for spec in universe["files"].values():
        if isinstance(spec, dict):
            for entry in spec.get("dynamic", []):
                if len(entry) != 2:
                    return False
    return all("open" in event for event in universe.get("events", []))


def shrink(universe: Dict[str, Any], differs: Callable[[Dict[str, Any]], bool]) -> Dict[str, Any]:
    """Leave out one thing after another while `differs` holds."""
    if not differs(universe):           # made different by a caller's name only
        return universe
    budget = BUDGET
    end = time.monotonic() + SECONDS
    progress = True
    while progress and budget > 0:
        progress = False
        for place in list(_removals(universe)):
            candidate = _without(universe, place)
            if candidate is None or candidate == universe or not _well_formed(candidate):
                continue
            budget -= 1
            if budget <= 0 or time.monotonic() > end:
                budget = 0
                break
            if differs(candidate):
                universe, progress = candidate, True
    return universe


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def to_yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=100)


def expectation(universe: Dict[str, Any], real: Dict[str, Any], system: System) -> Dict[str, Any]:
    """What the real loader did, in the words of a case file."""
    if not real["start"]["ok"]:
        return {"start": "fails"}
    usual = {DRIVER, system.libc, system.interp}
    objects = [m["path"] or universe["exe"] for m in real["maps"]]
    events: List[str] = []
    for outcome in real["events"]:
        result = outcome["result"]
        if result == "ok":
            result = outcome["object"] or universe["exe"]
            result = result if result.startswith("/") else "ok"
        elif result == "null" and outcome["error"]:
            result = "."            # some message
        events.append(result)
    result = {"start": "ok", "objects": [o for o in objects if o not in usual
                                         and not o.startswith("linux-")], "events": events}
    bindings = {}
    for key, pairs in prediction.real_bindings(real, universe["exe"]).items():
        if len(pairs) == 1 and key[1] != "driver_main":
            bindings[" ".join(key + pairs[0][1:])] = pairs[0][0]
    if bindings:
        result["bindings"] = bindings
    return result


def write_case(folder: str, seed: int, number: int, universe: Dict[str, Any],
               reals: List[Dict[str, Any]], found: List[str], system: System) -> None:
    os.makedirs(folder, exist_ok=True)
    case = {"rule": "found by the oracle: seed %d, universe %d" % (seed, number),
            "universe": universe, "expect": expectation(universe, reals[0], system)}
    if len(reals) > 1:
        case["expect_now"] = expectation(universe, reals[1], system)
    with open(os.path.join(folder, "case.yaml"), "w", encoding="utf-8") as file:
        for text in found:
            file.write("# %s\n" % text.replace("\n", " "))
        file.write(to_yaml(case))
