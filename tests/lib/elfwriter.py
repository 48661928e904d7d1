"""Write small ELF files that the real loader accepts, or refuses, on purpose.

An `Elf` describes one file; `Elf.build()` gives its bytes.  No assembler and
no linker take part, so a test can have any dynamic section, in any order,
and any damage.  Everything that the loader reads sits in two segments:

    R X   file header, program headers, marker, trampoline, tables, strings,
          notes, PLT stubs, code
    RW    dynamic section, GOT (one slot per relocation), data

The *trampoline* lies at the constant address `TRAMPOLINE` of every 64-bit
x86 object and calls the function whose address is in %rcx.  The driver of the
tests uses it to let any object be the caller of dlopen: the loader takes the
caller from the return address, which then lies in that object.

Addresses equal file offsets in the first segment; in the second they are one
page further.  That keeps offset and address congruent without padding the
file to a page.
"""

import struct
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

PAGE = 0x1000
EXEC_BASE = 0x400000            # where ET_EXEC files are linked
PHDRS_RESERVED = 12
MARKER = 64 + PHDRS_RESERVED * 56           # 0x2e0
TRAMPOLINE = MARKER + 8
MARKER_BYTES = b"nwtramp1"
TRAMPOLINE_CODE = bytes.fromhex("4883ec08ffd14883c408c3")
#                                sub $8,%rsp; call *%rcx; add $8,%rsp; ret

ET = {"rel": 1, "exec": 2, "shared": 3, "pie": 3, "core": 4}
MACHINE = {"x86_64": 62, "aarch64": 183, "i386": 3, "riscv": 243, "ppc64": 21,
           "s390": 22, "arm": 40}
BIND = {"local": 0, "global": 1, "weak": 2, "unique": 10}
TYPE = {"notype": 0, "object": 1, "func": 2, "tls": 6, "ifunc": 10}
# The resolver returns the address of the "ret" behind it.
IFUNC_CODE = bytes.fromhex("488d0501000000c3c3")
VISIBILITY = {"default": 0, "internal": 1, "hidden": 2, "protected": 3}
RELOC = {"64": 1, "COPY": 5, "GLOB_DAT": 6, "JUMP_SLOT": 7, "RELATIVE": 8}

DT = {name: value for value, name in enumerate(
    "NULL NEEDED PLTRELSZ PLTGOT HASH STRTAB SYMTAB RELA RELASZ RELAENT STRSZ "
    "SYMENT INIT FINI SONAME RPATH SYMBOLIC REL RELSZ RELENT PLTREL DEBUG "
    "TEXTREL JMPREL BIND_NOW INIT_ARRAY FINI_ARRAY INIT_ARRAYSZ FINI_ARRAYSZ "
    "RUNPATH FLAGS".split())}
DT.update(GNU_HASH=0x6ffffef5, CONFIG=0x6ffffefa, DEPAUDIT=0x6ffffefb,
          AUDIT=0x6ffffefc, VERSYM=0x6ffffff0, RELACOUNT=0x6ffffff9,
          FLAGS_1=0x6ffffffb, VERDEF=0x6ffffffc, VERDEFNUM=0x6ffffffd,
          VERNEED=0x6ffffffe, VERNEEDNUM=0x6fffffff, AUXILIARY=0x7ffffffd,
          FILTER=0x7fffffff)
DT_IS_STRING = {"NEEDED", "SONAME", "RPATH", "RUNPATH", "AUXILIARY", "FILTER",
                "AUDIT", "DEPAUDIT", "CONFIG"}
DF = {"origin": 1, "symbolic": 2, "textrel": 4, "bind_now": 8, "static_tls": 16}
DF_1 = {"now": 0x1, "global": 0x2, "group": 0x4, "nodelete": 0x8,
        "loadfltr": 0x10, "initfirst": 0x20, "noopen": 0x40, "origin": 0x80,
        "direct": 0x100, "interpose": 0x400, "nodeflib": 0x800,
        "nodump": 0x1000, "pie": 0x08000000}

VER_NDX_GLOBAL = 1
VERSYM_HIDDEN = 0x8000

# Pieces of code and data: bytes, or a reference that is filled in at the end.
#   ("got", NAME)   4 bytes, %rip-relative, to the GOT slot of a relocation
#   ("sym", NAME)   4 bytes, %rip-relative, to a symbol defined in this object
#   ("str", TEXT)   4 bytes, %rip-relative, to a NUL-terminated string
#   ("base",)       4 bytes, %rip-relative, to the start of the file
Piece = Union[bytes, Tuple]


@dataclass
class Symbol:
    """One entry of the dynamic symbol table.

    A defined function carries its machine code, a defined object its data,
    both as `content`; an object with the content "self" holds its own address,
    so that a copy of it (COPY) tells where it came from.  `default` is the
    difference between f@@V and f@V.  `canonical`: undefined, but with the address
    of its PLT stub as value, as in a program that was not compiled as PIC.
    """
    name: str
    bind: str = "global"
    type: str = "func"
    visibility: str = "default"
    defined: bool = True
    version: Optional[str] = None
    version_file: Optional[str] = None      # of an undefined symbol: whose version
    default: bool = True
    content: Union[bytes, str, Sequence[Piece], None] = None
    size: Optional[int] = None
    value: Optional[int] = None             # instead of content: this address
    canonical: bool = False


@dataclass
class Reloc:
    """A relocation; each gets a GOT slot of its own.  `kind`: see RELOC.

    JUMP_SLOT slots start at a PLT stub, so that lazy binding works.  The place of
    a COPY is not its slot but its symbol, which this object has to define.
    """
    kind: str
    symbol: Optional[str] = None
    version: Optional[str] = None
    addend: int = 0


def call(symbol: str) -> List[Piece]:
    """Code that calls a symbol through its GOT slot."""
    return [b"\xff\x15", ("got", symbol)]


@dataclass
class Elf:
    kind: str = "shared"                    # shared, pie, exec
    machine: str = "x86_64"
    bits: int = 64
    endian: str = "little"
    # (tag name or number, value) in the order wanted.  Strings go to .dynstr.
    dynamic: List[Tuple[Union[str, int], Any]] = field(default_factory=list)
    symbols: List[Symbol] = field(default_factory=list)
    relocs: List[Reloc] = field(default_factory=list)
    verdefs: List[str] = field(default_factory=list)    # beside the base version
    # {file: [version or (version, weak)]}
    verneeds: Dict[str, List] = field(default_factory=dict)
    hash: str = "gnu"                       # gnu, sysv, both, none
    interp: Optional[str] = None
    entry: Union[Sequence[Piece], None] = None
    rodata: List[bytes] = field(default_factory=list)
    build_id: Optional[bytes] = None
    notes: List[Tuple[bytes, int, bytes]] = field(default_factory=list)
    isa_needed: Optional[int] = None        # GNU_PROPERTY_X86_ISA_1_NEEDED
    stack: Optional[str] = "rw"             # rw, rwx, None: no PT_GNU_STACK
    sections: bool = False
    dynamic_filesz: Optional[int] = None    # 0: as in a separate debug file
    load: bool = True                       # False: no PT_LOAD
    misalign: bool = False                  # address and offset not congruent
    has_dynamic: bool = True
    pad_to: int = 0                         # make the file at least this long
    patch: Dict[str, int] = field(default_factory=dict)     # header fields
    truncate: Optional[int] = None          # keep only so many bytes

    def build(self) -> bytes:
        return _Builder(self).build()


class _Strings:
    """A string table, each string once."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self.known: Dict[bytes, int] = {b"": 0}

    def add(self, text: Union[str, bytes]) -> int:
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
        if raw not in self.known:
            self.known[raw] = len(self.data)
            self.data += raw + b"\0"
        return self.known[raw]


def elf_hash(name: bytes) -> int:
    """The hash of DT_HASH and of version names."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xf0000000
        value ^= high >> 24
        value &= ~high
    return value & 0xffffffff


def gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xffffffff
    return value


def note(name: bytes, kind: int, desc: bytes, align: int = 4, order: str = "<") -> bytes:
    def padded(data: bytes) -> bytes:
        return data + b"\0" * (-len(data) % align)
    head = struct.pack(order + "III", len(name) + 1, len(desc), kind)
    return padded(head + name + b"\0") + padded(desc)


def abi_tag(os: int, major: int, minor: int, patch: int) -> Tuple[bytes, int, bytes]:
    """The note that states the operating system and oldest kernel."""
    return (b"GNU", 1, struct.pack("<IIII", os, major, minor, patch))


class _Builder:
    """Lays out one file.  Used once; the methods run in the order of build()."""

    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self.wide = elf.bits == 64
        self.order = "<" if elf.endian == "little" else ">"
        self.word = "Q" if self.wide else "I"
        self.base = EXEC_BASE if elf.kind == "exec" else 0
        self.text = bytearray(MARKER)
        if self.wide and elf.machine == "x86_64":
            self.text += MARKER_BYTES + TRAMPOLINE_CODE
        self.fixups: List[Tuple[int, Tuple]] = []   # (place in text, reference)
        self.strings = _Strings()
        self.literals: Dict[bytes, int] = {}
        self.tags: List[Tuple[int, int]] = []       # filled by the tables
        self.phdrs: List[Tuple[int, int, int, int, int, int, int]] = []
        self.shdrs: List[Tuple] = []

    def pack(self, fmt: str, *values: int) -> bytes:
        return struct.pack(self.order + fmt.replace("N", self.word), *values)

    def put(self, data: bytes, align: int = 8) -> int:
        """Append to the text segment; returns the offset (= relative address)."""
        self.text += b"\0" * (-len(self.text) % align)
        offset = len(self.text)
        self.text += data
        return offset

    def put_pieces(self, pieces: Union[bytes, Sequence[Piece]], align: int = 16) -> int:
        if isinstance(pieces, (bytes, bytearray)):
            return self.put(bytes(pieces), align)
        offset = self.put(b"", align)
        for piece in pieces:
            if isinstance(piece, (bytes, bytearray)):
                self.text += piece
            else:
                self.fixups.append((len(self.text), tuple(piece)))
                self.text += b"\0\0\0\0"
        return offset

    def literal(self, text: Union[str, bytes]) -> int:
        raw = text.encode() if isinstance(text, str) else text
        if raw not in self.literals:
            self.literals[raw] = self.put(raw + b"\0", 1)
        return self.literals[raw]

    # -- symbols ---------------------------------------------------------

    def order_symbols(self) -> None:
        """Undefined first, defined ones by hash bucket, as DT_GNU_HASH wants."""
        elf = self.elf
        names = {(s.name, s.version) for s in elf.symbols}
        extra = [Symbol(r.symbol, type="notype", defined=False, version=r.version)
                 for r in elf.relocs if r.symbol and not any(
                     (r.version is None and n == r.symbol) or (n, v) == (r.symbol, r.version)
                     for n, v in names)]
        seen = set()
        undefined = []
        for symbol in [s for s in elf.symbols if not s.defined and not s.canonical] + extra:
            if (symbol.name, symbol.version) not in seen:
                seen.add((symbol.name, symbol.version))
                undefined.append(symbol)
        defined = [s for s in elf.symbols if s.defined or s.canonical]
        self.buckets = max(1, len(defined) // 3)
        hashes = {id(s): gnu_hash(s.name.encode()) for s in defined}
        defined.sort(key=lambda s: hashes[id(s)] % self.buckets)
        self.symbols = undefined + defined
        self.first_hashed = 1 + len(undefined)
        self.hashes = [hashes[id(s)] for s in defined]
        self.index: Dict[Tuple[str, Optional[str]], int] = {}
        for number, symbol in enumerate(self.symbols, 1):
            self.index.setdefault((symbol.name, symbol.version), number)
            self.index.setdefault((symbol.name, None), number)

    def place_contents(self) -> None:
        """Code to the text segment, data of objects to the data segment."""
        self.data = bytearray()
        self.values: List[Tuple[int, int, bool]] = []   # value, size, in data
        self.own_addresses: List[int] = []              # of data that holds its address
        for symbol in self.symbols:
            if not symbol.defined:
                self.values.append((0, symbol.size or 0, False))
            elif symbol.value is not None:
                self.values.append((symbol.value, symbol.size or 0, False))
            elif symbol.type in ("object", "tls"):
                to_itself = symbol.content == "self"
                content = b"\0" * 8 if to_itself else bytes(symbol.content or b"\0" * 8)
                self.data += b"\0" * (-len(self.data) % 8)
                if to_itself:
                    self.own_addresses.append(len(self.data))
                self.values.append((len(self.data), symbol.size or len(content), True))
                self.data += content
            else:
                content = symbol.content if symbol.content is not None else \
                    IFUNC_CODE if symbol.type == "ifunc" else b"\xc3"
                offset = self.put_pieces(content)
                size = len(self.text) - offset
                self.values.append((offset, symbol.size or size, False))

    def hash_tables(self) -> None:
        elf, count = self.elf, len(self.symbols) + 1
        if elf.hash in ("gnu", "both"):
            bloom = 0
            width = elf.bits
            for value in self.hashes:
                bloom |= 1 << (value % width) | 1 << ((value >> 6) % width)
            heads = [0] * self.buckets
            chain = []
            for number, value in enumerate(self.hashes):
                bucket = value % self.buckets
                if not heads[bucket]:
                    heads[bucket] = self.first_hashed + number
                last = (number + 1 == len(self.hashes)
                        or self.hashes[number + 1] % self.buckets != bucket)
                chain.append((value & ~1) | last)
            table = self.pack("IIIIN%dI" % (len(heads) + len(chain)), self.buckets,
                              self.first_hashed, 1, 6, bloom, *heads, *chain)
            self.tags.append((DT["GNU_HASH"], self.base + self.put(table)))
        if elf.hash in ("sysv", "both"):
            heads, chain = [0], [0] * count
            for number, symbol in enumerate(self.symbols, 1):
                chain[number] = heads[0]
                heads[0] = number
            table = self.pack("II%dI" % (1 + count), 1, count, *heads, *chain)
            self.tags.append((DT["HASH"], self.base + self.put(table)))

    # -- versions --------------------------------------------------------

    def versions(self) -> None:
        """Fill .gnu.version, _d and _r.  No table where nothing is versioned."""
        elf = self.elf
        self.version_index: Dict[Tuple[Optional[str], str], int] = {}
        needs = {f: [v if isinstance(v, (tuple, list)) else (v, False) for v in vs]
                 for f, vs in elf.verneeds.items()}
        for symbol in self.symbols:
            if not symbol.defined and symbol.version and symbol.version_file:
                entry = needs.setdefault(symbol.version_file, [])
                if symbol.version not in [v for v, _ in entry]:
                    entry.append((symbol.version, False))
        needs = {name: entries for name, entries in needs.items() if entries}
        if not elf.verdefs and not needs:
            return
        next_index = VER_NDX_GLOBAL
        if elf.verdefs:
            soname = next((v for t, v in elf.dynamic if t == "SONAME"), "base")
            table = b""
            for number, name in enumerate([soname] + list(elf.verdefs)):
                index = number + VER_NDX_GLOBAL
                raw = name if isinstance(name, bytes) else name.encode()
                last = number == len(elf.verdefs)
                table += self.pack("HHHHIII", 1, 0 if number else 1, index, 1,
                                   elf_hash(raw), 20, 0 if last else 28)
                table += self.pack("II", self.strings.add(raw), 0)
                if number:
                    self.version_index[(None, name)] = index
            next_index += len(elf.verdefs)
            self.tags += [(DT["VERDEF"], self.base + self.put(table)),
                          (DT["VERDEFNUM"], 1 + len(elf.verdefs))]
        if needs:
            table = b""
            files = list(needs.items())
            for number, (name, entries) in enumerate(files):
                last_file = number + 1 == len(files)
                table += self.pack("HHIII", 1, len(entries), self.strings.add(name), 16,
                                   0 if last_file else 16 + 16 * len(entries))
                for position, (version, weak) in enumerate(entries):
                    next_index += 1
                    self.version_index[(name, version)] = next_index
                    self.version_index.setdefault((None, version), next_index)
                    table += self.pack("IHHII", elf_hash(version.encode()), 2 if weak else 0,
                                       next_index, self.strings.add(version),
                                       0 if position + 1 == len(entries) else 16)
            self.tags += [(DT["VERNEED"], self.base + self.put(table)),
                          (DT["VERNEEDNUM"], len(files))]
        indices = [0]
        for symbol in self.symbols:
            index = VER_NDX_GLOBAL
            if symbol.version:
                index = self.version_index.get(
                    (symbol.version_file, symbol.version),
                    self.version_index.get((None, symbol.version), VER_NDX_GLOBAL))
            if symbol.defined and not symbol.default:
                index |= VERSYM_HIDDEN
            indices.append(index)
        table = self.pack("%dH" % len(indices), *indices)
        self.tags.append((DT["VERSYM"], self.base + self.put(table)))

    # -- segments --------------------------------------------------------

    def plt(self) -> None:
        """One stub a JUMP_SLOT: push its index, go to the loader's resolver."""
        self.stubs: List[int] = []
        self.stub_of: Dict[Optional[str], int] = {}
        jumps = [r for r in self.elf.relocs if r.kind == "JUMP_SLOT"]
        if not jumps:
            return
        head = self.put_pieces([b"\xff\x35", ("slot", 1), b"\xff\x25", ("slot", 2)])
        for number, jump in enumerate(jumps):
            stub = self.put(b"\x68" + struct.pack("<i", number) + b"\xe9", 16)
            self.text += struct.pack("<i", head - (stub + 10))
            self.stubs.append(stub)
            self.stub_of.setdefault(jump.symbol, stub)

    def notes(self) -> None:
        elf = self.elf
        wanted = list(elf.notes)
        if elf.build_id is not None:
            wanted.append((b"GNU", 3, elf.build_id))
        if wanted:
            data = b"".join(note(*n, order=self.order) for n in wanted)
            self.phdrs.append((4, 4, self.put(data, 4), len(data), len(data), 4, 0))
        if elf.isa_needed is not None:
            desc = struct.pack("<IIII", 0xc0008002, 4, elf.isa_needed, 0)
            data = note(b"GNU", 5, desc, 8)
            offset = self.put(data, 8)
            for kind in (4, 0x6474e553):
                self.phdrs.append((kind, 4, offset, len(data), len(data), 8, 0))

    def dynamic_section(self) -> Tuple[List[Tuple[int, int]], set]:
        """The caller's tags in the caller's order, then those of the tables."""
        entries = []
        given = set()
        for tag, value in self.elf.dynamic:
            number = DT[tag] if isinstance(tag, str) else tag
            given.add(number)
            if isinstance(value, (str, bytes)):
                value = self.strings.add(value)
            elif isinstance(value, (list, tuple)):
                table = DF_1 if tag == "FLAGS_1" else DF
                value = sum(table[v] if isinstance(v, str) else v for v in value)
            entries.append((number, value))
        return entries, given

    def build(self) -> bytes:
        elf = self.elf
        self.order_symbols()
        if elf.interp is not None:
            raw = elf.interp.encode() + b"\0"
            self.phdrs.append((3, 4, self.put(raw, 1), len(raw), len(raw), 1, 0))
        for text in elf.rodata:
            self.literal(text)
        for symbol in self.symbols:
            self.strings.add(symbol.name)
        self.place_contents()
        entry = self.put_pieces(elf.entry) if elf.entry is not None else 0
        self.plt()
        self.notes()
        self.versions()
        self.hash_tables()
        for _, reference in self.fixups:
            if reference[0] == "str":
                self.literal(reference[1])
        user, given = self.dynamic_section()
        strtab = self.strtab = self.put(bytes(self.strings.data), 1)
        symtab = self.put(b"", 8)
        symentsize = 24 if self.wide else 16
        relaentsize = 24
        plt_relocs = [r for r in elf.relocs if r.kind == "JUMP_SLOT"]
        n_other = len(elf.relocs) - len(plt_relocs) + len(self.own_addresses)
        rela = symtab + symentsize * (len(self.symbols) + 1)
        rela += -rela % 8
        jmprel = rela + relaentsize * n_other
        text_end = jmprel + relaentsize * len(plt_relocs)

        tags = list(self.tags)
        tags += [(DT["STRTAB"], self.base + strtab), (DT["SYMTAB"], self.base + symtab),
                 (DT["STRSZ"], len(self.strings.data)), (DT["SYMENT"], symentsize)]
        # the data segment: dynamic, three reserved slots, slots, data
        data_offset = text_end + (-text_end % 16)
        shift = PAGE + self.base
        if n_other:
            tags += [(DT["RELA"], self.base + rela), (DT["RELASZ"], relaentsize * n_other),
                     (DT["RELAENT"], relaentsize)]
        if plt_relocs:
            tags += [(DT["JMPREL"], self.base + jmprel), (DT["PLTREL"], DT["RELA"]),
                     (DT["PLTRELSZ"], relaentsize * len(plt_relocs))]
        if elf.kind != "shared":
            tags.append((DT["DEBUG"], 0))
        tags = user + [t for t in tags if t[0] not in given]
        word_size = 8 if self.wide else 4
        dynamic_size = 2 * word_size * (len(tags) + (2 if plt_relocs else 1))
        got = data_offset + (dynamic_size if elf.has_dynamic else 0)
        if plt_relocs:
            tags.append((DT["PLTGOT"], got + shift))
        tags.append((0, 0))
        slots = got + 24
        symbol_data = slots + 8 * len(elf.relocs)
        slot_of = {}
        for number, reloc in enumerate(elf.relocs):
            slot_of.setdefault(reloc.symbol, slots + 8 * number)

        self.fill(symtab, rela, jmprel, slots, symbol_data, shift)
        for place, reference in self.fixups:
            what = reference[0]
            if what == "got":
                target = slot_of[reference[1]] + PAGE
            elif what == "slot":
                target = got + 8 * reference[1] + PAGE
            elif what == "sym":
                value, _, in_data = self.values[self.index[(reference[1], None)] - 1]
                target = value + symbol_data + PAGE if in_data else value
            elif what == "str":
                target = self.literal(reference[1])
            else:
                target = 0
            struct.pack_into("<i", self.text, place, target - (place + 4))

        self.text += b"\0" * (data_offset - len(self.text))
        data = bytearray()
        if elf.has_dynamic:
            for tag in tags:
                data += self.pack("NN", *[v & (1 << elf.bits) - 1 for v in tag])
        dynamic_at = len(self.text)
        data += self.pack("N", dynamic_at + shift if elf.has_dynamic else 0)
        data += b"\0" * (24 - word_size)
        stub = iter(self.stubs)
        for reloc in elf.relocs:
            data += struct.pack("<Q", next(stub) + self.base if reloc.kind == "JUMP_SLOT" else 0)
        data += self.data
        return self.finish(entry, dynamic_at, dynamic_size, data, shift)

    def fill(self, symtab: int, rela: int, jmprel: int, slots: int, symbol_data: int,
             shift: int) -> None:
        """Append the symbol table and the relocations, now that addresses are known."""
        elf = self.elf
        self.text += b"\0" * (symtab - len(self.text))
        self.text += b"\0" * (24 if self.wide else 16)
        addresses = [0]
        for symbol, (value, size, in_data) in zip(self.symbols, self.values):
            if symbol.canonical:
                value = self.stub_of[symbol.name] + self.base
            elif symbol.defined and symbol.value is None:
                value += symbol_data + shift if in_data else self.base
            addresses.append(value)
            info = BIND[symbol.bind] << 4 | TYPE[symbol.type]
            section = 1 if symbol.defined else 0
            name, other = self.strings.add(symbol.name), VISIBILITY[symbol.visibility]
            if self.wide:
                self.text += self.pack("IBBHQQ", name, info, other, section, value, size)
            else:
                self.text += self.pack("IIIBBH", name, value, size, info, other, section)
        self.text += b"\0" * (rela - len(self.text))
        first, last = b"", b""
        for offset in self.own_addresses:
            place = symbol_data + offset + shift
            first += struct.pack("<QQq", place, RELOC["RELATIVE"], place)
        for number, reloc in enumerate(elf.relocs):
            index = self.index[(reloc.symbol, reloc.version)] if reloc.symbol else 0
            place = addresses[index] if reloc.kind == "COPY" else slots + 8 * number + shift
            packed = struct.pack("<QQq", place, index << 32 | RELOC[reloc.kind], reloc.addend)
            if reloc.kind == "JUMP_SLOT":
                last += packed
            else:
                first += packed
        self.text += first + last

    def finish(self, entry: int, dynamic_at: int, dynamic_size: int, data: bytearray,
               shift: int) -> bytes:
        elf = self.elf
        phdrs = list(self.phdrs)
        text_size = len(self.text)
        if elf.load:
            phdrs.append((1, 5, 0, text_size, text_size, PAGE, 0))
            phdrs.append((1, 6, text_size, len(data), len(data), PAGE,
                          PAGE + 16 * elf.misalign))
        if elf.has_dynamic:
            size = dynamic_size if elf.dynamic_filesz is None else elf.dynamic_filesz
            phdrs.append((2, 6, dynamic_at, size, dynamic_size, 8, PAGE))
        if elf.stack:
            phdrs.append((0x6474e551, 7 if elf.stack == "rwx" else 6, 0, 0, 0, 16, 0))
        if elf.interp is not None:      # PT_PHDR comes first by convention
            phdrs.insert(0, (6, 4, 64, 56 * (len(phdrs) + 1), 56 * (len(phdrs) + 1), 8, 0))
        assert len(phdrs) <= PHDRS_RESERVED
        image = self.text + data
        image += b"\0" * (elf.pad_to - len(image))
        shoff, shnum, shstrndx = 0, 0, 0
        if elf.sections:
            shoff, shnum, shstrndx = self.section_headers(image, text_size, dynamic_at,
                                                          dynamic_size, shift)
        ident = b"\x7fELF" + bytes([2 if self.wide else 1, 1 if self.order == "<" else 2, 1])
        fields = dict(e_type=ET[elf.kind], e_machine=MACHINE[elf.machine], e_version=1,
                      e_entry=entry + self.base if entry else 0, e_phoff=64 if self.wide else 52,
                      e_shoff=shoff, e_flags=0, e_ehsize=64 if self.wide else 52,
                      e_phentsize=56 if self.wide else 32, e_phnum=len(phdrs),
                      e_shentsize=64 if self.wide else 40, e_shnum=shnum, e_shstrndx=shstrndx)
        fields.update({k: v for k, v in elf.patch.items() if k in fields})
        head = ident.ljust(16, b"\0") + self.pack("HHINNNIHHHHHH", *fields.values())
        for kind, flags, offset, filesz, memsz, align, move in phdrs:
            vaddr = offset + move + self.base if memsz else 0
            if self.wide:
                head += self.pack("IIQQQQQQ", kind, flags, offset, vaddr, vaddr, filesz, memsz, align)
            else:
                head += self.pack("IIIIIIII", kind, offset, vaddr, vaddr, filesz, memsz, flags, align)
        image[:len(head)] = head
        for key, value in elf.patch.items():
            if isinstance(key, int):
                image[key] = value
            elif key in IDENT_OFFSET:
                image[IDENT_OFFSET[key]] = value
        return bytes(image if elf.truncate is None else image[:elf.truncate])

    def section_headers(self, image: bytearray, text_size: int, dynamic_at: int,
                        dynamic_size: int, shift: int) -> Tuple[int, int, int]:
        """A plain set: text, dynstr, dynamic and the names; enough for readers."""
        names = _Strings()
        rows = [(0,) * 10]
        rows.append((names.add(".text"), 1, 6, self.base, 0, text_size, 0, 0, 16, 0))
        strings = bytes(self.strings.data)
        at = self.strtab
        rows.append((names.add(".dynstr"), 3, 2, self.base + at, at, len(strings), 0, 0, 1, 0))
        rows.append((names.add(".dynamic"), 6, 3, dynamic_at + shift, dynamic_at, dynamic_size,
                     2, 0, 8, 16))
        name = names.add(".shstrtab")
        at = len(image)
        rows.append((name, 3, 0, 0, at, len(names.data), 0, 0, 1, 0))
        image += names.data
        image += b"\0" * (-len(image) % 8)
        offset = len(image)
        for row in rows:
            image += self.pack("IINNNNIINN", *row)
        return offset, len(rows), len(rows) - 1


IDENT_OFFSET = {"EI_MAG0": 0, "EI_CLASS": 4, "EI_DATA": 5, "EI_VERSION": 6, "EI_OSABI": 7,
                "EI_ABIVERSION": 8, "EI_PAD": 9}


def start_code(base_reference: Tuple = ("base",)) -> List[Piece]:
    """Entry point of a program: driver_main(stack, own base address).

    mov %rsp,%rdi; lea base(%rip),%rsi; and $-16,%rsp; call *driver_main@got; hlt
    """
    return [bytes.fromhex("4889e7488d35"), base_reference, bytes.fromhex("4883e4f0ff15"),
            ("got", "driver_main"), b"\xf4"]
