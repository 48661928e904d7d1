#!/usr/bin/env python3
"""Makes libraries that stand in for some that are not there, for check-real.sh.

usage: stand_ins.py DIRECTORY NAME... -- FILE...

For every NAME a shared object DIRECTORY/NAME with that SONAME. Together they define what the FILEs, which are all the
other objects of the process, leave undefined, with the versions that the FILEs ask for, so that the loader could bind
everything. The functions do nothing.
"""

import os
import re
import subprocess
import sys
import tempfile


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout


def read_symbols(path):
    """(defined names, undefined {name: version or ''}) of a file's dynamic symbols; weak references may stay open."""
    defined, undefined = set(), {}
    for line in output_of("nm", "-D", "--with-symbol-versions", path).splitlines():
        kind, _, symbol = line[17:].partition(" ")
        name, _, version = symbol.partition("@")
        if kind == "U":
            undefined[name] = version.lstrip("@")
        elif kind not in ("w", "v"):
            defined.add(name)
    return defined, undefined


def read_needed_versions(path):
    """{version: the file that is to define it}"""
    needed, file = {}, None
    for line in output_of("readelf", "-VW", path).splitlines():
        match = re.search(r"Version: 1\s+File: (\S+)", line)
        if match:
            file = match[1]
        match = re.search(r"^\s+0x[0-9a-f]+:\s+Name: (\S+)\s+Flags:", line)
        if match and file:
            needed[match[1]] = file
    return needed


def write_library(directory, name, plain, versions):
    """plain: names without a version; versions: {version: names}"""
    lines, script = [], []
    for symbol in sorted(plain.union(*versions.values())):
        lines += [f'.globl "{symbol}"', f'.type "{symbol}",%function', f'"{symbol}": ret']
    for version, symbols in sorted(versions.items()):
        script.append(f"{version} {{ global: {' '.join(f'{chr(34)}{s}{chr(34)};' for s in sorted(symbols))} }};")
    with tempfile.TemporaryDirectory() as work:
        source, versioning = os.path.join(work, "stand-in.s"), os.path.join(work, "versions")
        with open(source, "w", encoding="utf-8") as file:
            file.write(".text\n" + "\n".join(lines) + '\n.section .note.GNU-stack,"",%progbits\n')
        with open(versioning, "w", encoding="utf-8") as file:
            file.write("\n".join(script) + "\n")
        command = ["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", source, "-o", os.path.join(directory, name)]
        if script:
            command.insert(1, f"-Wl,--version-script={versioning}")
        subprocess.run(command, check=True)


def main():
    directory, *rest = sys.argv[1:]
    names, files = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    defined, undefined, home = set(), {}, {}
    for path in files:
        here, missing = read_symbols(path)
        defined |= here
        undefined.update(missing)
        home.update(read_needed_versions(path))
    versions = {name: {v: set() for v, file in home.items() if file == name} for name in names}
    plain = set()
    for symbol, version in undefined.items():
        if symbol in defined:
            continue
        if version and home.get(version) in versions:
            versions[home[version]][version].add(symbol)
        elif not version:
            plain.add(symbol)
    # A library with versions would version the plain names, too: they go where there are none.
    holder = next((name for name in names if not versions[name]), None)
    if plain and holder is None:
        raise SystemExit("stand_ins.py: every library has versions; there is no place for names without one")
    os.makedirs(directory, exist_ok=True)
    for name in names:
        write_library(directory, name, plain if name == holder else set(), versions[name])


if __name__ == "__main__":
    main()
