"""The hostile inputs: every class of bad file, environment, cache and root.

A damaged file is tried twice: as the named ENGINE, which must be refused with a message
that names its fault, or get an answer; and as the first libnccl.so.2 on the search path,
where ncclwhich must do what the loader does:

    skip    the next directory's file is taken
    fatal   the program does not start
    taken   the loader takes it (or dies of it only later)
    any     it depends; but there must be an answer

The other cases are a whole universe each.
"""

import struct

import ldcache          # found by image
from image import DYNAMIC, INTERP, INTERPRETER, LOAD, NAME, NOTE, Image, Sparse, good, libc, loader
from elfwriter import DT, PAGE, Elf, Symbol

BIG = 1 << 40
LAST = (1 << 64) - 1
ESCAPE = "x\x1b[31m\x07\x7f\nverdict: one\r\x9b2J"


class Case:
    def __init__(self, name, files=None, engine="/bin/engine", options=(), refused=None, tree=None,
                 status=(0, 1, 3), env_file=None, outside=None, host=False, stress=None, unprivileged=False):
        self.name, self.files, self.engine = name, files or {}, engine
        self.options, self.refused, self.tree, self.status = list(options), refused, tree, status
        self.env_file, self.outside, self.host = env_file, outside, host
        self.stress, self.unprivileged = stress, unprivileged


def base():
    return {INTERP: loader(), "/lib/libc.so.6": libc(), "/opt/good/" + NAME: bytes(good("library")),
            "/bin/engine": bytes(good("engine"))}


# ---- one damaged file ----

def plain(data):
    return lambda role: data


def patched(change, **more):
    def make(role):
        image = good(role, **more)
        result = change(image)
        return bytes(image) if result is None or isinstance(result, (Image, int)) else result
    return make


def sparse(change, **more):
    def make(role):
        image = good(role, **more)
        change(image)
        return Sparse(image)
    return make


def huge(image, offset=0):
    """The first segment reaches over a terabyte, in which tables can lie."""
    image.segment(LOAD, 0, filesz=BIG - offset, memsz=BIG - offset)


def big_strings(image):
    huge(image)
    image.set_tag("STRSZ", BIG - (1 << 20))


def big_table(name, size_name=None):
    def change(image):
        huge(image)
        image.set_tag(name, 1 << 30)
        if size_name:
            image.set_tag(size_name, BIG - (1 << 31))
    return change


def many_loads(image):
    """65535 program headers, all but the first few a PT_LOAD of the same bytes."""
    head = b"".join(bytes(image[at:at + 56]) for at in range(64, 64 + 56 * struct.unpack_from("<H", image, 56)[0], 56))
    first = image.segments(LOAD)[0]
    load = bytes(image[first:first + 56])
    count = 65535 - len(head) // 56
    offset = (len(image) + 7) & ~7
    image += b"\0" * (offset - len(image)) + head + load * count
    image.header(e_phoff=offset, e_phnum=65535)


def tags(entries, strings=b""):
    """A dynamic section of its own, with a string table of its own."""
    def change(image):
        kept = [(tag, value) for _, tag, value in image.tags() if tag not in (0, DT["NEEDED"])]
        if strings:
            kept = [(tag, value) for tag, value in kept if tag not in [DT[name] for name in USE_STRINGS]]
            kept.append((DT["STRTAB"], 0))
        size = 16 * (len(kept) + len(entries) + 1)
        address = image.append(b"\0" * size)
        if strings:                     # they come last: what has no end there has none at all
            kept[-1] = (DT["STRTAB"], image.append(strings))
        at = address - 16 * PAGE
        for number, (tag, value) in enumerate(kept + entries):
            struct.pack_into("<qQ", image, at + 16 * number, tag, value)
        image.segment(DYNAMIC, vaddr=address, offset=at, filesz=size, memsz=size)
    return change


USE_STRINGS = ("STRTAB", "SONAME", "RUNPATH", "VERNEED", "VERDEF", "VERNEEDNUM", "VERDEFNUM", "VERSYM", "SYMTAB")


def needed(*names):
    strings, entries = b"\0", []
    for name in names:
        entries.append((DT["NEEDED"], len(strings)))
        strings += (name if isinstance(name, bytes) else name.encode()) + b"\0"
    return tags(entries, strings)


def overlapping_needed(image):
    """Every string is the rest of the one before: together much more than the file."""
    tags([(DT["NEEDED"], n) for n in range(1, 16000)], b"\0" + b"a" * 60000 + b"\0")(image)


def overlapping_symbols(image):
    """So many symbols, each named by nearly all of a long string table."""
    count, length = 40000, 1 << 20
    strings = image.append(b"\0" + b"a" * length + b"\0")
    table = b"\0" * 24 + b"".join(struct.pack("<IBBHQQ", n, 0x12, 0, 1, 0x1000, 8) for n in range(1, count))
    image.set_tag("SYMTAB", image.append(table))
    image.set_tag("HASH", image.append(struct.pack("<II", 1, count) + b"\0" * 64))
    image.set_tag("GNU_HASH", 0, becomes=0x6ffffdf5)
    image.set_tag("STRTAB", strings)
    image.set_tag("STRSZ", length + 2)
    for at, tag, _ in image.tags():
        if tag in [DT[name] for name in USE_STRINGS[1:] + ("NEEDED",)] and tag != DT["SYMTAB"]:
            struct.pack_into("<q", image, at, 0x6ffffdf5)


def texts(data):
    return patched(lambda image: image.append(data) and None)


def fatbin(size, header=16):
    return struct.pack("<IHHQ", 0xba55ed50, 1, header, size)


def note(namesz, descsz, kind=5):
    def change(image):
        image.set_tag("STRSZ", 1)       # nobody reads it
        struct.pack_into("<III", image, image.field(NOTE, "offset", 1), namesz, descsz, kind)
    return change


def property_size(image):
    at = image.field(NOTE, "offset", 1)
    struct.pack_into("<I", image, at + 20, 0xfffffff9)      # pr_datasz


def declared(text):
    return patched(lambda image: image, notes=[(b"FDO", 0x407c0c0a, text + b"\0")])


def interp(text, **more):
    return patched(lambda image: image, interp=text, **more)


def late_dynamic(image):
    """PT_DYNAMIC where no segment maps it."""
    image.segment(DYNAMIC, vaddr=1 << 33)


DAMAGED = [
    # name, file, what the engine is refused with (None: it gets an answer), what the search does
    ("empty file", plain(b""), "too short", "fatal"),
    ("one byte", plain(b"\x7f"), "too short", "fatal"),
    ("magic alone", plain(b"\x7fELF"), "too short", "fatal"),
    ("half a header", patched(lambda i: i.cut(40)), "too short", "fatal"),
    ("header one byte short", patched(lambda i: i.cut(63)), "too short", "fatal"),
    ("header alone", patched(lambda i: i.cut(64)), "program headers", "fatal"),
    ("cut in the program headers", patched(lambda i: i.cut(150)), "program headers", "fatal"),
    ("cut after the program headers", patched(lambda i: i.cut(700)), "truncated|damaged", "fatal"),
    ("zeros", plain(b"\0" * 8192), "invalid ELF header", "fatal"),
    ("sparse terabyte of zeros", plain(Sparse(b"")), "invalid ELF header", "fatal"),
    ("text", plain(b"hello\n" * 100), "invalid ELF header", "fatal"),
    ("linker script", plain(b"/* GNU ld script */\nINPUT(libx.so)\n" * 9), "invalid ELF header", "fatal"),
    ("archive", plain(b"!<arch>\n" + b" " * 200), "invalid ELF header", "fatal"),
    ("thin archive", plain(b"!<thin>\n" + b" " * 200), "invalid ELF header", "fatal"),
    ("PE", plain(b"MZ" + b"\0" * 200), "invalid ELF header", "fatal"),
    ("Mach-O", plain(b"\xcf\xfa\xed\xfe" + b"\0" * 200), "invalid ELF header", "fatal"),
    ("LTO bitcode", plain(b"BC\xc0\xde" + b"\0" * 200), "invalid ELF header", "fatal"),
    ("32 bits", patched(lambda i: i, bits=32, machine="i386", hash="sysv"), "ELF class", "skip"),
    ("class byte 0", patched(lambda i: i.__setitem__(4, 0)), "ELF class", "skip"),
    ("class byte 255", patched(lambda i: i.__setitem__(4, 255)), "ELF class", "skip"),
    ("big-endian", patched(lambda i: i.__setitem__(5, 2)), "encoding", "fatal"),
    ("ident version", patched(lambda i: i.__setitem__(6, 9)), "ident", "fatal"),
    ("OS ABI", patched(lambda i: i.__setitem__(7, 9)), "OS ABI", "fatal"),
    ("ABI version", patched(lambda i: i.__setitem__(8, 9)), "ABI version", "fatal"),
    ("padding", patched(lambda i: i.__setitem__(12, 9)), "padding", "fatal"),
    ("version", patched(lambda i: i.header(e_version=2)), "version", "fatal"),
    ("unknown machine", patched(lambda i: i.header(e_machine=0x1234)), "another machine", "skip"),
    ("object file", patched(lambda i: i.header(e_type=1)), "ET_DYN", "fatal"),
    ("core file", patched(lambda i: i.header(e_type=4)), "ET_DYN", "fatal"),
    ("type 0", patched(lambda i: i.header(e_type=0)), "ET_DYN", "fatal"),
    ("type 0xffff", patched(lambda i: i.header(e_type=0xffff)), "ET_DYN", "fatal"),
    ("phentsize 0", patched(lambda i: i.header(e_phentsize=0)), "phentsize", "fatal"),
    ("phentsize 57", patched(lambda i: i.header(e_phentsize=57)), "phentsize", "fatal"),
    ("phentsize 65535", patched(lambda i: i.header(e_phentsize=65535)), "phentsize", "fatal"),
    ("ehsize 0", patched(lambda i: i.header(e_ehsize=0)), None, "taken"),
    ("phoff beyond the file", patched(lambda i: i.header(e_phoff=1 << 30)), "program headers", "fatal"),
    ("phoff that wraps", patched(lambda i: i.header(e_phoff=LAST - 63)), "program headers", "fatal"),
    ("phoff 0", patched(lambda i: i.header(e_phoff=0)), "no loadable|aligned|damaged|no dynamic", "fatal"),
    ("phnum 0", patched(lambda i: i.header(e_phnum=0)), "no loadable", "fatal"),
    ("phnum 65535", patched(lambda i: i.header(e_phnum=65535)), "program headers", "fatal"),
    ("PT_LOAD 65535 times over the same bytes", patched(many_loads), None, "any"),
    ("no section headers", patched(lambda i: i.header(e_shoff=0, e_shnum=0)), None, "taken"),
    ("section headers beyond the file", patched(lambda i: i.header(e_shoff=BIG, e_shnum=9, e_shstrndx=3)),
     None, "taken"),
    ("section headers that wrap", patched(lambda i: i.header(e_shoff=LAST, e_shnum=65535, e_shentsize=0)),
     None, "taken"),
    ("section names XINDEX", patched(lambda i: i.header(e_shstrndx=65535), sections=True), None, "taken"),
    # segments
    ("PT_LOAD that wraps", patched(lambda i: i.segment(LOAD, 1, filesz=LAST)), "PT_LOAD", "fatal"),
    ("PT_LOAD of all that there is", patched(lambda i: i.segment(LOAD, 0, filesz=LAST)), "truncated", "fatal"),
    ("PT_LOAD at the end of the world", patched(lambda i: i.segment(LOAD, 1, offset=LAST & ~4095, vaddr=LAST & ~4095)),
     "damaged|aligned", "fatal"),
    ("memsz that wraps", patched(lambda i: i.segment(LOAD, 1, memsz=LAST)), None, "any"),
    ("filesz above memsz", patched(lambda i: i.segment(LOAD, 1, memsz=1)), None, "any"),
    ("PT_LOAD beyond the file", patched(lambda i: i.segment(LOAD, 1, filesz=BIG, memsz=BIG + 1)),
     "truncated", "fatal"),
    ("PT_LOAD align 3", patched(lambda i: i.segment(LOAD, 1, align=3)), "aligned", "fatal"),
    ("no PT_LOAD", patched(lambda i: i, load=False), "no loadable", "fatal"),
    ("overlapping segments", patched(lambda i: i.add_segment(type=LOAD, flags=6, offset=0, vaddr=0, filesz=4096,
                                                             memsz=1 << 40, align=4096)), None, "any"),
    ("unordered segments", patched(lambda i: i.add_segment(type=LOAD, flags=4, offset=0, vaddr=0, filesz=64, memsz=64,
                                                           align=4096)), None, "any"),
    ("no PT_DYNAMIC", patched(lambda i: i, has_dynamic=False), "no dynamic", "fatal"),
    ("PT_DYNAMIC without bytes in the file", patched(lambda i: i, dynamic_filesz=0), "no dynamic", "fatal"),
    ("PT_DYNAMIC outside every segment", patched(late_dynamic), "PT_DYNAMIC", "fatal"),
    ("PT_DYNAMIC of a terabyte", sparse(lambda i: (huge(i), i.segment(DYNAMIC, vaddr=1 << 30, filesz=BIG >> 1))),
     "PT_DYNAMIC", "fatal"),
    ("PT_DYNAMIC of one byte", patched(lambda i: i.segment(DYNAMIC, filesz=1)), None, "any"),
    ("PT_DYNAMIC unaligned", patched(lambda i: i.segment(DYNAMIC, vaddr=i.field(DYNAMIC, "vaddr") + 1)), None, "any"),
    ("two PT_DYNAMIC", patched(lambda i: i.add_segment(type=DYNAMIC, vaddr=1 << 40, filesz=64, memsz=64)),
     "PT_DYNAMIC", "fatal"),
    ("PT_NOTE outside the file", patched(lambda i: i.segment(NOTE, 1, offset=BIG, filesz=LAST)), None, "taken"),
    ("PT_NOTE of a terabyte", sparse(lambda i: i.segment(NOTE, 1, offset=1 << 30, filesz=BIG >> 1)), None, "any"),
    ("PT_NOTE align 1", patched(lambda i: i.segment(NOTE, 1, align=1)), None, "taken"),
    ("note with a name of 4 GiB", patched(note(0xffffffff, 4)), None, "taken"),
    ("note with 4 GiB", patched(note(4, 0xffffffff)), None, "taken"),
    ("note with everything 4 GiB", patched(note(0xfffffffd, 0xfffffffd, 3)), None, "taken"),
    ("property of 4 GiB", patched(property_size), None, "taken"),
    ("dlopen note that is no JSON", declared(b"\x1b[31m{"), None, "taken"),
    ("dlopen note that is no list", declared(b'{"soname":["x"]}'), None, "taken"),
    ("dlopen note without names", declared(b'[{},{"soname":7},{"soname":[]},{"soname":[7,"",null]}]'), None, "taken"),
    ("dlopen note with a key twice", declared(b'[{"soname":["a"],"soname":["b"]}]'), None, "taken"),
    ("dlopen note in bad UTF-8", declared(b'[{"soname":["\xff\xfe"]}]'), None, "taken"),
    ("dlopen note with control characters", declared(b'[{"soname":["x\\u001b[31m\\u009b"],"feature":"\\u0007"}]'),
     None, "taken"),
    ("dlopen note nested deeply", declared(b"[" * 100000), None, "taken"),
    ("dlopen note of 100000 names", declared(b'[{"soname":[' + b'"x",' * 100000 + b'"y"]}]'), None, "taken"),
    ("dlopen note of 100000 features", declared(b"[" + b"{}," * 100000 + b"{}]"), None, "taken"),
    ("40000 dlopen notes", patched(lambda i: i, notes=[(b"FDO", 0x407c0c0a, b"[{}]\0")] * 40000), None, "taken"),
    ("40000 dlopen notes that are no JSON", patched(lambda i: i, notes=[(b"FDO", 0x407c0c0a, b"[\0")] * 40000), None,
     "taken"),
    # the dynamic section
    ("no DT_NULL", patched(lambda i: i.segment(DYNAMIC, filesz=i.field(DYNAMIC, "filesz") - 16)), None, "taken"),
    ("DT_NULL first", patched(lambda i: struct.pack_into("<qQ", i, i.field(DYNAMIC, "offset"), 0, 0)), None, "any"),
    ("DT_STRTAB outside the file", patched(lambda i: i.set_tag("STRTAB", BIG)), "damaged", "fatal"),
    ("DT_STRTAB at the end of the world", patched(lambda i: i.set_tag("STRTAB", LAST)), "damaged", "fatal"),
    ("no DT_STRTAB", patched(lambda i: i.set_tag("STRTAB", 0, becomes=0x6ffffdf5)), "damaged", "fatal"),
    ("DT_STRSZ 0", patched(lambda i: i.set_tag("STRSZ", 0)), None, "taken"),
    ("DT_STRSZ huge", patched(lambda i: i.set_tag("STRSZ", LAST)), None, "any"),
    ("DT_STRSZ of a terabyte that is there", sparse(big_strings), None, "any"),
    ("DT_NEEDED outside the strings", patched(lambda i: i.set_tag("NEEDED", BIG)), "DT_NEEDED", "fatal"),
    ("DT_NEEDED that wraps", patched(lambda i: i.set_tag("NEEDED", LAST)), "DT_NEEDED", "fatal"),
    ("DT_RUNPATH outside the strings", patched(lambda i: i.set_tag("RUNPATH", BIG)), "DT_RUNPATH", "fatal"),
    ("string without an end", patched(tags([(DT["NEEDED"], 1)], b"\0" + b"a" * 4095)), "DT_NEEDED", "fatal"),
    ("DT_NEEDED empty", patched(needed("")), None, "any"),
    ("DT_NEEDED slash", patched(needed("/")), None, "fatal"),
    ("DT_NEEDED dot", patched(needed(".", "..")), None, "fatal"),
    ("DT_NEEDED itself", patched(needed(NAME, NAME, "libc.so.6")), None, "taken"),
    ("DT_NEEDED 10 MB long", patched(needed(b"l" * 10000000)), "DT_NEEDED", "fatal"),
    ("DT_NEEDED 5000 bytes long", patched(needed(b"l" * 5000)), None, "fatal"),
    ("DT_NEEDED 10000 times", patched(needed(*["lib%d.so" % n for n in range(10000)])), None, "fatal"),
    ("DT_NEEDED 100000 times", patched(needed(*["lib%d.so" % n for n in range(100000)])), "PT_DYNAMIC", "fatal"),
    ("DT_NEEDED overlapping", patched(overlapping_needed), "damaged", "fatal"),
    ("negative tags", patched(tags([(-1, LAST), (-(1 << 63), LAST), (0x7ffffffe, LAST)])), None, "any"),
    # symbols, hash and version tables, relocations
    ("DT_HASH with nchain huge", patched(lambda i: i.table("HASH", "II", 1, 0xffffffff), hash="sysv"), None, "any"),
    ("DT_HASH with nbucket 0", patched(lambda i: i.table("HASH", "I", 0), hash="sysv"), None, "any"),
    ("DT_HASH chain in a circle", patched(lambda i: i.table("HASH", "9I", *[1] * 9, at=8), hash="sysv"), None, "any"),
    ("DT_HASH outside the file", patched(lambda i: i.set_tag("HASH", BIG), hash="sysv"), None, "any"),
    ("DT_HASH of 16 million symbols in a hole", sparse(lambda i: (big_table("SYMTAB")(i),
                                                                  i.table("HASH", "II", 1, 0xffffff)), hash="sysv"),
     None, "any"),
    ("DT_GNU_HASH with maskwords 0", patched(lambda i: i.table("GNU_HASH", "I", 0, at=8)), None, "any"),
    ("DT_GNU_HASH with symoffset huge", patched(lambda i: i.table("GNU_HASH", "I", 0xffffffff, at=4)), None, "any"),
    ("DT_GNU_HASH with nbuckets huge", patched(lambda i: i.table("GNU_HASH", "I", 0xffffffff)), None, "any"),
    ("DT_GNU_HASH with nbuckets huge in a hole",
     sparse(lambda i: (huge(i), i.table("GNU_HASH", "I", 0xffffffff))), None, "any"),
    ("DT_GNU_HASH chain without an end", sparse(lambda i: (huge(i), i.table("GNU_HASH", "IIII", 1, 0, 0, 0))),
     None, "any"),
    ("DT_SYMTAB outside the file", patched(lambda i: i.set_tag("SYMTAB", BIG)), None, "any"),
    ("DT_SYMTAB at the end of the file", patched(lambda i: i.set_tag("SYMTAB", i.field(LOAD, "filesz") - 24)), None, "any"),
    ("symbol name outside the strings", patched(lambda i: i.table("SYMTAB", "I", 0xffffffff, at=24)), None, "any"),
    ("symbol names overlapping", patched(overlapping_symbols), None, "any"),
    ("DT_VERSYM outside the file", patched(lambda i: i.set_tag("VERSYM", BIG)), None, "any"),
    ("DT_VERNEED outside the file", patched(lambda i: i.set_tag("VERNEED", BIG)), "DT_VERNEED", "fatal"),
    ("verneed in a circle", patched(lambda i: i.table("VERNEED", "HHIIIIHHII", 1, 65535, 0, 16, 0,
                                                      0, 0, 2, 0, 0xffffffff)), "DT_VERNEED", "fatal"),
    ("verneed that stands still", patched(lambda i: i.table("VERNEED", "HHIII", 1, 0, 0, 0, 1)
                                          .set_tag("VERNEEDNUM", LAST)), "DT_VERNEED", "fatal"),
    ("vernaux that stands still", patched(lambda i: i.table("VERNEED", "HHIIIIHHII", 1, 65535, 0, 16, 0,
                                                            0, 0, 2, 0, 1)), "DT_VERNEED", "fatal"),
    ("vna_name outside the strings", patched(lambda i: i.table("VERNEED", "I", 0xffffffff, at=24)),
     "DT_VERNEED", "fatal"),
    ("verdef in a circle", patched(lambda i: i.table("VERDEF", "HHHHIII", 1, 0, 1, 1, 0, 0, 1)), "DT_VERDEF", "fatal"),
    ("verdef outside the file", patched(lambda i: i.set_tag("VERDEF", BIG)), "DT_VERDEF", "fatal"),
    ("vd_aux huge", patched(lambda i: i.table("VERDEF", "I", 0xffffffff, at=12)), "DT_VERDEF", "fatal"),
    ("DT_JMPREL outside the file", patched(lambda i: i.set_tag("JMPREL", BIG)), None, "any"),
    ("DT_PLTRELSZ huge", patched(lambda i: i.set_tag("PLTRELSZ", LAST)), None, "any"),
    ("relocations of a terabyte", sparse(big_table("JMPREL", "PLTRELSZ")), None, "any"),
    ("relocation of symbol 4 billion", patched(lambda i: i.table("JMPREL", "Q", 0xffffffff << 32 | 7, at=8)), None, "any"),
    # texts
    ("fatbin larger than the file", texts(b"\0" * 8 + fatbin(LAST) + NAME.encode() + b"\0"), None, "taken"),
    ("fatbin that wraps", texts(b"\0" * 8 + fatbin(LAST - 8, 65535)), None, "taken"),
    ("fatbin of size 0", texts(fatbin(0) * 1000), None, "taken"),
    ("small fatbins by the hundred thousand", texts((fatbin(1) + b"\0" * 8) * 300000), None, "taken"),
    ("names of the library without an end", texts(b"libnccl.so" * 400000), None, "taken"),
    ("banners by the thousand", texts(b"NCCL version 99.99.999+cuda\0" * 100000), None, "taken"),
    ("names of functions by the million", texts(b"ncclCommInitRank" * 300000), None, "taken"),
    ("a terabyte of segment", sparse(huge), None, "any"),
    ("a version with twenty digits", texts(b"\0cudarc-99999999999999999999.1.1/src/nccl\0ncclCommInitRank\0ncclGetUniqueId\0"),
     None, "taken"),
]


def damaged():
    for name, make, refused, met in DAMAGED:
        files = base()
        files["/bin/engine"] = make("engine")
        yield Case("engine: " + name, files, refused=refused)
        files = base()
        files["/opt/bad/" + NAME] = make("library")
        taken = {"skip": r"=> \S*/opt/good/", "taken": r"=> /opt/bad/", "fatal": None, "any": None}[met]
        yield Case("met: " + name, files, options=["--library-path", "/opt/bad:/opt/good"], tree=taken,
                   status={"skip": (0,), "fatal": (1,), "taken": (0, 1, 3), "any": (0, 1, 3)}[met])


# ---- what is no regular file ----

def objects():
    for name, spec, refused, met in (
            ("directory", ("dir",), "[Dd]irectory", (1,)),
            ("FIFO", ("fifo",), "regular", (1,)),
            ("socket", ("socket",), "regular|No such", (0, 1)),
            ("dangling link", ("link", "/nowhere/at/all"), "No such file", (0,)),
            ("link to itself", ("link", NAME), "symbolic links|No such", (0, 1)),
            ("link to a directory", ("link", "/opt"), "[Dd]irectory", (1,))):
        files = base()
        files["/bin/engine"] = spec if spec[-1] != NAME else ("link", "engine")
        yield Case("engine: " + name, files, refused=refused)
        files = base()
        files["/opt/bad/" + NAME] = spec
        yield Case("met: " + name, files, options=["--library-path", "/opt/bad:/opt/good"], status=met)
    for path in ("/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem", "/proc/self/environ", "/proc/version",
                 "/proc/self/fd", "/nonexistent"):
        yield Case("engine: " + path, {}, engine=path, refused="[a-z]", host=True)
    files = base()
    files["/bin/engine"] = ("mode", bytes(good("engine")), 0)
    yield Case("engine: without read permission", files, refused="Permission denied", unprivileged=True)
    files = base()
    files["/opt/bad/" + NAME] = ("mode", bytes(good("library")), 0)
    yield Case("met: without read permission", files, options=["--library-path", "/opt/bad:/opt/good"],
               tree="=> /opt/good/", unprivileged=True)
    yield Case("engine: grows and shrinks while it is read", base(), stress="/bin/engine", status=(0, 1, 2, 3))
    yield Case("met: grows and shrinks while it is read", base(), stress="/opt/good/" + NAME, status=(0, 1, 2, 3))


# ---- interpreters ----

def interpreters():
    for name, make, files, refused in (
            ("without NUL", patched(lambda i: i.segment(INTERPRETER, filesz=8)), {}, "PT_INTERP"),
            ("empty", patched(lambda i: i.segment(INTERPRETER, filesz=0)), {}, "PT_INTERP"),
            ("of 1 GiB", patched(lambda i: i.segment(INTERPRETER, filesz=1 << 30)), {}, None),
            ("outside the file", patched(lambda i: i.segment(INTERPRETER, offset=BIG)), {}, "PT_INTERP"),
            ("longer than PATH_MAX", interp("/" + "l" * 5000), {}, "PT_INTERP"),
            ("relative", interp("ld.so"), {}, "loader"),
            ("that is missing", interp("/lib/none.so"), {}, "loader"),
            ("that is a directory", interp("/opt"), {}, "loader"),
            ("that is a FIFO", interp("/opt/fifo"), {"/opt/fifo": ("fifo",)}, "loader"),
            ("that is the program", interp("/bin/engine"), {}, "loader"),
            ("that is a link to itself", interp("/opt/me"), {"/opt/me": ("link", "me")}, "loader"),
            ("that is an empty file", interp("/opt/e"), {"/opt/e": b""}, "loader"),
            ("that is a terabyte", interp("/opt/t"), {"/opt/t": Sparse(loader())}, "loader"),
            ("of a version with twenty digits", interp("/opt/v"),
             {"/opt/v": loader().replace(b"version 2.36.", b"version 99999999999999.1.")}, None),
            ("with directories without end", interp("/opt/d"),
             {"/opt/d": loader() + b"\0" + b"/a/\0b" * 200000}, None),
            ("with control characters", interp("/opt/" + ESCAPE), {}, "loader")):
        yield Case("interpreter " + name, {**base(), "/bin/engine": make("engine"), **files}, refused=refused)


# ---- ld.so.cache ----

ENTRIES = [{"key": NAME, "path": "/opt/good/" + NAME}, {"key": "libc.so.6", "path": "/lib/libc.so.6"},
           {"key": NAME, "path": "/opt/good/" + NAME, "level": "x86-64-v3"}]


def cache_patch(**fields):
    offsets = {"n": (20, "I"), "flags": (28, "B"), "extension": (32, "I"), "key": (52, "I"), "value": (56, "I"),
               "hwcap": (64, "Q")}
    data = bytearray(ldcache.build({"entries": ENTRIES}))
    for name, value in fields.items():
        offset, kind = offsets[name]
        struct.pack_into("<" + kind, data, offset, value)
    return bytes(data)


def overlapping_sections():
    """An extension of so many sections, each of them the whole file."""
    data = ldcache.build({"entries": ENTRIES})
    at = len(data) + -len(data) % 4
    count = 40000
    size = at + 8 + 16 * count
    data = bytearray(data.ljust(at, b"\0"))
    struct.pack_into("<I", data, 32, at)
    return bytes(data + struct.pack("<II", 0xeaa42174, count) + struct.pack("<IIII", 0, 0, 0, size) * count)


def equal_keys():
    """So many entries of one key, whose values have no end, for a machine that is not ours."""
    count = 200000
    strings = 48 + 24 * count
    entry = struct.pack("<iIIIQ", 0x803, strings, strings + len(NAME) + 1, 0, 0)
    head = struct.pack("<20sIIB3xI12x", b"glibc-ld.so.cache1.1", count, 1 << 20, 2, 0)
    return head + entry * count + NAME.encode() + b"\0" + b"a" * (1 << 22)


def caches():
    whole = ldcache.build({"entries": ENTRIES})
    old = ldcache.build({"entries": ENTRIES, "layout": "combined"})
    inputs = [("empty", b""), ("of one byte", b"g"), ("of zeros", b"\0" * 4096),
              ("with too many entries", cache_patch(n=0xffffffff)),
              ("with the other byte order", cache_patch(flags=3)),
              ("with a key outside", cache_patch(key=0xffffffff)),
              ("with a value outside", cache_patch(value=0xffffffff)),
              ("with the extension outside", cache_patch(extension=0xfffffffc)),
              ("with the extension in the entries", cache_patch(extension=48)),
              ("with an unknown capability", cache_patch(hwcap=1 << 62 | 1 << 32 | 0xffffffff)),
              ("with a level of 1023", cache_patch(hwcap=1 << 62 | 0x3ff << 32)),
              ("with overlapping sections", overlapping_sections()),
              ("with many equal keys", equal_keys()),
              ("unsorted", ldcache.build({"entries": ENTRIES[::-1], "sort": False})),
              ("that is a directory", ("dir",)), ("that is a FIFO", ("fifo",)),
              ("that is a link to itself", ("link", "ld.so.cache")), ("of a terabyte", Sparse(whole))]
    inputs += [("cut at %d" % n, whole[:n]) for n in range(4, len(whole), 17)]
    inputs += [("of both layouts cut at %d" % n, old[:n]) for n in range(4, len(old), 29)]
    for path in ("/opt", "/opt/fifo", "/nowhere", "relative", "", "/opt/" + ESCAPE, "/" + "l" * 70000):
        entry = [{"key": NAME, "path": path}]
        inputs.append(("pointing at %r" % path[:12], ldcache.build({"entries": entry})))
    for name, data in inputs:
        engine = bytes(good("engine", dynamic=[("NEEDED", NAME), ("FLAGS_1", ["pie"])]))
        yield Case("cache " + name, {**base(), "/bin/engine": engine, "/etc/ld.so.cache": data,
                                     "/opt/fifo": ("fifo",)})


# ---- the environment of the search ----

def environments():
    found = r"=> \S*/opt/good/"
    deep = "/".join(["d" * 250] * 14)
    for name, path, tree in (
            ("an element of 4088 bytes", "/" + "e" * 4087 + ":/opt/good", None),
            ("an element of 4095 bytes", "/" + "e/" * 2047 + ":/opt/good", None),
            ("an element longer than PATH_MAX", "/" + "e/" * 9000 + ":/opt/good", None),
            ("a component of 255 bytes", "/" + "c" * 255 + ":/opt/good", found),
            ("a component of 256 bytes", "/" + "c" * 256 + ":/opt/good", None),
            ("a deep directory", "/" + deep + ":/opt/good", None),
            ("empty elements", ":::;;;:", found),
            ("slashes", "//opt////good///", "=> //opt////good/"),
            ("dots above the root", "/../../../../opt/./../opt/good", r"=> /\.\./\.\./\.\./\.\./opt/\./\.\./opt/good/"),
            ("a FIFO", "/opt/fifo:/opt/good", None),
            ("a file", "/bin/engine:/opt/good", None),
            ("links in a circle", "/opt/loop1:/opt/good", None),
            ("control characters", ESCAPE + ":/opt/" + ESCAPE + ":/opt/good", found),
            ("tokens without end", "$ORIGIN/" * 10000 + ":/opt/good", None),
            ("a token that is not closed", "${ORIGIN:/opt/good", found)):
        files = {**base(), "/opt/fifo": ("fifo",), "/opt/loop1": ("link", "loop2"), "/opt/loop2": ("link", "loop1"),
                 "/" + deep + "/x": b""}
        yield Case("LD_LIBRARY_PATH with " + name, files, options=["--library-path", path], tree=tree)
    many = ":".join("/d%d" % n for n in range(100000))
    yield Case("LD_LIBRARY_PATH of 100000 elements", base(), env_file="LD_LIBRARY_PATH=%s:/opt/good\n" % many,
               tree=found)
    yield Case("LD_LIBRARY_PATH of 100000 equal elements", base(),
               env_file="LD_LIBRARY_PATH=%s/opt/good\n" % ("/d:" * 100000), tree=found)
    yield Case("LD_PRELOAD of 2000 names", base(), options=["--preload", " ".join("p%d" % n for n in range(2000))])
    yield Case("ld.so.preload of zeros", {**base(), "/etc/ld.so.preload": b"\0" * 100}, tree=found)
    yield Case("ld.so.preload with control characters", {**base(), "/etc/ld.so.preload": ESCAPE.encode() + b"\n#\n"})
    yield Case("ld.so.preload that is a FIFO", {**base(), "/etc/ld.so.preload": ("fifo",)}, tree=found)


# ---- names ----

def names():
    for what, raw in (("control characters", ESCAPE.encode()), ("bytes that are no UTF-8", b"\xff\xfe\x9b31m\xc3"),
                      ("colons and tokens", b"a:b;$ORIGIN${LIB}$X c"), ("C1 in UTF-8", "\x9b31m".encode())):
        lib = Elf(dynamic=[("SONAME", raw), ("NEEDED", raw + b".so")], symbols=[Symbol("f")]).build()
        files = {**base(), "/opt/bad/" + NAME: lib}
        yield Case("SONAME and DT_NEEDED with " + what, files, options=["--library-path", "/opt/bad"])
        engine = Elf(kind="pie", interp=INTERP, entry=[b"\xf4"], rodata=[b"/opt/" + raw + b"/libnccl.so.2"],
                     dynamic=[("NEEDED", NAME), ("RUNPATH", b"/opt/" + raw + b":/opt/good"), ("NEEDED", raw),
                              ("AUDIT", raw), ("FLAGS_1", ["pie"])],
                     verneeds={NAME: [("V" + what + "\x1b[1m", False)]},
                     symbols=[Symbol("dlopen", defined=False), Symbol("nccl\x1b[31mX", defined=False)]).build()
        yield Case("strings of the engine with " + what, {**base(), "/bin/engine": engine})
        # a directory and a file of this name, in which a program lies
        name = raw.decode("utf-8", "surrogateescape").replace("/", "")
        files = {**base(), "/opt/%s/%s" % (name, NAME): bytes(good("library")), "/bin/" + name: bytes(good("engine"))}
        yield Case("names of files with " + what, files, engine="/bin/" + name,
                   options=["--library-path", "/opt/good"])
        yield Case("directory of a library with " + what, files, options=["--dlopen", "/opt/%s/%s" % (
            name.replace(",", "").replace(":", ""), NAME)])
        loaded = "/opt/%s/%s" % (name.replace(" ", "").replace(":", ""), NAME)
        yield Case("path of a loaded object with " + what, {**base(), loaded: bytes(good("library"))},
                   options=["--preload", loaded])
        yield Case("target of a dangling link with " + what,
                   {**base(), "/opt/bad/" + NAME: ("link", "/none/" + name)},
                   options=["--library-path", "/opt/bad:/opt/good"])
        yield Case("engine that is missing with " + what, base(), engine="/bin/none" + name, refused="No such")


# ---- roots that want to be left ----

def roots():
    chain = {"/opt/c/l%d" % n: ("link", "l%d" % (n - 1)) for n in range(1, 60)}
    chain["/opt/c/l0"] = ("link", "/opt/good/" + NAME)
    doubling = {"/opt/x/l%d" % n: ("link", "l%d/../l%d" % (n - 1, n - 1)) for n in range(1, 60)}
    doubling["/opt/x/l0"] = ("link", ".")
    bad, found = "/opt/bad/" + NAME, r"=> \S*/opt/good/"
    for name, files, tree in (
            ("absolute link that leaves it", {bad: ("link", "{outside}/" + NAME)}, found),
            ("relative link that leaves it", {bad: ("link", "../../" + "../" * 30 + "{outside}/" + NAME)}, found),
            ("directory link that leaves it", {"/opt/bad": ("link", "{outside}")}, found),
            ("link through /proc/self/root", {"/proc/self/root": ("link", "/"),
                                              bad: ("link", "/proc/self/root{outside}/" + NAME)}, found),
            ("link through /proc/self/cwd", {bad: ("link", "/proc/self/cwd/{outside}/" + NAME)}, found),
            ("link through /proc/1/root", {bad: ("link", "/proc/1/root{outside}/" + NAME)}, found),
            ("link through /dev/fd", {bad: ("link", "/dev/fd/3/" + NAME)}, found),
            ("dots above it", {bad: ("link", "../../../../../../../opt/good/" + NAME)}, "=> /opt/bad/"),
            ("chain of 40 links", {**chain, bad: ("link", "/opt/c/l38")}, "=> /opt/bad/"),
            ("chain of 41 links", {**chain, bad: ("link", "/opt/c/l39")}, None),
            ("chain of 60 links", {**chain, bad: ("link", "/opt/c/l59")}, None),
            ("links that double", {**doubling, bad: ("link", "/opt/x/l59/../good/" + NAME)}, None),
            ("directory in a circle", {"/opt/bad": ("link", "/opt/bad/..")}, None),
            ("interpreter that leaves it", {INTERP: ("link", "{outside}/ld.so")}, None),
            ("cache that leaves it", {"/etc/ld.so.cache": ("link", "{outside}/ld.so.cache")}, None),
            ("preload file that leaves it", {"/etc/ld.so.preload": ("link", "{outside}/preload")}, found)):
        yield Case("root: " + name, {**base(), **files}, options=["--library-path", "/opt/bad:/opt/good"], tree=tree,
                   outside=True, refused="loader" if "interpreter" in name else None)
    for engine in ("/../../../../{outside}/engine", "{outside}/engine", "/opt/out/engine", "/proc/self/exe"):
        yield Case("root: engine " + engine.replace("{outside}", "outside"),
                   {**base(), "/opt/out": ("link", "{outside}")}, engine=engine, refused="No such", outside=True)
    yield Case("root: engine through dots above it", base(), engine="/../../../bin/engine", tree=found, outside=True)
    for tokens in ("$ORIGIN/" + "../" * 30 + "{outside}", "/proc/self/root{outside}"):
        yield Case("root: search path " + tokens.replace("{outside}", "outside"), base(),
                   options=["--library-path", tokens + ":/opt/good"], tree=found, outside=True)


def everything():
    for group in (damaged, objects, interpreters, caches, environments, names, roots):
        yield from group()
