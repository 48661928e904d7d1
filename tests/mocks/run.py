#!/usr/bin/env python3
"""Run two mock copies of libnccl in one process and compare with what ncclwhich predicts.

    run.py [--quick] [--tap] [--real-only] [--show VARIANT] [--only VARIANT] [-j N] [--keep]

A *cell* is a variant and two versions: A, opened first (but for the late variants),
and B.  Each cell is run in the real loader, one process a run, and asked of the tool:

    global          A is global, everything is asked of B
    needed, preload the same, A being in DT_NEEDED of the program, or in LD_PRELOAD
    static          the same, A being linked into the program, which exports it
    now, deepbind   the same as global, B opened with that flag
    late, late-now  B is opened first, lazily or not, and A becomes global after it
    promoted        A is local, then B is opened, then A becomes global
    local           both local, everything is asked of B
    id              both local, the id is minted in A, the rest in B
    comm            both local, the communicator is made in B and used in A
    both            both local, the communicator is made in B, id and use are A's
    linked          A is global, everything is asked by a shim that is linked with B
    unlisted-V      as variant V, but one version is not in the facts: the tool must say unknown

Where all pairs of a variant are run, `ncclwhich rules split-crossed` must show the same outcomes in
its tables.

Compared are the outcome (and the phase where it happens) and the names that the loader
bound from one copy to another: those that a lazily bound run really used, and, with
LD_BIND_NOW, all of them.  Last line: `N cells, M disagree`; exit status 0, 1 when
some disagree, 2 for a wrong call, 77 when nothing can be run here.  The tool is
$NCCLWHICH, else build/ncclwhich.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Set, Tuple

sys.dont_write_bytecode = True       # the source tree may be read-only
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import mock             # noqa: E402
from mock import Facts, compiler, number        # noqa: E402

DEADLINE = 0.7          # after which a process that only waits is said to hang
PATIENCE = 20.0         # ... and any other is given up
AT_ONCE = 16            # most of these only wait

# What the representative cells use: each era, each kind of check, both special self-calls, the two
# pairs of one layout.
SOME = ["2.18.1", "2.20.5", "2.22.3", "2.27.3", "2.27.7", "2.29.7", "2.30.3", "2.30.4", "2.32.3"]
QUICK = ["2.20.5", "2.22.3", "2.27.7", "2.28.9", "2.29.7", "2.30.3", "2.30.7", "2.32.3"]
ALL_PAIRS = ("global", "id", "comm")
SOME_PAIRS = ("needed", "preload", "static", "now", "deepbind", "late", "late-now", "promoted", "local",
              "both", "linked")
# Like real versions, but with a name and a size of their own: between two that are listed, and
# after all of them.
UNLISTED = {"2.18.6": ("2.18.3", 256), "2.99.1": ("2.32.3", 4096)}

PHASES = ("load", "init", "first-collective", "later", "exit")
PHASE_OF_STEP = {"open": "load", "mint": "init", "make": "init", "use": "first-collective",
                 "exit": "exit"}
ASKED = {"mint": "ncclGetUniqueId", "make": "ncclCommInitRank", "use": "ncclAllReduce"}
LETTERS = {"now": "n", "lazy": "l", "global": "g", "local": "", "deepbind": "d",
           "noload": "o"}
PLACEHOLDER = "/placeholder-of-a-path" + "/x" * 240


class Unable(Exception):
    """Nothing can be run here; the text says why."""


class Malfunction(Exception):
    """The tool or the driver did not do its job."""


@dataclass(frozen=True)
class Cell:
    variant: str
    a: str
    b: str

    def __str__(self) -> str:
        return "%s A=%s B=%s" % (self.variant, self.a, self.b)


@dataclass
class Seen:
    """What a process did, or is predicted to do."""
    outcome: str                        # none error crash hang undefined (unknown)
    phase: Optional[str]                # where; None with outcome none
    crossed: Set[str] = field(default_factory=set)      # names bound from B to A
    bindings: Set[Tuple[str, str, str]] = field(default_factory=set)    # from, name, to
    effect: str = ""

    def what(self) -> str:
        return self.outcome if self.phase is None else "%s in %s" % (self.outcome, self.phase)


# ---- the files


class Files:
    """Everything that is compiled, once, in one folder."""

    def __init__(self, folder: str, facts: Facts, versions: List[str], jobs: int) -> None:
        self.folder, self.facts = folder, facts
        self.templates: Dict[str, bytes] = {}
        if shutil.which(compiler()[0]) is None:
            raise Unable("no compiler: %s" % compiler()[0])
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.make_copies, versions))
        self.make_stub()
        self.driver = self.compile("driver", "driver.c", [])
        self.template("driver-needed", "driver.c", [])
        for kind in ("mint", "make-use", "mint-make", "use", "mint-use", "make", "mint-make-use"):
            self.template(kind, "shim.c", ["-shared", "-fPIC"]
                          + ["-D" + part.upper() for part in kind.split("-")])
        # All of them now: a program must not be open for writing in a child that another thread
        # is just starting, or it cannot be executed.
        for version in versions:
            if version in SOME + QUICK:
                self.make_static(version)
            for kind in ("driver-needed", "mint", "use", "mint-use"):
                self.link(kind, "A", version)
            for kind in ("make-use", "mint-make", "make", "mint-make-use"):
                self.link(kind, "B", version)

    def make_copies(self, version: str) -> None:
        like, grow = UNLISTED.get(version, (None, 0))
        mock.build(self.facts, version, self.copy("A", version), like, grow)
        target = self.copy("B", version)
        os.makedirs(os.path.dirname(target))
        shutil.copyfile(self.copy("A", version), target)

    def make_static(self, version: str) -> None:
        """A driver with the mock in it, as an archive linked whole would be."""
        target = os.path.join(self.folder, "A", version, "driver-static")
        mock.build(self.facts, version, target + ".o", compile_only=True)
        subprocess.run(compiler() + ["-D_GNU_SOURCE", "-O1", os.path.join(HERE, "driver.c"),
                                     target + ".o", "-o", target, "-rdynamic", "-pthread", "-ldl"],
                       check=True)

    def copy(self, which: str, version: str) -> str:
        return os.path.join(self.folder, which, version, "libnccl.so.2")

    def compile(self, name: str, source: str, flags: List[str], link: List[str] = []) -> str:
        target = os.path.join(self.folder, name)
        subprocess.run(compiler() + ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra"] + flags
                       + ["-o", target, os.path.join(HERE, source)] + link + ["-ldl"], check=True)
        return target

    def make_stub(self) -> None:
        """An empty library whose SONAME, and so the NEEDED of who links it, is the placeholder."""
        subprocess.run(compiler() + ["-shared", "-nostdlib", "-Wl,-soname," + PLACEHOLDER, "-x", "c",
                                     os.devnull, "-o", os.path.join(self.folder, "stub.so")], check=True)

    def template(self, name: str, source: str, flags: List[str]) -> None:
        path = self.compile(name + ".template", source, flags, [
            "-Wl,--no-as-needed", os.path.join(self.folder, "stub.so"), "-Wl,--allow-shlib-undefined"])
        with open(path, "rb") as file:
            self.templates[name] = file.read()
        if self.templates[name].count(PLACEHOLDER.encode() + b"\0") != 1:
            raise Unable("the placeholder is not once in %s" % path)

    def linked(self, kind: str, which: str, version: str) -> str:
        """The shim or driver `kind` that has this copy as its DT_NEEDED."""
        return os.path.join(self.folder, which, version, kind + ("" if "driver" in kind else ".so"))

    def link(self, kind: str, which: str, version: str) -> None:
        needed, target = self.copy(which, version).encode(), self.linked(kind, which, version)
        if len(needed) > len(PLACEHOLDER):
            raise Unable("the scratch path is too long")
        with open(target, "wb") as file:
            file.write(self.templates[kind].replace(PLACEHOLDER.encode(),
                                                    needed.ljust(len(PLACEHOLDER), b"\0")))
        os.chmod(target, 0o755)


@dataclass
class Plan:
    """A cell in the words of the driver and in those of the tool."""
    program: str
    steps: List[str]
    arguments: List[str]
    a: str
    b: str
    bound_at_open: bool = False         # all of B
    environment: Dict[str, str] = field(default_factory=dict)


def plan_of(cell: Cell, files: Files) -> Plan:
    a, b = files.copy("A", cell.a), files.copy("B", cell.b)
    variant = cell.variant.replace("unlisted-", "")
    # Who asks of which copy, where it is shims that ask.
    shims = {"id": [("A", "mint"), ("B", "make-use")],
             "comm": [("B", "mint-make"), ("A", "use")],
             "both": [("A", "mint-use"), ("B", "make")],
             "linked": [("B", "mint-make-use")]}.get(variant)
    if shims:
        paths = [files.linked(kind, which, cell.a if which == "A" else cell.b)
                 for which, kind in shims]
        steps, arguments = [], []
        if variant == "linked":
            steps, arguments = ["open", "ng", a], ["--dlopen", a + ",now,global"]
        steps += [word for path in paths for word in ("open", "n", path)]
        for part in ASKED:
            for index, (_, kind) in enumerate(shims, len(arguments) // 2):
                if part in kind.split("-"):
                    steps += [part, str(index), "shim_" + part]
        return Plan(files.driver, steps, arguments + [files.driver] + paths, a, b, True)
    first, last = ["now", "global"], ["lazy", "local"]
    program, environment = files.driver, {}
    if variant in ("local", "promoted"):
        first = ["now", "local"]
    elif variant in ("now", "late-now"):
        last = ["now", "local"]
    elif variant == "deepbind":
        last.append("deepbind")
    opens = [(a, first), (b, last)]
    if variant.startswith("late"):
        opens.reverse()
    elif variant == "promoted":
        opens.append((a, ["noload", "now", "global"]))
    elif variant == "preload":
        opens, environment = opens[1:], {"LD_PRELOAD": a}
    elif variant == "needed":
        opens, program = opens[1:], files.linked("driver-needed", "A", cell.a)
    elif variant == "static":
        a = program = files.linked("driver-static", "A", cell.a)
        opens = opens[1:]
    steps = [word for path, flags in opens
             for word in ("open", "".join(LETTERS[flag] for flag in flags), path)]
    index = [path for path, _ in opens].index(b)
    for step, name in ASKED.items():
        steps += [step, str(index), name]
    arguments = [word for path, flags in opens for word in ("--dlopen", ",".join([path] + flags))]
    return Plan(program, steps, arguments + [program], a, b, "now" in last, environment)


# ---- reality

BINDING = re.compile(r"binding file (.+) \[0\] to (.+) \[0\]: normal symbol [`']([^'`]+)'")


def only_waits(pid: int) -> bool:
    """Is every thread of the process asleep?  A slow machine is not a hang."""
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/stat" % (pid, task), encoding="latin-1") as file:
                if file.read().rpartition(")")[2].split()[0] not in ("S", "Z"):
                    return False
    except OSError:
        return False
    return True


def run_process(plan: Plan, bind_now: bool) -> Seen:
    environment = {"LD_DEBUG": "bindings", **plan.environment}
    if bind_now:
        environment["LD_BIND_NOW"] = "1"
    process = subprocess.Popen([plan.program] + plan.steps, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    start, hung = time.monotonic(), False
    while True:
        try:
            out, errors = process.communicate(timeout=DEADLINE)
            break
        except subprocess.TimeoutExpired:
            if only_waits(process.pid):
                hung = True
            elif time.monotonic() - start < PATIENCE:
                continue
            process.kill()
            out, errors = process.communicate()
            if not hung:
                raise Malfunction("the process is busy for %g s" % PATIENCE)
            break
    seen = judge(out.decode("latin-1").split("\n"), process.returncode, hung,
                 errors.decode("latin-1"))
    for asker, answerer, name in BINDING.findall(errors.decode("latin-1")):
        if name.startswith("nccl"):
            seen.bindings.add((asker, name, answerer))
            if (asker, answerer) == (plan.b, plan.a):
                seen.crossed.add(name)
    return seen


def judge(lines: List[str], status: int, hung: bool, errors: str) -> Seen:
    """The outcome, from the lines of the driver and how it ended."""
    step, result = "open", 0
    for line in lines:
        words = line.split()
        if len(words) == 3:
            step, result = words[1], int(words[2])
            if words[0] == "end" and result != 0:
                return Seen("error" if result == 4 else "undefined", PHASE_OF_STEP[step],
                            effect="result %d" % result)
    if hung:
        return Seen("hang", PHASE_OF_STEP[step])
    if status < 0:
        return Seen("crash", PHASE_OF_STEP[step], effect="signal %d" % -status)
    if status != 0 or step != "exit":
        raise Malfunction("the driver ended with %d after %s: %s"
                          % (status, step, errors.strip().rpartition("\n")[2]))
    return Seen("none", None)


# ---- the prediction


def ask_tool(tool: str, plan: Plan, bind_now: bool) -> Seen:
    command = [tool, "check", "-f", "json", "--clean-env"]
    if bind_now:
        command += ["--env", "LD_BIND_NOW=1"]
    for name, value in plan.environment.items():
        command += ["--env", "%s=%s" % (name, value)]
    command += plan.arguments
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)
    try:
        run = json.loads(done.stdout)["runs"][0]
        return read_prediction(run, plan)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Malfunction("%s: exit %d, %s: %s\n%s" % (
            os.path.basename(tool), done.returncode, type(error).__name__, error,
            done.stderr.decode("utf-8", "replace").strip())) from error


def read_prediction(run: Dict[str, Any], plan: Plan) -> Seen:
    said = run["outcome"]
    seen = Seen("none", None) if said is None else Seen(said["outcome"], said["phase"],
                                                        effect=said.get("effect") or "")
    if seen.outcome == "none":
        seen.phase = None
    copies = {instance["id"]: instance["path"] for instance in run["instances"]}
    objects = {thing["id"]: thing["path"] for thing in run["objects"]}
    for binding in run["bindings"]:
        if binding["to"] is not None:
            seen.bindings.add((objects[binding["object"]], binding["symbol"], objects[binding["to"]]))
    # What a lazily bound run gets to: data at once, calls up to the phase where it stops.  A copy
    # that is bound when it is opened has everything at once.
    last = PHASES.index(seen.phase or "exit")
    for crossing in run["crossings"]:
        if crossing["kind"] in ("self-call", "data"):
            seen.bindings.add((copies[crossing["from"]], crossing["symbol"], copies[crossing["to"]]))
        if (copies[crossing["from"]], copies[crossing["to"]]) != (plan.b, plan.a):
            continue
        if crossing["kind"] == "data" or crossing["kind"] == "self-call" and plan.bound_at_open or (
                crossing["kind"] == "self-call" and crossing["phase"] != "later"
                and PHASES.index(crossing["phase"]) <= last):
            seen.crossed.add(crossing["symbol"])
    return seen


# ---- the comparison


def names(items: Set) -> str:
    return ", ".join(sorted("%s: %s -> %s" % (item[1], short(item[0]), short(item[2]))
                            if isinstance(item, tuple) else item for item in items)) or "nothing"


def short(path: str) -> str:
    return "/".join(path.split("/")[-3:])


def differences(cell: Cell, plan: Plan, bind_now: bool, real: Seen, said: Seen) -> List[str]:
    how = "LD_BIND_NOW: " if bind_now else ""
    if cell.variant.startswith("unlisted-"):
        # Only the eras are given as ranges, and 2.18.6 lies in one.
        known = cell.variant == "unlisted-id" and "2.18.6" in (cell.a, cell.b)
        wanted = real.what() if known else "unknown"
        return [] if wanted == said.what().split()[0] or wanted == said.what() else [
            "%swanted %s, predicted %s (%s)" % (how, wanted, said.what(), said.effect)]
    found = []
    if (real.outcome, real.phase) != (said.outcome, said.phase):
        found.append("%sreality %s%s, prediction %s%s" % (
            how, real.what(), " (%s)" % real.effect if real.effect else "",
            said.what(), " (%s)" % said.effect if said.effect else ""))
    if not bind_now and real.crossed != said.crossed:
        found.append("lazy run bound %s; predicted %s" % (names(real.crossed - said.crossed),
                                                          names(said.crossed - real.crossed)))
    if bind_now:
        # Bindings of an object to itself are the rest, and the driver's own dlsym calls look like them.
        paths = {plan.a, plan.b} | {word for word in plan.steps if word.startswith("/")}
        ours = {item for item in real.bindings if item[0] in paths and item[0] != item[2]}
        tools = {item for item in said.bindings if item[0] in paths and item[0] != item[2]}
        if ours != tools:
            found.append("LD_BIND_NOW bound, not predicted: %s; predicted, not bound: %s"
                         % (names(ours - tools), names(tools - ours)))
    return found


def run_cell(job: Tuple[Cell, Files, Optional[str]]) -> Tuple[Cell, Optional[Seen], List[str]]:
    cell, files, tool = job
    real = None
    try:
        plan = plan_of(cell, files)
        found: List[str] = []
        for bind_now in (False, True):
            seen = run_process(plan, bind_now)
            real = real or seen
            if tool:
                found += differences(cell, plan, bind_now, seen, ask_tool(tool, plan, bind_now))
    except (Malfunction, OSError, subprocess.TimeoutExpired) as error:
        return cell, real, [str(error)]
    return cell, real, found


# ---- the tables that the tool prints of all versions

TITLES = {"Self-calls": "global", "An id": "id", "A communicator": "comm"}


def word_of(seen: Seen) -> str:
    if seen.phase == "exit":
        return "exit"
    return {"none": ".", "error": "4", "undefined": "?"}.get(seen.outcome, seen.outcome)


def read_tables(text: str) -> Dict[Cell, str]:
    """The cells of the printed tables."""
    cells: Dict[Cell, str] = {}
    variant, columns = None, []
    for line in text.split("\n"):
        words = line.split()
        title = line.partition(":")[0]
        if title in TITLES:
            variant = TITLES[title]
        elif line.startswith("A \\ B"):
            columns = words[3:]
        elif variant and words and len(words) == len(columns) + 1 and words[0] in columns:
            for column, word in zip(columns, words[1:]):
                cells[Cell(variant, words[0], column)] = word
    return cells


def compare_tables(tool: str, results: Dict[Cell, Optional[Seen]]) -> Dict[Cell, List[str]]:
    """Every cell that was run, and what is wrong with the printed one, if anything."""
    done = subprocess.run([tool, "rules", "split-crossed"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    printed = read_tables(done.stdout.decode("utf-8", "replace"))
    compared = {}
    for cell, seen in results.items():
        if cell.variant in ALL_PAIRS and seen is not None:
            said, real = printed.get(cell, "nothing"), word_of(seen)
            compared[Cell("table", "%s %s" % (cell.variant, cell.a), cell.b)] = [] if said == real else [
                "reality %s, the table says %s" % (real, said)]
    return compared


# ---- the whole


def cells_of(options: argparse.Namespace, versions: List[str]) -> List[Cell]:
    def pairs(variant: str, among: List[str]) -> List[Cell]:
        among = [version for version in among if version in versions]
        return [Cell(variant, a, b) for a in among for b in among]

    cells: List[Cell] = []
    if options.quick:
        for variant in ALL_PAIRS:
            cells += pairs(variant, QUICK)
        cells += [Cell(variant, version, version) for variant in SOME_PAIRS for version in QUICK
                  if version in versions]
    else:
        for variant in ALL_PAIRS:
            cells += pairs(variant, versions)
        for variant in SOME_PAIRS:
            cells += pairs(variant, SOME)
    if "2.30.7" in versions:
        for version in UNLISTED:
            if UNLISTED[version][0] in versions:
                for variant in ALL_PAIRS:
                    cells += [Cell("unlisted-" + variant, version, "2.30.7"),
                              Cell("unlisted-" + variant, "2.30.7", version)]
    return [cell for cell in cells if not options.only or cell.variant == options.only]


def show(variant: str, results: Dict[Cell, Optional[Seen]]) -> None:
    """The real outcomes of a variant as a table."""
    rows = sorted({cell.a for cell in results if cell.variant == variant}, key=number, reverse=True)
    print("A \\ B  " + " ".join("%6s" % b for b in rows))
    for a in rows:
        line = "%-6s " % a
        for b in rows:
            seen = results.get(Cell(variant, a, b))
            line += " %6s" % ("-" if seen is None else word_of(seen))
        print(line)


def main() -> int:
    parser = argparse.ArgumentParser(description="mock copies of libnccl against the prediction")
    parser.add_argument("--quick", action="store_true", help="a few versions only")
    parser.add_argument("--tap", action="store_true", help="one TAP line a variant")
    parser.add_argument("--real-only", action="store_true", help="do not ask the tool")
    parser.add_argument("--only", metavar="VARIANT")
    parser.add_argument("--show", metavar="VARIANT", help="print the real outcomes as a table")
    parser.add_argument("--facts", default=mock.FACTS)
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="processes that work at once")
    parser.add_argument("--lines", type=int, default=20, metavar="N",
                        help="at most so many disagreements of a variant are printed")
    parser.add_argument("--keep", action="store_true", help="leave the files")
    options = parser.parse_args()
    options.only = options.only or options.show
    tool = None
    if not options.real_only:
        top = os.path.dirname(os.path.dirname(HERE))
        tool = os.path.abspath(os.environ.get("NCCLWHICH") or os.path.join(top, "build/ncclwhich"))
        if not os.access(tool, os.X_OK):
            parser.error("no tool: %s" % tool)
    facts = Facts.load(options.facts)
    cells = cells_of(options, facts.versions())
    if not cells and options.only:
        parser.error("no such variant: %s" % options.only)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = tempfile.mkdtemp(prefix="ncclwhich-mocks.")
    try:
        return run_all(options, cells, facts, folder, tool)
    except Unable as error:
        print("%s%s" % ("1..0 # SKIP " if options.tap else "", error))
        # With CI=true nothing may be left out.
        return 1 if os.environ.get("CI") == "true" else 0 if options.tap else 77
    finally:
        if options.keep:
            print("# files are in %s" % folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def run_all(options: argparse.Namespace, cells: List[Cell], facts: Facts, folder: str,
            tool: Optional[str]) -> int:
    if not cells:
        raise Unable("the facts have no layout for %s" % facts.machine)
    versions = sorted({version for cell in cells for version in (cell.a, cell.b)}, key=number)
    files = Files(folder, facts, versions, options.j)
    results: Dict[Cell, Optional[Seen]] = {}
    bad: Dict[Cell, List[str]] = {}
    with ThreadPoolExecutor(max(AT_ONCE, options.j)) as pool:
        for cell, real, found in pool.map(run_cell, [(cell, files, tool) for cell in cells]):
            results[cell] = real
            if found:
                bad[cell] = found
    if tool and not options.only and facts.machine == "x86-64":     # the tables are of that one
        for cell, found in compare_tables(tool, results).items():
            cells.append(cell)
            if found:
                bad[cell] = found
    variants = list(dict.fromkeys(cell.variant for cell in cells))
    for position, variant in enumerate(variants, 1):
        mine = [cell for cell in cells if cell.variant == variant]
        wrong = [cell for cell in mine if cell in bad]
        text = "%s: %d cells, %d disagree" % (variant, len(mine), len(wrong))
        print("%sok %d - %s" % ("not " if wrong else "", position, text) if options.tap else text)
        lines = ["%s: %s" % (cell, line.replace("\n", "; ")) for cell in wrong for line in bad[cell]]
        if len(lines) > options.lines:
            lines[options.lines:] = ["... %d more" % (len(lines) - options.lines)]
        for line in lines:
            print("%s%s" % ("# " if options.tap else "    ", line))
    if options.show:
        show(options.show, results)
    if options.tap:
        print("1..%d" % len(variants))
    print("%s%d cells, %d disagree" % ("# " if options.tap else "", len(cells), len(bad)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
