#!/usr/bin/env python3
"""Compares ncclwhich's crossings and outcomes with the real loader and with measured cells; see check-wheels.sh.

usage: NCCLWHICH=path/to/ncclwhich check-wheels.py --cache DIRECTORY --work DIRECTORY [VERSION...]

Names: A is opened RTLD_NOW|RTLD_GLOBAL and B RTLD_NOW|RTLD_LOCAL after it, for every ordered pair of versions. What the
loader binds from B's file to A's (LD_DEBUG=bindings) has to be what ncclwhich says goes from B to A, name for name.
Exits: the same two opens, then main returns. The process is aborted if and only if ncclwhich says so.
Cells: the tables of crossings-cells.yaml.
"""

import argparse
import collections
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import elfwriter  # noqa: E402
import wheel as wheels  # noqa: E402

BINDING = re.compile(r"binding file (.+) \[\d+\] to (.+) \[\d+\]: \w+ symbol `([^']+)'")
PLATFORMS = ["manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_18", "manylinux_2_17",
             "manylinux2014"]
# What a measured word means in a report: outcome, and the phase where the word fixes one.
MEANING = {"ok": ("none", None), "4": ("error", "first-collective"), "SEGV": ("crash", None),
           "hang": ("hang", "init"), "busy": ("undefined", None), "abort": ("crash", "exit")}
NAMES_CROSS = ("self-call", "data")


class CannotDownload(Exception):
    pass


class Broken(Exception):
    """The comparison itself cannot be made."""


# --- the wheels -----------------------------------------------------------------------------------------------------

def digest(path):
    sha256 = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            sha256.update(block)
    return sha256.hexdigest()


def download(name, version, directory):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
               "--no-deps", "--only-binary=:all:", "--python-version", "3.12"]
    for platform in PLATFORMS:
        command += ["--platform", f"{platform}_x86_64"]
    done = subprocess.run([*command, "--dest", directory, f"{name}=={version}"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise CannotDownload(f"{name} {version}: {done.stderr.strip()}")
    (found,) = [n for n in os.listdir(directory) if n.endswith(".whl")]
    return os.path.join(directory, found)


def find_unpacked(cache, name, version):
    """Where another check keeps the same wheel, unpacked."""
    stem = f"{name.replace('-', '_')}-{version}-"
    parent = os.path.join(cache, "unpacked")
    for directory in sorted(os.listdir(parent)) if os.path.isdir(parent) else []:
        path = os.path.join(parent, directory, "nvidia/nccl/lib/libnccl.so.2")
        if directory.startswith(stem) and directory.endswith("x86_64") and os.path.isfile(path):
            return path
    return None


def fetch(cache, work, row):
    """The path of the version's libnccl.so.2 in the cache; nothing else of the wheel is kept."""
    name, version = row["name"], row["version"]
    kept = os.path.join(cache, "nccl", version, "libnccl.so.2")
    if not os.path.exists(kept):
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        scratch = os.path.join(work, "wheel")
        os.mkdir(scratch)
        source = find_unpacked(cache, name, version)
        if source:
            os.link(source, os.path.join(scratch, "file"))
        else:
            print(f"downloading {name} {version}", flush=True)
            wheels.unpack(download(name, version, scratch), os.path.join(scratch, "files"))
            os.rename(os.path.join(scratch, "files/nvidia/nccl/lib/libnccl.so.2"), os.path.join(scratch, "file"))
        if digest(os.path.join(scratch, "file")) != row["sha256"]:
            raise Broken(f"{name} {version}: libnccl.so.2 is not the file that was measured")
        os.rename(os.path.join(scratch, "file"), kept)
        shutil.rmtree(scratch)
    return kept


# --- the real loader ------------------------------------------------------------------------------------------------

def really_open(driver, ending, opens, environment=None):
    """Opens [(flags, file)], ends; the finished process."""
    return subprocess.run([driver, ending, *(f"{flags}:{path}" for flags, path in opens)], env=environment or {},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd="/",
                          timeout=120, check=False)


def really_bound(driver, a, b):
    """Names that the loader binds from B's file to A's."""
    done = really_open(driver, "_exit", [("now,global", a), ("now,local", b)],
                       {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1"})
    if done.returncode != 0:
        raise Broken(f"opening {a}, then {b}: status {done.returncode}: {done.stderr[-300:]}")
    bound, seen = set(), 0
    for line in done.stderr.splitlines():
        match = BINDING.search(line)
        if match:
            seen += 1
            if (match[1], match[2]) == (b, a):
                bound.add(match[3])
    if not seen:
        raise Broken("the loader prints no bindings under LD_DEBUG=bindings")
    return bound


def really_ends(driver, opens):
    """'ok' or 'abort': what becomes of a process that opens these and returns from main."""
    status = really_open(driver, "return", opens).returncode
    if status == 0:
        return "ok"
    if status == -signal.SIGABRT:
        return "abort"
    raise Broken(f"opening {opens} and returning: status {status}")


# --- ncclwhich ------------------------------------------------------------------------------------------------------

def ask(driver, arguments, environment=()):
    """The only run of the report."""
    command = [os.environ["NCCLWHICH"], "check", "-f", "json", "--clean-env"]
    for setting in environment:
        command += ["--env", setting]
    command += [driver, *arguments]
    done = subprocess.run(command, env={"LC_ALL": "C"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          cwd="/", timeout=120, check=False)
    if done.returncode not in (0, 1, 3):
        raise Broken(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    (run,) = json.loads(done.stdout)["runs"]
    return run


def instance_at(run, path):
    found = [i["id"] for i in run.get("instances", []) if i["path"] == path]
    if len(found) != 1:
        raise Broken(f"ncclwhich reports {len(found)} copies at {path}")
    return found[0]


def crossings_between(run, b, a):
    ends = (instance_at(run, b), instance_at(run, a))
    return [c for c in run.get("crossings", []) if (c["from"], c["to"]) == ends]


def said(run):
    outcome = run.get("outcome")
    if not outcome:
        return "nothing (the report has no outcome)"
    return f"{outcome['outcome']} ({outcome.get('phase') or 'no phase'}: {outcome.get('effect') or '-'})"


def judge(run, measured):
    """'right', 'undefined' (right because luck was measured, too) or 'miss'."""
    outcome = run.get("outcome") or {}
    word = measured.rstrip("*")
    if outcome.get("outcome") == "undefined":
        return "undefined" if measured.endswith("*") else "miss"
    wanted, phase = MEANING[word]
    if outcome.get("outcome") != wanted or (phase and outcome.get("phase") != phase):
        return "miss"
    return "right"


# --- tables ---------------------------------------------------------------------------------------------------------

def read_cells(text, versions):
    """{(A, B): word} of a table."""
    if text == "all ok":
        return {(a, b): "ok" for a in versions for b in versions}
    head, *rows = [line.split() for line in text.splitlines()]
    columns = head[3:]
    cells = {}
    for version, *words in rows:
        if len(words) != len(columns):
            raise Broken(f"crossings-cells.yaml: row {version} has {len(words)} cells, not {len(columns)}")
        for column, word in zip(columns, words):
            if word.rstrip("*") not in MEANING:
                raise Broken(f"crossings-cells.yaml: no such word: {word}")
            cells[version, column] = word
    return cells


def write_shim(path, file, symbols):
    """A library that has the functions undefined and NEEDs the file by its path: no other file with the same SONAME
    can satisfy that, and what it refers to is found in its own scope when nothing global has it."""
    dynamic = [("SONAME", os.path.basename(path)), ("NEEDED", file)]
    elf = elfwriter.Elf(dynamic=dynamic,
                        symbols=[elfwriter.Symbol(s, defined=False) for s in symbols],
                        relocs=[elfwriter.Reloc("JUMP_SLOT", s) for s in symbols])
    with open(path, "wb") as out:
        out.write(elf.build())


def write_opener(path, symbols):
    """A library that could ask dlsym() for the functions, of whatever it opens."""
    elf = elfwriter.Elf(dynamic=[("SONAME", os.path.basename(path)), ("NEEDED", "libc.so.6")],
                        symbols=[elfwriter.Symbol(s, defined=False) for s in ("dlopen", "dlsym")],
                        relocs=[elfwriter.Reloc("JUMP_SLOT", s) for s in ("dlopen", "dlsym")],
                        rodata=[s.encode() for s in symbols])
    with open(path, "wb") as out:
        out.write(elf.build())


def arguments_of(table, work, a, b):
    """The events of a cell, its libraries written."""
    names = {"A": a, "B": b}
    for name, shim in table.get("linked", {}).items():
        names[name] = os.path.join(work, f"{name}.so")
        write_shim(names[name], names[shim["file"]], shim["symbols"])
    for name, shim in table.get("opened", {}).items():
        names[name] = os.path.join(work, f"{name}.so")
        write_opener(names[name], shim["symbols"])
    return [word.format(**names) for word in table["events"]]


def check_shims(table, work, driver, a, b):
    """Do the linked libraries really reach the files they are meant to reach?"""
    arguments = arguments_of(table, work, a, b)
    done = really_open(driver, "_exit", [("now,local", path) for path in arguments],
                       {"LD_DEBUG": "bindings", "LD_BIND_NOW": "1"})
    seen = set(BINDING.findall(done.stderr))
    for name, shim in table["linked"].items():
        for symbol in shim["symbols"]:
            wanted = (os.path.join(work, f"{name}.so"), {"A": a, "B": b}[shim["file"]], symbol)
            if wanted not in seen:
                raise Broken(f"the real loader does not bind {symbol} as the table needs it: {done.stderr[-300:]}")
    if any((f, t) in ((a, b), (b, a)) for f, t, _ in seen):
        raise Broken(f"{a} and {b}: the real loader crosses between copies that are both local")


# --- the comparison -------------------------------------------------------------------------------------------------

class Tally:
    def __init__(self):
        self.pairs = self.differing = self.names = self.cells = self.misses = self.undefined = 0
        self.by_table = collections.OrderedDict()

    def cell(self, title, result, line):
        cells, misses, undefined = self.by_table.get(title, (0, 0, 0))
        self.by_table[title] = (cells + 1, misses + (result == "miss"), undefined + (result == "undefined"))
        self.cells += 1
        self.misses += result == "miss"
        self.undefined += result == "undefined"
        if result == "miss":
            print(f"miss: {line}", flush=True)


def compare_names(tally, driver, pair, a, b, run):
    real = really_bound(driver, a, b)
    ours = {c["symbol"] for c in crossings_between(run, b, a) if c["kind"] in NAMES_CROSS}
    label = "A {}, B {}".format(*pair)
    for name in sorted(real - ours):
        print(f"{label}: the loader binds {name} from B to A, ncclwhich does not")
    for name in sorted(ours - real):
        print(f"{label}: ncclwhich says {name} goes from B to A, the loader does not")
    tally.pairs += 1
    tally.names += len(real)
    tally.differing += len(real ^ ours)


def compare_exit(tally, driver, pair, a, b, flags, run):
    """Nothing is called here, so only what crosses at exit counts; on the pairs that are aborted, the outcome too."""
    opens = [("now," + flags[0], a), ("now," + flags[1], b)]
    real = really_ends(driver, opens)
    crossing = [c for c in run.get("crossings", []) if c.get("phase") == "exit" and c.get("outcome") == "crash"]
    if real == "abort":
        result = judge(run, "abort") if crossing else "miss"
    else:
        result = "miss" if crossing else "right"
    title = "nothing asked, main returns"
    tally.cell(title, result, f"{title}: A {pair[0]} {flags[0]}, B {pair[1]} {flags[1]}: really {real}; ncclwhich has "
               f"{len(crossing)} crossings that crash at exit and says {said(run)}")


def opens_as_events(a, b, flags):
    return ["--dlopen", f"{a},now,{flags[0]}", "--dlopen", f"{b},now,{flags[1]}"]


def compare_pair(tally, tables, driver, work, pair, a, b):
    flags = ("global", "local")
    run = ask(driver, opens_as_events(a, b, flags), ["LD_BIND_NOW=1"])
    compare_names(tally, driver, pair, a, b, run)
    compare_exit(tally, driver, pair, a, b, flags, run)
    if pair[0] == pair[1]:
        for flags in (("local", "local"), ("global", "local,deepbind")):
            compare_exit(tally, driver, pair, a, b, flags, ask(driver, opens_as_events(a, b, flags)))
    for table, cells in tables:
        if pair not in cells:
            continue
        run = ask(driver, arguments_of(table, work, a, b))
        for path in (a, b):
            instance_at(run, path)
        tally.cell(table["title"], judge(run, cells[pair]),
                   f"{table['title']}: A {pair[0]}, B {pair[1]}: measured {cells[pair]}; ncclwhich says {said(run)}")


def compare_row(tally, tables, driver, work, files, version):
    """All pairs whose A is VERSION."""
    a = files[version]
    before = (tally.pairs, tally.differing, tally.cells, tally.misses)
    for other, b in files.items():
        if other == version:
            b = os.path.join(work, "copy", "libnccl.so.2")
            os.makedirs(os.path.dirname(b), exist_ok=True)
            shutil.copyfile(a, b)
        if version == next(iter(files)):
            for table, _ in tables:
                if "linked" in table:
                    check_shims(table, work, driver, a, b)
        compare_pair(tally, tables, driver, work, (version, other), a, b)
        if other == version:
            os.unlink(b)
    now = (tally.pairs, tally.differing, tally.cells, tally.misses)
    print("A {}: {} pairs, {} differing names; {} cells, {} misses".format(
        version, *(n - o for n, o in zip(now, before))), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Compare ncclwhich with the real loader and with measured cells.")
    parser.add_argument("version", nargs="*", help="only pairs of these versions")
    parser.add_argument("--cache", required=True)
    parser.add_argument("--work", required=True)
    options = parser.parse_args()
    with open(os.path.join(HERE, "crossings-cells.yaml"), encoding="utf-8") as file:
        data = yaml.safe_load(file)
    rows = [row for row in data["wheels"] if not options.version or row["version"] in options.version]
    unknown = set(options.version) - {row["version"] for row in rows}
    if unknown:
        print(f"check-wheels.py: no such version here: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    tally = Tally()
    try:
        files = {row["version"]: fetch(options.cache, options.work, row) for row in rows}
        measured = data["measured"]
        tables = [(table, read_cells(table["cells"], measured)) for table in data["tables"]]
        driver = os.path.join(options.work, "opener")
        for version in files:
            compare_row(tally, tables, driver, options.work, files, version)
    except CannotDownload as error:
        print(f"check-wheels.py: not in {options.cache} and cannot be downloaded: {error}; nothing was checked",
              file=sys.stderr)
        return 77
    except (Broken, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        print(f"check-wheels.py: {error}" if isinstance(error, Broken) else f"check-wheels.py: {error!r}",
              file=sys.stderr)
        return 2
    for title, (cells, misses, undefined) in tally.by_table.items():
        print(f"{title}: {cells} cells, {misses} misses ({undefined} judged as undefined)")
    print(f"{tally.names} names were bound from one copy to the other")
    print(f"{tally.pairs} pairs, {tally.differing} differing names")
    print(f"{tally.cells} cells, {tally.misses} misses ({tally.undefined} judged as undefined)")
    return 1 if tally.differing or tally.misses else 0


if __name__ == "__main__":
    sys.exit(main())
