#!/usr/bin/env python3
"""Make a mock libnccl of any version that the facts file covers.

    mock.py [--facts FILE] [-o LIBRARY] VERSION     print its source, or compile it

The source is mock.c behind a list of macros with the facts of that version: which
names it exports, how large its communicator is, which of its own functions it
reaches and when.  What two of these copies do to each other in one process is
nowhere written down; the loader and the addresses decide it.
"""

import argparse
import os
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
FACTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "data/targets/nccl.yaml")
MACHINES = {"x86_64": "x86-64", "aarch64": "AArch64"}
PHASES = ("load", "init", "first-collective", "later", "exit")

# mock.c has the text of these; of all others only the name and what kind they are.
WRITTEN = {"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclCommInitAll",
           "ncclCommGetAsyncError", "ncclGetErrorString", "ncclAllReduce", "ncclBroadcast",
           "ncclBcast"}
# What a self-call passes, where it is not the communicator alone.
ARGUMENTS = {"ncclGetVersion": "&answer", "ncclCommGetAsyncError": "comm, &error"}

# Calls of exported names must stay calls of exported names, whatever the compiler's defaults:
# no inlining, no binding inside the file, PLT entries that are bound when they are first used.
COMPILE = ["-std=gnu11", "-O1", "-fPIC", "-fplt", "-fsemantic-interposition", "-fvisibility=default",
           "-Wall", "-Wextra", "-pthread"]
LINK = ["-shared", "-Wl,-soname,libnccl.so.2", "-Wl,-z,lazy"]


def number(version: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@dataclass
class Facts:
    """data/targets/nccl.yaml, for one machine."""
    data: Dict[str, Any]
    machine: str

    @classmethod
    def load(cls, path: str = FACTS, machine: Optional[str] = None) -> "Facts":
        with open(path, encoding="utf-8") as file:
            data = yaml.safe_load(file)
        name = platform.machine()
        return cls(data, machine or MACHINES.get(name, name))

    def versions(self) -> List[str]:
        """Those whose layout is known here, oldest first."""
        return sorted((row["version"] for row in self.data["layouts"]
                       if row["machine"] == self.machine), key=number)

    def layout(self, version: str) -> Tuple[int, int]:
        for row in self.data["layouts"]:
            if row["version"] == version and row["machine"] == self.machine:
                return row["size"], row["end"]
        raise KeyError("no layout of %s on %s" % (version, self.machine))

    def message(self, version: str) -> int:
        for row in self.data["eras"]:
            if number(row["from"]) <= number(version) <= number(row["to"]):
                return row["message"]
        raise KeyError("no era of %s" % version)

    def exports(self, version: str) -> List[Dict[str, Any]]:
        """The symbols of a version: since the one, and where it is said until the other."""
        return [symbol for symbol in self.data["symbols"]
                if number(symbol.get("since", "0")) <= number(version)
                <= number(symbol.get("until", "99999"))]

    def reached(self, version: str) -> List[Dict[str, Any]]:
        return [row for row in self.data["reached"]
                if number(row["from"]) <= number(version) <= number(row["to"])]

    def is_data(self, name: str) -> bool:
        return any(row["symbol"] == name and row["effect"] == "shares-data"
                   for row in self.data["reached"])


def macros(facts: Facts, version: str, like: Optional[str] = None, grow: int = 0) -> str:
    """The facts of a version as macros; with `like`, those of another under this one's name, and a
    communicator that is larger by `grow`."""
    source = like or version
    size, end = facts.layout(source)
    size, end = size + grow, end + grow if end else 0
    kinds: Dict[str, List[str]] = {"CHECKED": [], "UNCHECKED": [], "PLAIN": [], "MAKES": [],
                                   "TABLES": []}
    for symbol in facts.exports(source):
        name, does = symbol["name"], symbol.get("does")
        if facts.is_data(name):
            kinds["TABLES"].append(name)
        elif name in WRITTEN:
            continue
        elif does == "makes-comm":
            kinds["MAKES"].append(name)
        elif does != "uses-comm":
            kinds["PLAIN"].append(name)
        else:
            kinds["UNCHECKED" if symbol.get("unchecked") else "CHECKED"].append(name)
    missing = WRITTEN - {symbol["name"] for symbol in facts.exports(source)}
    if missing:
        raise KeyError("the facts lack %s" % ", ".join(sorted(missing)))

    reached = facts.reached(source)
    exported = {symbol["name"] for symbol in facts.exports(source)}
    for row in reached:
        if row["symbol"] not in exported:
            raise KeyError("%s reaches %s, which it does not export" % (source, row["symbol"]))
    kinds["OWN_TABLES"] = [row["symbol"] for row in reached if row["effect"] == "shares-data"]
    text = ['#define VERSION "%s"' % version,
            "#define CODE %d" % (number(version)[0] * 10000 + number(version)[1] * 100
                                 + number(version)[2]),
            "#define MESSAGE %d" % facts.message(source),
            "#define SIZE %d" % size,
            "#define END %d" % end]
    for kind, names in kinds.items():
        text.append("#define %s(F) %s" % (kind, " ".join("F(%s)" % name for name in names)))
    for phase in PHASES:
        calls = ["CALL(%s(%s))" % (row["symbol"], ARGUMENTS.get(row["symbol"], "comm"))
                 for row in reached if row["phase"] == phase and row["effect"] != "shares-data"]
        text.append("#define CALLS_%s %s" % (phase.upper().replace("-", "_"), " ".join(calls)))
    return "\n".join(text) + "\n"


def source(facts: Facts, version: str, like: Optional[str] = None, grow: int = 0) -> str:
    with open(os.path.join(HERE, "mock.c"), encoding="utf-8") as file:
        return macros(facts, version, like, grow) + file.read()


def compiler() -> List[str]:
    return shlex.split(os.environ.get("CC", "gcc"))


def build(facts: Facts, version: str, target: str, like: Optional[str] = None, grow: int = 0,
          compile_only: bool = False) -> None:
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    subprocess.run(compiler() + COMPILE + (["-c"] if compile_only else LINK)
                   + ["-x", "c", "-", "-o", target], check=True,
                   input=source(facts, version, like, grow).encode())


def main() -> int:
    parser = argparse.ArgumentParser(description="make a mock libnccl")
    parser.add_argument("--facts", default=FACTS)
    parser.add_argument("-o", dest="output", metavar="LIBRARY")
    parser.add_argument("version")
    options = parser.parse_args()
    facts = Facts.load(options.facts)
    if options.version not in facts.versions():
        parser.error("no facts about %s on %s" % (options.version, facts.machine))
    if options.output:
        build(facts, options.version, options.output)
    else:
        sys.stdout.write(source(facts, options.version))
    return 0


if __name__ == "__main__":
    sys.exit(main())
