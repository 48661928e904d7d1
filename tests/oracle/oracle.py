#!/usr/bin/env python3
"""Random universes: does ncclwhich say what the real loader does?

    oracle.py --n 2000 --seed 7 [--jobs 2] [--only I] [--keep DIR]
    oracle.py --n 2000 --seed 7 --real-only         only count what happens
    oracle.py --n 2000 --seed 7 --bindings          universes with symbols (bindings.py), each
                                                    run a second time with LD_BIND_NOW=1

Each universe is run in the real loader, then predicted.  Progress on stderr; the last
line of stdout is "N universes, M differ".  A universe that differs is made smaller while
it still differs and written to DIR as a case folder.  Exit status 0, 1 when something
differs, 2 for a wrong call, 77 when the real loader cannot be run here (1 if CI=true).
"""

import argparse
import collections
import multiprocessing
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True       # the source tree may be read-only
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

import bindings         # noqa: E402
import generate         # noqa: E402
import prediction       # noqa: E402
import reality          # noqa: E402
import shrink           # noqa: E402
from driverbuild import build_driver                        # noqa: E402
from system import this_system                              # noqa: E402
from universe import Depot, Root, bound_now, scratch_directory      # noqa: E402


DEADLINE = 2.0              # the loader hangs where filters form a circle


class Bench:
    """What a worker needs to judge universes.  One a process."""

    def __init__(self, scratch: str, tool: str, with_bindings: bool = False) -> None:
        self.system = this_system()
        self.scratch, self.tool, self.count = scratch, tool, 0
        self.with_bindings = with_bindings
        self.depot = Depot(os.path.join(scratch, "depot"), self.system,
                           os.path.join(scratch, "driver.so"))

    def make(self, seed, number):
        make = bindings.make if self.with_bindings else generate.make
        return make(seed, number, self.system)

    def judge(self, universe):
        """(differences, [what really happened...]): nothing in the first when both agree."""
        self.count += 1
        root = Root(universe, "%s/%d.%d" % (self.scratch, os.getpid(), self.count),
                    self.system, self.depot)
        try:
            found, real = self.judge_once(root)
            reals = [real]
            if self.with_bindings:
                root.universe = bound_now(universe)
                more, real = self.judge_once(root)
                found = found + ["LD_BIND_NOW: " + text for text in more]
                reals.append(real)
            return found, reals
        finally:
            root.remove()

    def judge_once(self, root):
        real = reality.run(root, DEADLINE)
        if not self.tool:
            return [], real
        try:
            run, given = prediction.predict(self.tool, root, real)
        except prediction.Malfunction as error:
            return ["tool: %s" % error], real
        if prediction.loader_broke(real):       # but the tool must survive it
            return [], real
        return prediction.differences(root, real, run, given), real


BENCH = None


def start_worker(*arguments):
    global BENCH            # a pool hands nothing else to its workers
    BENCH = Bench(*arguments)


def words_of(real):
    """What happened in one run, for the counts."""
    word = "started" if real["start"]["ok"] else "start-" + real["start"]["how"]
    if prediction.loader_broke(real):
        word = "loader-broke"
    return [word] + ["event-" + e["result"] for e in real["events"]]


def run_one(job):
    """(number, differences, small universe or None, real runs, outcome words, bindings)."""
    number, seed = job
    universe = BENCH.make(seed, number)
    try:
        found, reals = BENCH.judge(universe)
    except reality.Unable:
        return number, [], None, None, ["skipped"], 0
    words = [word for real in reals for word in words_of(real)]
    compared = sum(len(real["bindings"]) for real in reals if not prediction.loader_broke(real))
    if not found:
        return number, found, None, None, words, compared
    universe = shrink.with_callers(universe, reals[0])

    def differs(candidate):
        try:
            return bool(BENCH.judge(candidate)[0])
        except (OSError, ValueError, KeyError, reality.Unable):
            return False
    universe = shrink.shrink(universe, differs)
    found, reals = BENCH.judge(universe)
    return number, found, universe, reals, words, compared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=500, help="how many universes")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--only", type=int, help="this one alone")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", default="oracle-failures", metavar="DIR")
    parser.add_argument("--real-only", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the universes, run nothing")
    parser.add_argument("--bindings", action="store_true", help="symbol bindings too")
    options = parser.parse_args()
    numbers = [options.only] if options.only is not None else \
        list(range(options.first, options.first + options.n))
    system = this_system()
    if system is None or reality.how_to_confine() is None:
        print("cannot run the real loader here", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else 77
    if options.show:
        for number in numbers:
            make = bindings.make if options.bindings else generate.make
            sys.stdout.write(shrink.to_yaml(make(options.seed, number, system)))
        return 0
    tool = None if options.real_only else prediction.find_tool()
    if tool is None and not options.real_only:
        parser.error("no ncclwhich; build it, set NCCLWHICH, or use --real-only")
    scratch = scratch_directory()
    try:
        os.chmod(scratch, 0o755)
        Bench(scratch, build_driver(scratch) and tool)      # fills the depot once
        differing, compared = drive(options, numbers, scratch, tool)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.bindings:
        print("%d bindings compared" % (compared if tool else 0))
    print("%d universes, %d differ" % (len(numbers), differing))
    return 1 if differing else 0


def drive(options, numbers, scratch, tool):
    """Run all, report as results come; returns how many differ, and the bindings compared."""
    differing, done, compared = 0, 0, 0
    words = collections.Counter()
    jobs = [(n, options.seed) for n in numbers]
    began = time.monotonic()
    with multiprocessing.Pool(min(options.jobs, len(jobs) or 1), start_worker,
                              (scratch, tool, options.bindings)) as pool:
        for number, found, universe, reals, outcome, some in pool.imap_unordered(run_one, jobs, 8):
            done += 1
            compared += some
            words.update(outcome)
            if found:
                differing += 1
                name = "seed-%d-%s-%d" % (options.seed, "bindings" if options.bindings
                                          else "universe", number)
                print("%s differs:" % name, *found, sep="\n    ", file=sys.stderr)
                shrink.write_case(os.path.join(options.keep, name), options.seed, number,
                                  universe, reals, found, system=this_system())
            if done % 250 == 0 or done == len(jobs):
                print("%d of %d, %d differ, %.0f s" % (done, len(jobs), differing,
                                                       time.monotonic() - began), file=sys.stderr)
    print(", ".join("%s %d" % pair for pair in sorted(words.items())), file=sys.stderr)
    return differing, compared


if __name__ == "__main__":
    sys.exit(main())
