#!/usr/bin/env python3
"""Compares `ncclwhich tree --each` with the real loader, for every dynamic program of a directory.

usage: NCCLWHICH=path/to/ncclwhich check-system.py [-v] [DIRECTORY...]        default: /usr/bin

The loader is asked with LD_TRACE_LOADED_OBJECTS=1 FILE, so the kernel starts FILE as it always does and the loader
lists the link map instead of running it. (`ld.so --list FILE` differs: it takes $ORIGIN from the text it was given.) A
static program ignores the variable and would really run, so only files whose PT_INTERP names glibc's loader are
started. Compared are set, order, the name that the loader prints for each file, and the file behind it (device and
inode); objects that are not found are compared as a set.

Prints each difference, and last `N programs, D differ, S static left out, O others left out`.
Exit status: 0 none differs, 1 some differ, 2 the comparison could not be made.
"""

import argparse
import collections
import json
import os
import platform
import re
import stat
import struct
import subprocess
import sys

BATCH = 100
PT_INTERP = 3
ET_EXEC, ET_DYN = 2, 3
MACHINES = {"x86_64": 62, "aarch64": 183}
LOADER = re.compile(r"/ld-linux[^/]*\.so\.\d+$")
TRACED = re.compile(r"^\t(?P<request>.*?)(?: => (?P<path>.*?))?(?: \((?P<address>0x[0-9a-f]+)\))?$")

Entry = collections.namedtuple("Entry", "request path")


def read_interp(path):
    """The PT_INTERP of a native 64-bit program, '' if it has none, None if it is no such program."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:7] != b"\x7fELF\x02\x01\x01":
                return None
            kind, machine = struct.unpack_from("<HH", head, 16)
            (offset,) = struct.unpack_from("<Q", head, 32)
            entry_size, count = struct.unpack_from("<HH", head, 54)
            if kind not in (ET_EXEC, ET_DYN) or machine != MACHINES.get(platform.machine()) or entry_size != 56:
                return None
            file.seek(offset)
            table = file.read(entry_size * count)
            for at in range(0, len(table) - entry_size + 1, entry_size):
                (segment,) = struct.unpack_from("<I", table, at)
                if segment == PT_INTERP:
                    start, _, _, size = struct.unpack_from("<QQQQ", table, at + 8)
                    file.seek(start)
                    return os.fsdecode(file.read(size).rstrip(b"\0"))
    except OSError:
        return None
    return ""


def is_secure(path):
    """Whether the kernel would start it in secure mode, where the loader refuses to trace."""
    status = os.stat(path)
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        return True
    if status.st_mode & stat.S_ISGID and status.st_gid != os.getgid():
        return True
    if os.getuid() != 0:
        try:
            os.getxattr(path, "security.capability")
            return True
        except OSError:
            pass
    return False


def find_programs(directories):
    """Programs to compare, and counts of what is left out."""
    programs, left_out = [], collections.Counter()
    seen = set()
    for directory in directories:
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            if not os.path.isfile(path) or os.path.realpath(path) in seen:
                continue
            interp = read_interp(path)
            if interp is None:
                continue
            seen.add(os.path.realpath(path))
            if interp == "":
                # Shared libraries have no PT_INTERP either, and are no programs.
                if os.access(path, os.X_OK) and ".so" not in name:
                    left_out["static"] += 1
            elif not LOADER.search(interp):
                left_out[f"loader {interp}"] += 1
            elif not os.access(path, os.X_OK):
                left_out["not executable"] += 1
            elif is_secure(path):
                left_out["set-id"] += 1
            else:
                programs.append(path)
    return programs, left_out


def ask_loader(path):
    """(entries in link-map order, names not found) or an error text."""
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LC_ALL": "C"}
    try:
        done = subprocess.run([path], env=environment, stdin=subprocess.DEVNULL, capture_output=True, cwd="/",
                              timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, None, str(error)
    entries, missing = [], set()
    for line in os.fsdecode(done.stdout).splitlines():
        if line == "\tstatically linked":
            continue
        match = TRACED.match(line)
        if not match:
            continue
        if match["path"] == "not found":
            missing.add(match["request"])
        elif match["address"]:
            entries.append(Entry(match["request"], match["path"] or match["request"]))
    if done.returncode != 0:
        return None, None, f"status {done.returncode}: {os.fsdecode(done.stderr).strip()}"
    return entries, missing, None


def exact(item, key):
    """A string of the report; names that are not UTF-8 stand in a sibling key in hexadecimal."""
    if f"{key}_hex" in item:
        return os.fsdecode(bytes.fromhex(item[f"{key}_hex"]))
    return item.get(key)


def ask_ncclwhich(program, paths):
    """{file: (entries, names not found, realpaths)}"""
    command = [program, "tree", "--each", "-f", "json", *paths]
    done = subprocess.run(command, env={"LC_ALL": "C"}, stdin=subprocess.DEVNULL, capture_output=True, cwd="/",
                          check=False)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"ncclwhich: status {done.returncode}: {os.fsdecode(done.stderr).strip()}")
    answers = {}
    for line in done.stdout.splitlines():
        document = json.loads(line)
        entries, missing, real = [], set(), {}
        for item in document["objects"]:
            path, request = exact(item, "path"), exact(item, "request")
            if path is None or item.get("missing"):
                missing.add(request or path)
                continue
            if item["how"] == "exec":
                continue
            entries.append(Entry(request or path, path))
            real[path] = exact(item, "realpath")
        answers[exact(document, "file")] = (entries, missing, real)
    return answers


def is_vdso(entry):
    return entry.path.startswith("linux-vdso.so")


def identity(path):
    try:
        status = os.stat(path)
        return status.st_dev, status.st_ino
    except OSError:
        return None


def compare(theirs, their_missing, ours, our_missing, real):
    """The differences, as lines."""
    # The vdso is the kernel's; a report that leaves it out altogether says nothing wrong.
    if not any(map(is_vdso, ours)):
        theirs = [entry for entry in theirs if not is_vdso(entry)]
    lines = []
    their_paths, our_paths = [e.path for e in theirs], [e.path for e in ours]
    if their_paths != our_paths:
        for path in [p for p in their_paths if p not in our_paths]:
            lines.append(f"loader only: {path}")
        for path in [p for p in our_paths if p not in their_paths]:
            lines.append(f"ncclwhich only: {path}")
        if not lines:
            at = next(i for i, pair in enumerate(zip(their_paths, our_paths)) if pair[0] != pair[1])
            lines.append(f"order, from position {at}: loader {their_paths[at:at + 4]}, "
                         f"ncclwhich {our_paths[at:at + 4]}")
    else:
        for their, our in zip(theirs, ours):
            if their.request != our.request:
                lines.append(f"{our.path}: the loader has the name {their.request}, ncclwhich {our.request}")
    for path in our_paths:
        if path in real and not is_vdso(Entry(path, path)) and identity(real[path] or path) != identity(path):
            lines.append(f"{path}: realpath {real[path]} is another file")
    for name in sorted(their_missing - our_missing):
        lines.append(f"not found for the loader only: {name}")
    for name in sorted(our_missing - their_missing):
        lines.append(f"not found for ncclwhich only: {name}")
    return lines


def main():
    parser = argparse.ArgumentParser(description="Compare ncclwhich tree --each with the real loader.")
    parser.add_argument("directory", nargs="*", default=["/usr/bin"])
    parser.add_argument("-v", "--verbose", action="store_true", help="name every program and everything left out")
    options = parser.parse_args()
    program = os.environ.get("NCCLWHICH")
    if not program or not os.access(program, os.X_OK):
        print("check-system.py: set NCCLWHICH to the program (build it first)", file=sys.stderr)
        return 2
    program = os.path.abspath(program)
    if platform.machine() not in MACHINES:
        print(f"check-system.py: not for {platform.machine()}", file=sys.stderr)
        return 77

    programs, left_out = find_programs([os.path.abspath(d) for d in options.directory])
    differing = compared = 0
    for start in range(0, len(programs), BATCH):
        batch = programs[start:start + BATCH]
        try:
            answers = ask_ncclwhich(program, batch)
        except (RuntimeError, ValueError, KeyError) as error:
            print(f"check-system.py: {error!r}", file=sys.stderr)
            return 2
        for path in batch:
            entries, missing, error = ask_loader(path)
            if error is not None:
                left_out[f"{path}: {error}" if options.verbose else "not traced"] += 1
                continue
            compared += 1
            if path not in answers:
                lines = ["ncclwhich printed no document for it"]
            else:
                lines = compare(entries, missing, *answers[path])
            differing += bool(lines)
            if options.verbose and not lines:
                print(f"{path}: {len(entries)} objects, same")
            for line in lines:
                print(f"{path}: {line}")

    static = left_out.pop("static", 0)
    for reason, count in sorted(left_out.items()):
        print(f"left out: {count} {reason}")
    others = sum(left_out.values())
    print(f"{compared} programs, {differing} differ, {static} static left out, {others} others left out")
    if compared == 0:
        print("check-system.py: nothing to compare", file=sys.stderr)
        return 2
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
