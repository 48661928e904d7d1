"""ELF files to be damaged: a good one, and a way to reach into its tables.

An `Image` is the bytes of a file that elfwriter made, with names for its fields.
What stands in a file of a terabyte is only its head; `Sparse` says how long the
file is to be.
"""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

from elfwriter import DT, PAGE, Elf, Reloc, Symbol     # noqa: E402

INTERP = "/lib64/ld-linux-x86-64.so.2"
NAME = "libnccl.so.2"
LOAD, DYNAMIC, INTERPRETER, NOTE = 1, 2, 3, 4
PHDR = {"type": (0, "I"), "flags": (4, "I"), "offset": (8, "Q"), "vaddr": (16, "Q"),
        "paddr": (24, "Q"), "filesz": (32, "Q"), "memsz": (40, "Q"), "align": (48, "Q")}
EHDR = {"e_type": (16, "H"), "e_machine": (18, "H"), "e_version": (20, "I"), "e_entry": (24, "Q"),
        "e_phoff": (32, "Q"), "e_shoff": (40, "Q"), "e_ehsize": (52, "H"), "e_phentsize": (54, "H"),
        "e_phnum": (56, "H"), "e_shentsize": (58, "H"), "e_shnum": (60, "H"), "e_shstrndx": (62, "H")}


class Sparse(bytes):
    """The head of a file that is `length` bytes long, a hole behind it."""
    length = 1 << 40


class Image(bytearray):
    def header(self, **fields):
        for name, value in fields.items():
            offset, kind = EHDR[name]
            struct.pack_into("<" + kind, self, offset, value)
        return self

    def segments(self, kind):
        """Offsets of the program headers of one type."""
        return [at for at in range(64, 64 + 56 * struct.unpack_from("<H", self, 56)[0], 56)
                if struct.unpack_from("<I", self, at)[0] == kind]

    def segment(self, kind, number=0, **fields):
        for name, value in fields.items():
            offset, word = PHDR[name]
            struct.pack_into("<" + word, self, self.segments(kind)[number] + offset, value)
        return self

    def add_segment(self, **fields):
        """One more program header, in the room that elfwriter leaves."""
        count, = struct.unpack_from("<H", self, 56)
        self.header(e_phnum=count + 1)
        for name, value in fields.items():
            offset, word = PHDR[name]
            struct.pack_into("<" + word, self, 64 + 56 * count + offset, value)
        return self

    def field(self, kind, name, number=0):
        offset, word = PHDR[name]
        return struct.unpack_from("<" + word, self, self.segments(kind)[number] + offset)[0]

    def tags(self):
        """(offset, tag, value) of every dynamic entry."""
        start, size = self.field(DYNAMIC, "offset"), self.field(DYNAMIC, "filesz")
        return [(at,) + struct.unpack_from("<qQ", self, at) for at in range(start, start + size, 16)]

    def tag(self, name):
        return next(value for _, tag, value in self.tags() if tag == DT[name])

    def set_tag(self, name, value, becomes=None):
        """Change the value, and the tag too if it `becomes` another."""
        at = next(at for at, tag, _ in self.tags() if tag == DT[name])
        struct.pack_into("<qQ", self, at, DT[name] if becomes is None else becomes, value)
        return self

    def table(self, name, fmt, *values, at=0):
        """Write into a table of the first segment, where address and offset agree."""
        struct.pack_into("<" + fmt, self, self.tag(name) + at, *values)
        return self

    def cut(self, length):
        del self[length:]
        return self

    def append(self, data, align=PAGE):
        """Append bytes in a segment of their own; returns their address."""
        while len(self) % align:
            self += b"\0"
        offset, address = len(self), len(self) + 16 * PAGE
        self += data
        self.add_segment(type=LOAD, flags=4, offset=offset, vaddr=address, paddr=address,
                         filesz=len(data), memsz=len(data), align=PAGE)
        return address


def good(role, **more):
    """A copy of the tracked library, or a program that needs and opens one."""
    common = dict(symbols=[Symbol("ncclGetVersion", content=bytes.fromhex("c70743770000c3")),
                           Symbol("ncclGetUniqueId", version="V1"),
                           Symbol("ncclCommInitRank"),
                           Symbol("dlopen", defined=False, bind="weak")],
                  relocs=[Reloc("JUMP_SLOT", "ncclCommInitRank"), Reloc("JUMP_SLOT", "dlopen")],
                  verdefs=["V1", "V2"], verneeds={"libc.so.6": [("GLIBC_2.2.5", True)]}, hash="both",
                  build_id=bytes(range(20)), isa_needed=1)
    if role == "engine":
        common.update(kind="pie", interp=INTERP, entry=[b"\xf4"], rodata=[NAME.encode()],
                      dynamic=[("NEEDED", NAME), ("NEEDED", "libc.so.6"), ("RUNPATH", "$ORIGIN/../opt/good"),
                               ("FLAGS_1", ["pie"])])
        common["symbols"] = common["symbols"][3:]
        common["relocs"] = common["relocs"][1:]
    else:
        common.update(dynamic=[("SONAME", NAME), ("NEEDED", "libc.so.6"), ("RUNPATH", "$ORIGIN")],
                      rodata=[b"NCCL version 2.30.7+cuda13.0"])
    common.update(more)
    return Image(Elf(**common).build())


def loader():
    """A loader is known by its words."""
    return Elf(rodata=[b"LD_LIBRARY_PATH", b"/etc/ld.so.cache", b"glibc-hwcaps",
                       b"Legacy HWCAP subdirectories", b"ld.so (tests) stable release version 2.36.\n"],
               dynamic=[("SONAME", "ld-linux-x86-64.so.2")]).build()


def libc():
    return Elf(dynamic=[("SONAME", "libc.so.6")], verdefs=["GLIBC_2.2.5"], symbols=[Symbol("dlopen")]).build()
