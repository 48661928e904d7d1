"""A *universe*: one small file system, one program, one sequence of events.

A universe is plain data (YAML or JSON):

    exe: /app/prog                  # the path that is executed
    program: /app/prog              # where the program itself is, if exe is a link to it
    files:                          # in this order; parents are made as needed
      /app/prog: {needed: [libx.so], rpath: /a}       an object, see OBJECT_KEYS
      /a/libx.so: {soname: libx.so}
      /a/liby.so: {symlink: libx.so}
      /b/libx.so: {hardlink: /a/libx.so}
      /b/libz.so: {copy: /a/libx.so}
      /b/dir: {dir: true}
      /b/pipe: {fifo: true}
      /b/script: {text: "INPUT(libx.so)"}
    cache: {entries: [...]}         # see ldcache.py; a list of "KEY => PATH" will do
    env: {LD_LIBRARY_PATH: /b}
    cwd: /
    preload_file: /b/libx.so        # the text of /etc/ld.so.preload
    secure: true                    # set-user-ID root, run as another user
    proc: true                      # mount the real /proc instead of a stand-in
    system_files: true              # false: no libc and no loader in the root
    events:
      - {open: libx.so, from: /a/liby.so, flags: "now,local"}

Symbols of an object come in a short form:

    defines: [alpha, "beta@V1 weak", "gamma@@V2 protected object"]   see `definition`
    uses: [alpha, "beta@V1 from:libx.so data", "gamma weak"]         see `use`

Any file may carry `mode`; a link may be `early`, that is made before the
system's files (/lib -> usr/lib).  `Root` turns a universe into a directory.

/proc in the root is one symbolic link, proc/self/exe, with the canonical path
of the program: all that glibc wants to know is what readlink says, and a mount
a universe would be slow.
"""

import os
import shutil
import tempfile
from typing import Any, Dict, List, Optional

import elfwriter
import ldcache
from elfwriter import Elf, Reloc, Symbol
from system import System

DRIVER = "/driver.so"

# Names for damage.  Each is a function of the object's Elf.
BROKEN = {
    "empty": dict(truncate=0),
    "three-bytes": dict(truncate=3),
    "half-header": dict(truncate=40),
    "magic": dict(patch={"EI_MAG0": 0x7e}),
    "class": dict(patch={"EI_CLASS": 1}),
    "data": dict(patch={"EI_DATA": 2}),
    "ident-version": dict(patch={"EI_VERSION": 2}),
    "osabi": dict(patch={"EI_OSABI": 9}),
    "osabi-gnu": dict(patch={"EI_OSABI": 3}),
    "abiversion": dict(patch={"EI_ABIVERSION": 1}),
    "padding": dict(patch={"EI_PAD": 1}),
    "version": dict(patch={"e_version": 2}),
    "machine": dict(patch={"e_machine": 183}),
    "type-rel": dict(patch={"e_type": 1}),
    "type-core": dict(patch={"e_type": 4}),
    "type-none": dict(patch={"e_type": 0}),
    "phentsize": dict(patch={"e_phentsize": 32}),
    "phdrs-beyond-eof": dict(patch={"e_phoff": 0x100000}),
    "no-phdrs": dict(patch={"e_phnum": 0}),
    "no-load": dict(load=False),
    "misaligned": dict(misalign=True),
    "no-dynamic": dict(has_dynamic=False),
    "empty-dynamic": dict(dynamic_filesz=0),
    "after-headers": dict(pad_to=0x3000, truncate=elfwriter.TRAMPOLINE + 16),
}

STRING_TAGS = (("soname", "SONAME"), ("rpath", "RPATH"), ("runpath", "RUNPATH"),
               ("auxiliary", "AUXILIARY"), ("filter", "FILTER"), ("audit", "AUDIT"),
               ("depaudit", "DEPAUDIT"))
DIRECT_KEYS = ("kind", "machine", "bits", "endian", "verdefs", "verneeds", "hash", "interp",
               "isa_needed", "stack", "sections", "pad_to", "truncate", "patch")
OBJECT_KEYS = set(DIRECT_KEYS) | {"needed", "dynamic", "flags", "flags_1", "symbols", "relocs",
                                  "defines", "uses", "symbolic", "bind_now",
                                  "broken", "rodata", "build_id", "abi_tag"} \
    | {key for key, _ in STRING_TAGS}
OTHER_KEYS = {"symlink", "hardlink", "copy", "dir", "fifo", "text", "mode", "early"}


def as_list(value: Any) -> List:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def object_elf(spec: Dict[str, Any], system: System, is_exe: bool = False) -> Elf:
    """The Elf of one object description."""
    unknown = set(spec) - OBJECT_KEYS - OTHER_KEYS
    if unknown:
        raise ValueError("unknown keys of an object: %s" % ", ".join(sorted(unknown)))
    if "dynamic" in spec:
        dynamic = [tuple(entry) if isinstance(entry, (list, tuple)) else next(iter(entry.items()))
                   for entry in spec["dynamic"]]
    else:
        dynamic = [("NEEDED", name) for name in as_list(spec.get("needed", []))]
        for key, tag in STRING_TAGS:
            dynamic += [(tag, value) for value in as_list(spec.get(key, []))]
    if "flags" in spec:
        dynamic.append(("FLAGS", as_list(spec["flags"])))
    for key, tag in (("symbolic", "SYMBOLIC"), ("bind_now", "BIND_NOW")):
        if spec.get(key):
            dynamic.append((tag, 0))
    flags_1 = as_list(spec.get("flags_1", []))
    elf = Elf(dynamic=dynamic)
    for key in DIRECT_KEYS:
        if key in spec:
            setattr(elf, key, spec[key])
    if elf.bits == 32:
        elf.machine, elf.hash = spec.get("machine", "i386"), spec.get("hash", "sysv")
    elf.symbols = [symbol(s) for s in spec.get("symbols", [])]
    elf.relocs = [Reloc(**r) if isinstance(r, dict) else Reloc(*as_list(r))
                  for r in spec.get("relocs", [])]
    elf.symbols += [definition(text) for text in as_list(spec.get("defines", []))]
    for text in as_list(spec.get("uses", [])):
        use(elf, text)
    elf.rodata = [text.encode() for text in spec.get("rodata", [])]
    if "build_id" in spec:
        elf.build_id = bytes.fromhex(spec["build_id"])
    if "abi_tag" in spec:
        elf.notes.append(elfwriter.abi_tag(*spec["abi_tag"]))
    for name in as_list(spec.get("broken", [])):
        for key, value in BROKEN[name].items():
            if key == "patch":
                elf.patch = {**elf.patch, **value}
            else:
                setattr(elf, key, value)
    if is_exe:
        elf.kind = spec.get("kind", "pie")
        elf.interp = spec.get("interp", system.interp)
        if not any(value == DRIVER for _, value in elf.dynamic):
            last = max([n for n, (tag, _) in enumerate(elf.dynamic) if tag == "NEEDED"], default=-1)
            elf.dynamic.insert(last + 1, ("NEEDED", DRIVER))
        elf.relocs.append(Reloc("GLOB_DAT", "driver_main"))
        elf.entry = elfwriter.start_code()
    if elf.kind == "pie":
        flags_1 = flags_1 + ["pie"]
    if flags_1:
        elf.dynamic.append(("FLAGS_1", flags_1))
    return elf


def symbol(spec: Any) -> Symbol:
    """From a dict, or from "NAME", "NAME@VERSION", "NAME@@VERSION"."""
    if isinstance(spec, dict):
        spec = dict(spec)
        if isinstance(spec.get("content"), str):
            spec["content"] = bytes.fromhex(spec["content"])
        return Symbol(**spec)
    name, at, version = spec.partition("@")
    return Symbol(name, version=version.lstrip("@") or None,
                  default=not at or version.startswith("@"))


def definition(text: str) -> Symbol:
    """One of `defines`: "NAME[@VERSION|@@VERSION] WORD..."; words are a binding, a type and a
    visibility as in elfwriter.py."""
    name, *words = text.split()
    result = symbol(name)
    for word in words:
        if word in elfwriter.BIND:
            result.bind = word
        elif word in elfwriter.TYPE:
            result.type = word
        elif word in elfwriter.VISIBILITY:
            result.visibility = word
        else:
            raise ValueError("defines: %s: unknown word %s" % (text, word))
    if result.type == "object":
        result.content = "self"
    return result


USES = {"call": "JUMP_SLOT", "data": "GLOB_DAT", "word": "64", "copy": "COPY"}


def use(elf: Elf, text: str) -> None:
    """One of `uses`: "NAME[@VERSION] WORD...".  Words: how it is used (USES; default: call),
    `weak`, `object`, `canonical`, `from:FILE` with a version.  What the object defines itself
    is used as such; the words then only say how."""
    name, *words = text.split()
    wanted = symbol(name)
    wanted.defined, wanted.type, kind = False, "func", "JUMP_SLOT"
    for word in words:
        if word in USES:
            kind = USES[word]
        elif word == "weak":
            wanted.bind = "weak"
        elif word == "canonical":
            wanted.canonical = True
        elif word == "object":
            wanted.type = "object"
        elif word.startswith("from:"):
            wanted.version_file = word[5:]
        else:
            raise ValueError("uses: %s: unknown word %s" % (text, word))
    known = any(s.name == wanted.name and wanted.version in (None, s.version) for s in elf.symbols)
    if kind == "COPY" and not known:
        wanted.defined, wanted.type, wanted.content = True, "object", b"\0" * 8
    if not known:
        elf.symbols.append(wanted)
    reloc = Reloc(kind, wanted.name, wanted.version)
    if reloc not in elf.relocs:
        elf.relocs.append(reloc)


def has_symbols(universe: Dict[str, Any]) -> bool:
    """Does anything here refer to symbols?"""
    return any(isinstance(spec, dict) and ("uses" in spec or "relocs" in spec)
               for spec in universe.get("files", {}).values())


def bound_now(universe: Dict[str, Any]) -> Dict[str, Any]:
    """The same with LD_BIND_NOW=1 in its environment."""
    return {**universe, "env": {**universe.get("env", {}), "LD_BIND_NOW": "1"}}


def normalise_cache(cache: Any) -> Dict[str, Any]:
    if isinstance(cache, list):
        cache = {"entries": cache}
    entries = []
    for entry in cache.get("entries", []):
        if isinstance(entry, str):
            key, _, path = entry.partition(" => ")
            entry = {"key": key, "path": path}
        entries.append(entry)
    return {**cache, "entries": entries}


class Root:
    """A universe made into a directory.  `path` is the directory."""

    def __init__(self, universe: Dict[str, Any], path: str, system: System,
                 depot: "Depot") -> None:
        self.universe, self.path, self.system = universe, path, system
        os.makedirs(path, 0o755, exist_ok=True)
        os.chmod(path, 0o755)
        files = universe.get("files", {})
        early = [p for p, spec in files.items()
                 if isinstance(spec, dict) and "symlink" in spec and spec.get("early")]
        for name in early:
            self._write(name, files[name])
        if universe.get("system_files", True):
            for name in depot.files:
                depot.link(name, self._host(name, make=True))
        depot.link(DRIVER, self._host(DRIVER, make=True))
        for name, spec in files.items():
            if name not in early:
                self._write(name, spec or {})
        if universe.get("cache") is not None:
            self._put("/etc/ld.so.cache", ldcache.build(normalise_cache(universe["cache"])))
        if universe.get("preload_file") is not None:
            self._put("/etc/ld.so.preload", universe["preload_file"].encode())
        self.proc_is_real = bool(universe.get("proc"))
        os.makedirs(os.path.join(path, "proc/self"), exist_ok=True)
        if self.proc_is_real:
            os.rmdir(os.path.join(path, "proc/self"))
        else:
            os.symlink(self.canonical(universe["exe"]), os.path.join(path, "proc/self/exe"))
        os.makedirs(self._host(universe.get("cwd", "/")), 0o755, exist_ok=True)

    def canonical(self, name: str) -> str:
        """The path without symbolic links, as seen from inside the root."""
        host = self._host(name, follow=True)
        return host[len(self.path):] or "/"

    def _host(self, name: str, follow: bool = False, make: bool = False) -> str:
        """The place of a root path on the host; links are followed inside the root."""
        todo = name.split("/")[::-1]
        done: List[str] = []
        budget = 40
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                del done[-1:]
                continue
            here = "/".join([self.path] + done + [part])
            if (follow or any(p not in ("", ".") for p in todo)) and os.path.islink(here):
                budget -= 1
                if budget < 0:
                    break
                target = os.readlink(here)
                if target.startswith("/"):
                    done = []
                todo += target.split("/")[::-1]
                continue
            done.append(part)
        host = "/".join([self.path] + done)
        if make:
            os.makedirs(os.path.dirname(host), 0o755, exist_ok=True)
        return host

    def _put(self, name: str, data: bytes, mode: int = 0o755) -> None:
        host = self._host(name, make=True)
        fd = os.open(host, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def _write(self, name: str, spec: Dict[str, Any]) -> None:
        if not name.startswith("/"):
            raise ValueError("not an absolute path: %s" % name)
        host = self._host(name, make=True)
        if os.path.lexists(host) and not (os.path.isdir(host) and "dir" in spec):
            os.unlink(host)         # a file of the system, or through an earlier link
        if "symlink" in spec:
            os.symlink(spec["symlink"], host)
            return
        if "hardlink" in spec:
            os.link(self._host(spec["hardlink"], follow=True), host)
        elif "copy" in spec:
            shutil.copyfile(self._host(spec["copy"], follow=True), host)
            os.chmod(host, 0o755)
        elif "dir" in spec:
            os.makedirs(host, exist_ok=True)
        elif "fifo" in spec:
            os.mkfifo(host)
        elif "text" in spec:
            self._put(name, spec["text"].encode())
        else:
            is_exe = name == self.universe.get("program", self.universe["exe"])
            self._put(name, object_elf(spec, self.system, is_exe).build())
            if is_exe and self.universe.get("secure"):
                os.chmod(host, 0o4755)
        if "mode" in spec:
            mode = spec["mode"]
            os.chmod(host, int(mode, 8) if isinstance(mode, str) else mode)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class Depot:
    """One copy of the system's files and of the driver, to be hard-linked into roots."""

    def __init__(self, path: str, system: System, driver: str) -> None:
        os.makedirs(path, exist_ok=True)
        self.path = path
        self.files = [system.interp] + [lib for lib in system.libraries]
        for name in self.files:
            self._store(name, name)
        self._store(DRIVER, driver)

    def _place(self, name: str) -> str:
        return os.path.join(self.path, name.strip("/").replace("/", "+"))

    def _store(self, name: str, source: str) -> None:
        place = self._place(name)
        if not os.path.exists(place):
            shutil.copyfile(source, place + ".new")
            os.chmod(place + ".new", 0o755)
            os.rename(place + ".new", place)

    def link(self, name: str, host: str) -> None:
        try:
            os.link(self._place(name), host)
        except FileExistsError:
            pass


def events_of(universe: Dict[str, Any]) -> List[Dict[str, Any]]:
    """The events, in full form."""
    result = []
    for event in universe.get("events", []):
        if isinstance(event, str):
            event = {"open": event}
        flags = event.get("flags", "now,local")
        flags = flags.split(",") if isinstance(flags, str) else list(flags)
        result.append({"open": event["open"], "from": event.get("from"), "flags": flags})
    return result


def scratch_directory(given: Optional[str] = None) -> str:
    """Where roots are made: TMPDIR, but never a file system without set-user-ID bits
    if another is at hand."""
    for base in filter(None, [given, os.environ.get("TMPDIR"), "/tmp", "/var/tmp"]):
        if os.path.isdir(base) and os.access(base, os.W_OK):
            if not os.statvfs(base).f_flag & os.ST_NOSUID:
                return tempfile.mkdtemp(prefix="ncclwhich-test.", dir=base)
    return tempfile.mkdtemp(prefix="ncclwhich-test.")
