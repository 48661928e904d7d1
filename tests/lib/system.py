"""Facts about the loader of this machine, asked from the loader itself.

Nothing here assumes a distribution: the interpreter is the one that Python
itself was linked with, the other paths come from the loader's own output.
"""

import functools
import os
import re
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from typing import List, Optional, Tuple


@dataclass
class System:
    interp: str                             # PT_INTERP of this machine's programs
    libc: str                               # libc.so.6 as a fresh process spells it
    version: Tuple[int, int]                # of glibc
    system_dirs: List[str] = field(default_factory=list)    # no trailing slash
    lib: str = "lib"                        # value of $LIB
    platform: str = ""                      # value of $PLATFORM
    levels: List[str] = field(default_factory=list)         # active glibc-hwcaps, best first
    levels_all: List[str] = field(default_factory=list)
    legacy: List[str] = field(default_factory=list)         # legacy suffixes in search order
    legacy_names: List[str] = field(default_factory=list)
    libraries: List[str] = field(default_factory=list)      # files a root needs beside interp


def _interp(path: str) -> Optional[str]:
    with open(path, "rb") as file:
        head = file.read(4096)
        if head[:5] != b"\x7fELF\x02":
            return None
        phoff, = struct.unpack_from("<Q", head, 32)
        phentsize, phnum = struct.unpack_from("<HH", head, 54)
        for number in range(phnum):
            kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", head,
                                                             phoff + number * phentsize)
            if kind == 3:
                file.seek(offset)
                return file.read(size).rstrip(b"\0").decode()
    return None


def _output(*command: str) -> str:
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, env=env, check=False).stdout


def legacy_suffixes(names: List[str]) -> List[str]:
    """All subsets of the legacy capabilities in the order that ld.so tries them.

    `names`: hwcap names by bit, then platform, then tls.  A subset is a binary
    number whose most significant bit is the last name; its path joins the
    names from last to first; the full set comes first, the empty one last.
    """
    result = []
    for number in range((1 << len(names)) - 1, 0, -1):
        result.append("/".join(names[bit] for bit in reversed(range(len(names)))
                               if number >> bit & 1))
    return result


@functools.lru_cache(maxsize=1)
def this_system(driver: Optional[str] = None) -> Optional[System]:
    """The facts, or None where this is no glibc machine that we can run on."""
    interp = next(filter(None, map(_interp, [os.path.realpath(sys.executable), "/bin/sh"])), None)
    if interp is None or "ld-musl" in interp or not os.path.exists(interp):
        return None
    try:
        version = tuple(map(int, re.findall(r"\d+", os.confstr("CS_GNU_LIBC_VERSION"))[:2]))
    except (ValueError, TypeError, OSError):
        return None
    listing = _output(interp, "--list", driver or os.path.realpath(sys.executable))
    libraries = [m.group(2) for m in re.finditer(r"^\t(\S+) => (/\S+) ", listing, re.M)
                 if re.match(r"lib(c|dl|pthread)\.so", m.group(1))]
    libc = next((path for path in libraries if os.path.basename(path).startswith("libc.so")), None)
    if libc is None:
        return None
    system = System(interp, libc, version, libraries=libraries)
    facts = _output(interp, "--list-diagnostics")       # 2.33 and later
    system.system_dirs = [m.rstrip("/") for m in
                          re.findall(r'^path\.system_dirs\[\w+\]="(.*)"', facts, re.M)]
    values = dict(re.findall(r'^(dl_\w+)=(.*)$', facts, re.M))
    # Before 2.33 the loader does not say; libc.so.6 lies in /$LIB then.
    system.lib = values.get("dl_dst_lib", os.path.dirname(libc)).strip('"').replace("/usr/", "/").lstrip("/")
    system.platform = values.get("dl_platform", '""').strip('"')
    levels = values.get("dl_hwcaps_subdirs", '""').strip('"')
    system.levels_all = [name for name in levels.split(":") if name]
    active = int(values.get("dl_hwcaps_subdirs_active", "0"), 0)
    # bit 0 is the first name of the list, the strongest level
    system.levels = [name for number, name in enumerate(system.levels_all)
                     if active >> number & 1]
    if version < (2, 37):
        system.legacy_names = _legacy_names(int(values.get("dl_hwcap", "0"), 0), system.platform)
        system.legacy = legacy_suffixes(system.legacy_names)
    if not system.system_dirs:
        system.system_dirs = [os.path.dirname(libc)]
    return system


def _legacy_names(hwcap: int, platform: str) -> List[str]:
    if os.uname().machine != "x86_64":
        return []
    names = [name for bit, name in ((2, "x86_64"), (4, "avx512_1")) if hwcap & bit]
    return names + ([platform] if platform else []) + ["tls"]


if __name__ == "__main__":
    print(this_system())
