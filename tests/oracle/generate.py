"""Make random universes.  Universe i of seed S is the same on every machine with
the same loader facts, and can be made alone.

The aim is to meet the loader's rules often in combination, so names come from a
small pool, directories are few, and most requests can be served somehow.  What makes
start-up fail at once (junk files, missing dependencies) is rarer than what only
changes the answer.
"""

import random
from typing import Any, Dict, List

from system import System

STEMS = ["libp.so", "libp.so.1", "libq.so.2", "libr.so", "libs.so.03", "libt.so"]
DIRECTORIES = ["/d1", "/d2", "/d3", "/app", "/d1/sub", "/opt/l"]
DAMAGE_SKIPPED = ["class", "machine"]
DAMAGE_FATAL = ["empty", "half-header", "magic", "data", "osabi", "abiversion", "padding",
                "type-rel", "no-load", "no-dynamic", "phdrs-beyond-eof", "empty-dynamic",
                "phentsize", "version"]


class Generator:
    def __init__(self, seed: int, number: int, system: System) -> None:
        self.random = random.Random("%d:%d" % (seed, number))
        self.system = system
        self.files: Dict[str, Dict[str, Any]] = {}
        self.objects: List[str] = []            # paths of whole objects, without the program
        self.sonames: Dict[str, str] = {}
        self.search_dirs: List[str] = []        # to search but not to put files in

    def chance(self, percent: float) -> bool:
        return self.random.random() * 100 < percent

    def pick(self, choices):
        return choices[int(self.random.random() * len(choices))]

    def universe(self) -> Dict[str, Any]:
        self.dirs = self.random.sample(DIRECTORIES, self.random.randint(1, 4))
        if self.chance(25):
            self.dirs.append(self.pick(self.system.system_dirs))
        if self.chance(8):
            self.dirs.append(self.pick(["/d1", "/d2"]) + "/" + self.system.lib)
        self.exe = self.pick(["/app/prog", "/app/bin/prog", "/prog", self.dirs[0] + "/prog"])
        self.cwd = self.pick(["/"] * 3 + self.dirs)
        self.generous = self.chance(85)         # paths mostly reach everything
        self.names = self.random.sample(STEMS, self.random.randint(2, len(STEMS)))
        for _ in range(self.random.randint(1, 7)):
            self.add_object()
        for _ in range(self.random.choice([0, 0, 1, 1, 2, 3])):
            self.add_other_file()
        for path in list(self.objects):
            self.connect(path, self.files[path])
        program: Dict[str, Any] = {}
        self.connect(self.exe, program, program_itself=True)
        if self.chance(15):
            program["kind"] = "exec"
        if self.chance(4):
            program["dynamic"].append(["SONAME", self.pick(self.names)])
        files = {self.exe: program, **self.files}
        universe: Dict[str, Any] = {"exe": self.exe, "files": files}
        if self.chance(6):
            link = self.pick(["/start", "/app/start", self.dirs[-1] + "/start"])
            if link not in files:
                files[link] = {"symlink": self.exe}
                universe["exe"] = link
                universe["program"] = self.exe
        if self.cwd != "/":
            universe["cwd"] = self.cwd
        env = self.environment()
        if env:
            universe["env"] = env
        if self.chance(55):
            universe["cache"] = self.cache()
        if self.chance(4):
            universe["preload_file"] = self.pick([" ", "\n", ":"]).join(
                self.request(self.exe) for _ in range(self.random.randint(1, 2)))
        if self.chance(4):
            universe["secure"] = True
        events = [self.event() for _ in range(self.pick([0, 0, 1, 2, 3, 4]))]
        if events:
            universe["events"] = events
        return universe

    # -- files -----------------------------------------------------------

    def place(self) -> str:
        """A path for a library: mostly DIR/NAME, sometimes under a hwcaps directory."""
        directory, name = self.pick(self.dirs), self.pick(self.names)
        if self.chance(10) and self.system.levels_all:
            directory += "/glibc-hwcaps/" + self.pick(self.system.levels_all + ["x86-64-v9"])
        elif self.chance(6):
            directory += "/" + self.pick(self.system.legacy or ["tls", "x86_64"])
        return directory + "/" + name

    def add_object(self) -> None:
        path = self.place()
        if path in self.files or path == self.exe:
            return
        spec: Dict[str, Any] = {}
        if self.chance(60):
            self.sonames[path] = path.rsplit("/", 1)[1] if self.chance(60) else self.pick(STEMS)
        if self.chance(12):
            spec["verdefs"] = ["V1"]
        if self.chance(20):
            spec["hash"] = self.pick(["sysv", "both", "none"])
        if self.chance(1.5):
            spec["kind"] = self.pick(["pie", "exec"])
        self.files[path] = spec
        self.objects.append(path)

    def add_other_file(self) -> None:
        path = self.place()
        if path in self.files or path == self.exe:
            return
        kind = self.pick(["symlink"] * 4 + ["hardlink", "copy"] * 2 + ["skipped"] * 2
                         + ["fatal", "dir", "dangling", "loop", "libc", "relative", "dirlink",
                            "decoy", "filedir"])
        if kind in ("symlink", "hardlink", "copy", "relative") and not self.objects:
            return
        if kind in ("symlink", "hardlink", "copy"):
            self.files[path] = {kind: self.pick(self.objects)}
        elif kind == "relative":
            directory, target = path.rsplit("/", 1)[0], self.pick(self.objects)
            self.files[path] = {"symlink": "../" * directory.count("/") + target[1:]}
        elif kind == "skipped":
            damage = self.pick(DAMAGE_SKIPPED)
            self.files[path] = {"broken": damage}
            if self.chance(30):
                self.files[path] = {"bits": 32}
        elif kind == "fatal":
            self.files[path] = {"broken": self.pick(DAMAGE_FATAL)}
            if self.chance(30):
                self.files[path] = {"text": "INPUT(libp.so)\n"}
        elif kind == "dir":
            self.files[path] = {"dir": True}
        elif kind == "dangling":
            self.files[path] = {"symlink": "/nowhere/" + self.pick(self.names)}
        elif kind == "loop":
            self.files[path] = {"symlink": path.rsplit("/", 1)[1]}
        elif kind in ("libc", "decoy"):
            self.add_libc(self.pick(self.dirs) + "/libc.so.6", kind == "decoy")
        elif kind == "dirlink":
            self.files["/alias"] = {"symlink": self.pick(self.dirs)}
            self.search_dirs.append("/alias")
        elif kind == "filedir":
            self.files["/plain"] = {"text": "no directory"}
            self.search_dirs.append("/plain")

    def add_libc(self, path: str, decoy: bool) -> None:
        """A further way to the one libc, or a file of that name to be passed over."""
        if path == self.system.libc:
            return
        if decoy:
            self.files[path] = {"broken": self.pick(DAMAGE_SKIPPED)}
        else:
            self.files[path] = {self.pick(["hardlink", "symlink"]): self.system.libc}

    # -- names and paths -------------------------------------------------

    def request(self, owner: str, slashes: int = 20) -> str:
        """A name to ask for: usually one that is served somewhere."""
        known = [path for path in self.files if "/lib" in path and path.count("/") > 1]
        if self.chance(slashes) and known:
            path = self.pick(known)
            style = self.random.randrange(8)
            if style == 0:
                return "$ORIGIN/" + path.rsplit("/", 1)[1]
            if style == 1 and self.cwd == "/":
                return path[1:]
            if style == 2:
                directory, name = path.rsplit("/", 1)
                return directory + "/" + self.pick(["./", "../" + directory.rsplit("/", 1)[1] + "/",
                                                    "/"]) + name
            if style == 3 and self.chance(50):
                return "${ORIGIN}/../" + path.split("/", 2)[2] if path.count("/") > 1 else path
            return path
        if known and self.chance(92):
            path = self.pick(known)
            soname = self.sonames.get(path)
            return soname if soname and self.chance(40) else path.rsplit("/", 1)[1]
        if self.chance(4):
            return self.pick(["libmissing.so", "libs.so.3", "libs.so.003", "libc.so.6",
                              self.system.interp.rsplit("/", 1)[1], self.system.interp,
                              "$LIB", "lib$PLATFORM.so"])
        return self.pick(self.names)

    def element(self, relative: bool = True) -> str:
        directory = self.pick(self.dirs + self.search_dirs)
        style = self.random.randrange(26)
        if style == 0:
            return "$ORIGIN"
        if style == 1:
            return "${ORIGIN}" + self.pick(["", "/", "/.", "/sub", "/../d2", "/../d1"])
        if style == 2:
            return "$ORIGIN/.." + directory
        if style == 3:
            return self.pick(["/d1", "/d2"]) + "/" + self.pick(["$LIB", "${LIB}", "$LIBx"])
        if style == 4:
            return directory + "/$PLATFORM"
        if style == 5 and relative:
            return self.pick(["", ".", "d1", "./d2", "sub", ".."])
        if style == 6:
            return directory + self.pick(["/", "//", "/.", "/../" + directory.rsplit("/", 1)[1]])
        if style == 7:
            return "/missing"
        if style == 8 and self.system.levels:
            return directory + "/glibc-hwcaps/" + self.pick(self.system.levels)
        return directory

    def path_list(self, separators: str = ":", relative: bool = True) -> str:
        count = self.pick([1, 1, 2, 2, 3])
        text = self.element(relative)
        for _ in range(count - 1):
            text += self.pick(separators) + self.element(relative)
        if self.generous and self.chance(60):
            for directory in self.dirs:
                text += self.pick(separators) + directory
        return text

    def connect(self, path: str, spec: Dict[str, Any], program_itself: bool = False) -> None:
        """Give an object its needs and paths."""
        count = self.pick([1, 1, 2, 2, 3] if program_itself else [0, 0, 0, 1, 1, 2])
        dynamic = [["NEEDED", self.request(path, 10)] for _ in range(count)]
        for tag, percent in (("AUXILIARY", 6), ("FILTER", 3)):
            # A filter in the program itself leads the loader into strange places.
            if self.chance(percent / 6 if program_itself else percent):
                dynamic.insert(self.random.randint(0, len(dynamic)), [tag, self.request(path, 10)])
        if path in self.sonames:
            dynamic.append(["SONAME", self.sonames[path]])
        kind = self.pick(["rpath", "runpath", "both", "none"] if not program_itself else
                         ["rpath"] * 3 + ["runpath"] * 3 + ["both", "none"])
        if kind in ("rpath", "both"):
            dynamic.append(["RPATH", self.path_list()])
        if kind in ("runpath", "both"):
            dynamic.append(["RUNPATH", self.path_list()])
        if self.chance(25):
            self.random.shuffle(dynamic)
        flags = [flag for flag, percent in (("nodeflib", 5), ("noopen", 1.5), ("nodelete", 3),
                                            ("global", 2)) if self.chance(percent)]
        if flags:
            spec["flags_1"] = flags
        if self.chance(4):
            names = [v for t, v in dynamic if t == "NEEDED" and "/" not in v]
            if names:
                spec["verneeds"] = {self.pick(names): [self.pick(["V1", "V1", "V2"])]}
        spec["dynamic"] = dynamic

    # -- everything else -------------------------------------------------

    def environment(self) -> Dict[str, str]:
        env = {}
        if self.chance(45):
            text = self.path_list(":::;")
            if self.chance(12):
                text = self.pick([":" + text, text + ":", text + "::" + self.element(), text + ";"])
            env["LD_LIBRARY_PATH"] = text
        if self.chance(15):
            env["LD_PRELOAD"] = self.pick([" ", ":"]).join(
                self.request(self.exe) for _ in range(self.pick([1, 1, 2])))
        if self.chance(1):
            env["LD_BIND_NOW"] = "1"
        return env

    def cache(self) -> Dict[str, Any]:
        entries: List[Dict[str, Any]] = []
        for path, spec in self.files.items():
            if path == self.exe or self.chance(35):
                continue
            name = path.rsplit("/", 1)[1]
            soname = self.sonames.get(path)
            entry: Dict[str, Any] = {"key": soname if soname and self.chance(60) else name,
                                     "path": path}
            marker = "/glibc-hwcaps/"
            if marker in path:
                entry["level"] = path.split(marker)[1].split("/")[0]
            elif self.chance(8):
                entry["level"] = self.pick(self.system.levels_all + ["other"])
            elif self.chance(6):
                entry["hwcap"] = self.pick([2, 4, 6, 1 << 63, 0x0004000000000006,
                                            0x0008000000000000, 0x0004000000000000,
                                            1 << 63 | 2, 1 << 10])
            if self.chance(6):
                entry["path"] = self.pick(["/gone/", self.pick(self.dirs) + "/"]) + name
            if self.chance(4):
                entry["flags"] = self.pick(["i386", "aarch64", "x32", 1])
            entries.append(entry)
        self.random.shuffle(entries)
        result: Dict[str, Any] = {"entries": entries}
        if self.chance(15):
            result["layout"] = self.pick(["combined", "old"])
        if self.chance(5):
            result["endian"] = self.pick(["unknown", "invalid", "big"])
        if self.chance(2):
            result["truncate"] = self.random.randrange(0, 200)
        return result

    def event(self) -> Dict[str, Any]:
        flags = [self.pick(["now", "lazy"])]
        if self.chance(35):
            flags.append("global")
        if self.chance(10):
            flags.append("noload")
        if self.chance(6):
            flags.append("deepbind")
        if self.chance(6):
            flags.append("nodelete")
        if self.chance(2):
            flags = ["now", "newlm"]
        caller = None if self.chance(30) else "#%d" % self.random.randrange(8)
        return {"open": self.request(self.exe, 35), "from": caller, "flags": ",".join(flags)}


def make(seed: int, number: int, system: System) -> Dict[str, Any]:
    """Universe `number` of `seed`."""
    return Generator(seed, number, system).universe()
