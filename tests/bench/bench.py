#!/usr/bin/env python3
"""Times `ncclwhich tree --each` beside libtree over the same list of ELF files; started by bench.sh.

libtree is timed twice. Plain, it walks a library only once for the whole list, however many files need it, and hides
the C library's part; that is the faster and the first ratio. With -vvv it lists what every single file loads, which is
the job that `tree --each` does; that is the second. A ratio is ncclwhich's time over libtree's, so 1 is a tie and less
is faster. The two do not promise the same: libtree looks names up one by one, ncclwhich follows the loader.
"""

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ET_EXEC, ET_DYN = 2, 3
ARGUMENTS_LIMIT = 1 << 20


def is_elf(path):
    try:
        with open(path, "rb") as file:
            head = file.read(18)
    except OSError:
        return False
    return len(head) == 18 and head[:4] == b"\x7fELF" and struct.unpack_from("<H", head, 16)[0] in (ET_EXEC, ET_DYN)


def find_elf_files(roots):
    """Every ELF program and shared object under the roots, each file once, without leaving their file systems."""
    found, seen = [], set()

    def walk(directory, device):
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if entry.is_symlink():
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.stat(follow_symlinks=False).st_dev == device:
                    walk(entry.path, device)
            elif entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                key = (status.st_dev, status.st_ino)
                if status.st_size >= 64 and key not in seen and "\n" not in entry.path and is_elf(entry.path):
                    seen.add(key)
                    found.append(entry.path)

    for root in roots:
        if os.path.isdir(root):
            walk(os.path.realpath(root), os.stat(root).st_dev)
    return found


def split_arguments(paths):
    """The list in pieces that fit on a command line."""
    piece, size = [], 0
    for path in paths:
        if piece and size + len(path) > ARGUMENTS_LIMIT:
            yield piece
            piece, size = [], 0
        piece.append(path)
        size += len(os.fsencode(path)) + 9
    yield piece


def run(commands, output, statuses):
    """Wall time of the commands, one after the other, with their output in a file."""
    with open(output, "wb") as file, open(output + ".err", "wb") as errors:
        start = time.perf_counter()
        for command in commands:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=errors, check=False)
            if done.returncode not in statuses:
                with open(output + ".err", errors="replace") as said:
                    raise RuntimeError(f"{command[0]}: status {done.returncode}\n{said.read()[-500:]}")
        elapsed = time.perf_counter() - start
    if os.path.getsize(output) == 0:
        raise RuntimeError(f"{commands[0][0]} printed nothing")
    return elapsed


def main():
    parser = argparse.ArgumentParser(description="Time ncclwhich tree --each beside libtree.")
    parser.add_argument("-n", "--rounds", type=int, default=7)
    parser.add_argument("directory", nargs="*", default=["/usr", "/opt"])
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("ROUNDS: at least 1")

    paths = find_elf_files(options.directory)
    if not paths:
        print("bench.py: no ELF files there", file=sys.stderr)
        return 2
    print(f"{len(paths)} ELF files under {' '.join(options.directory)}, {options.rounds} rounds", flush=True)

    with tempfile.TemporaryDirectory(prefix="ncclwhich-bench.") as work:
        listing = os.path.join(work, "files")
        with open(listing, "wb") as file:
            file.write(b"".join(os.fsencode(path) + b"\n" for path in paths))
        pieces = list(split_arguments(paths))
        # ncclwhich exits 1 where a start-up would fail, libtree where something is not found: a real system has both.
        ours = [os.environ["NCCLWHICH"], "tree", "--each", "--files-from", listing]
        runners = {
            "ncclwhich tree --each": ([ours], (0, 1, 3)),
            "libtree": ([["libtree", *piece] for piece in pieces], range(0, 128)),
            "libtree -vvv": ([["libtree", "-vvv", *piece] for piece in pieces], range(0, 128)),
        }
        times = {name: [] for name in runners}
        try:
            for number in range(options.rounds + 1):
                for name, (commands, statuses) in runners.items():
                    elapsed = run(commands, os.path.join(work, "out-" + name.replace(" ", "-")), statuses)
                    if number > 0:  # the first round warms the page cache
                        times[name].append(elapsed)
        except (RuntimeError, OSError) as error:
            print(f"bench.py: {error}", file=sys.stderr)
            return 1
        for name in runners:
            with open(os.path.join(work, "out-" + name.replace(" ", "-")), "rb") as file:
                lines = sum(1 for _ in file)
            print(f"{name:<22} min {min(times[name]):.3f} s  median {statistics.median(times[name]):.3f} s  "
                  f"{lines} lines")

    fastest = min(times["ncclwhich tree --each"])
    print(f"ratio {fastest / min(times['libtree']):.2f}")
    print(f"ratio to libtree -vvv {fastest / min(times['libtree -vvv']):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
