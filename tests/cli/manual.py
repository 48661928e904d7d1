"""Run the examples of the documentation and compare their output to the byte.

    manual.py [--update] [FILE...]      TAP on standard output, one test an example

An example is a line `$ COMMAND` in a fenced ```console block of a Markdown file,
or between .EX and .EE of a man page; its output is what follows up to the next
such line or the end of the block, where `[exit N]` stands for a status other than
0.  The examples of one file run in order, in a fresh folder that holds the
directory R of WORLD.  With --update the outputs in the files are replaced.

R is written here, its loader and C library included (stand-ins that hold the
strings a real one does), so that the output is the same on every machine.
"""

import os
import re
import subprocess
import sys
import tempfile

SRCDIR = os.environ.get("srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SRCDIR, "tests/lib"))
import ldcache                                          # noqa: E402
from universe import object_elf                         # noqa: E402

DIRS = ["/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib/", "/usr/lib/"]
LENGTHS = "".join(chr(len(d)) + "\0" * 7 for d in DIRS)
NCCL_API = ["ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce",
            "ncclCommDestroy", "ncclCommGetAsyncError", "ncclGetErrorString"]
LOOKED_UP = "ncclAllReducencclCommInitRankncclGetUniqueId"


def uses(*names):
    """Undefined symbols, each with the relocation that a linker would make for its call."""
    return {"symbols": [{"name": name, "defined": False} for name in names],
            "relocs": [["GLOB_DAT", name] for name in names]}


def nccl(version):
    return {"soname": "libnccl.so.2", "needed": ["libc.so.6"], "symbols": NCCL_API,
            "rodata": ["\0NCCL version %s+cuda13.0\0" % version]}


# The layout of the seed: a shim linked into the engine NEEDs the versioned name, cudarc composes
# the other one, and the shared directory has only the first.
WORLD = {
    "/lib64/ld-linux-x86-64.so.2": {
        "soname": "ld-linux-x86-64.so.2",
        "rodata": ["\0".join(["", "GNU C Library stable release version 2.36.", "LD_LIBRARY_PATH",
                              "glibc-hwcaps", "/etc/ld.so.cache", "ORIGIN", "PLATFORM",
                              "lib/x86_64-linux-gnu", LENGTHS] + DIRS + [""])]},
    "/lib/x86_64-linux-gnu/libc.so.6": {
        "soname": "libc.so.6", "needed": ["ld-linux-x86-64.so.2"], "symbols": ["dlopen", "dlsym", "dlclose"],
        "rodata": ["\0GNU C Library (stand-in) stable release version 2.36.\0"]},
    "/opt/engine/engine": {
        "kind": "pie", "interp": "/lib64/ld-linux-x86-64.so.2",
        "needed": ["libnccl.so.2", "libc.so.6"],
        **uses("ncclGetUniqueId", "dlopen", "dlsym"),
        "rodata": ["src/cudarc-0.19.7/src/nccl/sys/mod.rs64130lib.so" + LOOKED_UP +
                   "shared library - searched for library names: Missing symbol \0"]},
    "/opt/engine/plugin.so": {
        "soname": "plugin.so", "needed": ["libc.so.6"],
        **uses("dlopen", "dlsym"), "rodata": ["\0" + LOOKED_UP + "\0"]},
    "/opt/engine/plain": {
        "kind": "pie", "interp": "/lib64/ld-linux-x86-64.so.2", "needed": ["libc.so.6"]},
    "/shared/nccl/lib/libnccl.so.2.30.7": nccl("2.30.7"),
    "/shared/nccl/lib/libnccl.so.2": {"symlink": "libnccl.so.2.30.7"},
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2.27.7": nccl("2.27.7"),
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2": {"symlink": "libnccl.so.2.27.7"},
    "/usr/lib/x86_64-linux-gnu/libnccl.so": {"symlink": "libnccl.so.2"},
}
CACHE = [{"key": name, "path": "/usr/lib/x86_64-linux-gnu/" + name}
         for name in ("libnccl.so.2", "libnccl.so")] + [
             {"key": "libc.so.6", "path": "/lib/x86_64-linux-gnu/libc.so.6"}]


def write_world(root):
    for name, spec in WORLD.items():
        path = root + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if "symlink" in spec:
            os.symlink(spec["symlink"], path)
            continue
        with open(path, "wb") as file:
            file.write(object_elf(spec, None).build())
        os.chmod(path, 0o755)
    os.makedirs(root + "/etc")
    with open(root + "/etc/ld.so.cache", "wb") as file:
        file.write(ldcache.build({"entries": CACHE}))


class ManPage:
    opening, closing = r"\.EX$", r"\.EE$"

    @staticmethod
    def decode(line):
        line = line.replace("\\&", "").replace("\\-", "-").replace("\\(aq", "'")
        return line.replace("\\(ga", "`").replace("\\e", "\\")

    @staticmethod
    def encode(line):
        line = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
        line = line.replace("`", "\\(ga")
        return "\\&" + line if line.startswith(".") else line


class Markdown:
    opening, closing = r"```console$", r"```$"

    @staticmethod
    def decode(line):
        return line

    encode = decode


def run(command, folder):
    done = subprocess.run(["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    if done.returncode:
        lines.append("[exit %d]" % done.returncode)
    return lines


def examples(path):
    """Yields (line number, command, expected lines) and copies the rest: see update()."""
    form = Markdown if path.endswith(".md") else ManPage
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    pieces, inside, number = [], False, 0
    while number < len(lines):
        line = lines[number]
        if not inside or re.match(form.closing, line):
            inside = bool(not inside and re.match(form.opening, line))
        elif line.startswith("$ "):
            end = number + 1
            while not re.match(form.closing, lines[end]) and not lines[end].startswith("$ "):
                end += 1
            expected = [form.decode(text) for text in lines[number + 1:end]]
            pieces.append((number + 1, form.decode(line)[2:], expected, line))
            number = end
            continue
        pieces.append(line)
        number += 1
    return form, pieces


def check_file(path, update, results):
    form, pieces = examples(path)
    output = []
    with tempfile.TemporaryDirectory(prefix="ncclwhich-manual.") as folder:
        write_world(folder + "/R")
        os.mkdir(folder + "/bin")
        os.symlink(os.path.abspath(os.environ["NCCLWHICH"]), folder + "/bin/ncclwhich")
        os.environ["PATH"] = folder + "/bin:" + os.environ["PATH"]
        for piece in pieces:
            if isinstance(piece, str):
                output.append(piece)
                continue
            number, command, expected, line = piece
            got = run(command, folder)
            name = "%s:%d: %s" % (os.path.relpath(path, SRCDIR), number, command)
            results.append((name.replace("#", "\\#"), got == expected or update, expected, got))
            output += [line] + [form.encode(text) for text in got]
    if update and output != [p if isinstance(p, str) else p[3] for p in pieces]:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(output))


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    paths = [a for a in arguments if a != "--update"]
    if not paths:
        doc = os.path.join(SRCDIR, "doc")
        paths = [os.path.join(SRCDIR, "README.md")] + [
            os.path.join(doc, name) for name in sorted(os.listdir(doc))
            if name.endswith((".md", ".1"))]
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "NO_COLOR"):
        os.environ.pop(name, None)
    results = []
    for path in paths:
        check_file(path, update, results)
    print("1..%d" % len(results))
    for number, (name, ok, expected, got) in enumerate(results, 1):
        print("%sok %d - %s" % ("" if ok else "not ", number, name))
        if not ok:
            for sign, lines in (("-", expected), ("+", got)):
                for line in lines:
                    print("# %s%s" % (sign, line))


main()
