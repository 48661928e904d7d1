"""Random universes about symbols: who provides what.

The names are few, so that every one has several definitions and interposition is the rule,
not the exception.  Kept out, because two correct loaders could differ or because glibc
gives up on purpose:

- lazy calls of STB_GNU_UNIQUE symbols: which of two lazy calls comes first decides;
- IFUNCs in the program: libraries that use them cannot be relocated before it;
- for the most part, version needs of a file without any version table: an assertion of
  glibc (up to 2.40) fails when such a file provides the symbol.
"""

import random
from typing import Any, Dict, List, Set

import generate
from system import System
from universe import OTHER_KEYS

FUNCTIONS = ["alpha", "beta", "gamma", "delta"]
DATA = ["table", "state"]
UNIQUE = "single"
DIRECTORIES = ["/a", "/b", "/c"]
STEMS = ["libn.so", "libm1.so", "libshim.so", "libx.so", "liby.so", "libz.so"]


class Symbols:
    """Adds symbols to the objects of one universe."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.weak = 0               # how often a reference is weak
        self.functions = source.sample(FUNCTIONS, source.randint(1, 3))
        self.data = source.sample(DATA, source.choice([0, 1, 1, 2]))
        self.unique = self.chance(50)
        self.versions = self.chance(35)
        self.often = source.choice([35, 50, 65])    # how often an object defines a name
        self.calm = self.chance(80)                 # references are such that little fails

    def chance(self, percent: float) -> bool:
        return self.random.random() * 100 < percent

    def decorate(self, universe: Dict[str, Any]) -> None:
        program = universe.get("program", universe["exe"])
        starting = self.starting(universe, program)
        for path, spec in universe["files"].items():
            if not OTHER_KEYS & set(spec):
                self.weak = 15 if not self.calm else 90 if path in starting else 40
                self.decorate_object(spec, path == program)

    def decorate_object(self, spec: Dict[str, Any], is_program: bool) -> None:
        needs = self.needs(spec)
        verdefs = spec.get("verdefs", [])
        if self.versions and not verdefs and not is_program and self.chance(50):
            verdefs = spec["verdefs"] = ["V1", "V2", "V3"][:self.random.randint(1, 3)]
        defines: List[str] = []
        uses: List[str] = []
        bind_now = self.chance(15)
        for name in self.functions + self.data + [UNIQUE] * self.unique:
            words = "" if name in self.functions else " object"
            own = []
            if self.chance(self.often * (0.2 if is_program else 1)):
                own = self.define(name, words, verdefs, is_program)
                defines += own
            if not self.chance(65):
                continue
            for kind in self.kinds(name, bind_now):
                uses.append(self.use(name, words, kind, own, needs, is_program))
        if is_program:
            for name in self.data + [UNIQUE] * self.unique:
                if self.chance(10) and not any(d.split("@")[0].split()[0] == name
                                               for d in defines + uses):
                    uses.append(name + " copy")
        if defines:
            spec["defines"] = defines
        if uses:
            spec["uses"] = uses
        if bind_now:
            self.bind_now(spec)
        if self.chance(15):
            self.symbolic(spec)
        if self.versions and not verdefs and self.chance(85):
            self.need_libc(spec)

    def starting(self, universe: Dict[str, Any], program: str) -> Set[str]:
        """About what is there from the start: everything of the names that are needed."""
        files = universe["files"]
        found = {program} | set(universe.get("env", {}).get("LD_PRELOAD", "").split())
        todo = [path for path in found if path in files]
        while todo:
            spec = files[todo.pop()]
            for name in self.needs(files.get(spec.get("copy"), spec)):
                more = [path for path in files if path.endswith("/" + name) and path not in found]
                found |= set(more)
                todo += more
        return found | {files[path]["copy"] for path in found if "copy" in files.get(path, {})}

    @staticmethod
    def needs(spec: Dict[str, Any]) -> List[str]:
        """What it NEEDs by a bare name."""
        if "dynamic" in spec:
            names = [value for tag, value in spec["dynamic"] if tag == "NEEDED"]
        else:
            names = spec.get("needed", [])
        return [name for name in names if "/" not in name and "$" not in name]

    def define(self, name: str, words: str, verdefs: List[str], is_program: bool) -> List[str]:
        if name == UNIQUE:
            words += " unique"
        elif self.chance(12):
            words += " weak"
        elif name in self.functions and not is_program and self.chance(6):
            words += " ifunc"
        if self.chance(8):
            words += " protected"
        elif self.chance(5):
            words += " hidden"
        if not verdefs:
            return [name + words]
        version = self.random.choice(verdefs)
        kind = self.random.choice(["base", "default", "default", "old", "both", "both"])
        if kind == "both" and len(verdefs) > 1:
            old = self.random.choice(["@", "@", "@@"])
            return [name + old + verdefs[-2] + words, name + "@@" + verdefs[-1] + words]
        return [name + {"base": "", "old": "@" + version}.get(kind, "@@" + version) + words]

    def kinds(self, name: str, bind_now: bool) -> List[str]:
        if name in self.functions or (name == UNIQUE and bind_now):
            return self.random.choice([[""]] * 4 + [[" data"], [" word"], ["", " data"],
                                                    ["", " word"], [" data", " word"]])
        return self.random.choice([[" data"], [" data"], [" word"], [" data", " word"]])

    def use(self, name: str, words: str, kind: str, own: List[str], needs: List[str],
            is_program: bool) -> str:
        if own:
            return self.random.choice(own).split()[0].replace("@@", "@") + kind
        text = name
        if self.versions and needs and self.chance(50):
            text += "@%s from:%s" % (self.random.choice(["V1"] * 5 + ["V2"]),
                                     self.random.choice(needs))
        text += words + kind
        if self.chance(self.weak):
            text += " weak"
        if is_program and not kind and name in self.functions and "@" not in text \
                and self.chance(30):
            text += " canonical"
        return text

    def bind_now(self, spec: Dict[str, Any]) -> None:
        way = self.random.randrange(3)
        if way == 0:
            spec["flags"] = list(spec.get("flags", [])) + ["bind_now"]
        elif way == 1:
            spec["flags_1"] = list(spec.get("flags_1", [])) + ["now"]
        else:
            spec["bind_now"] = True

    def symbolic(self, spec: Dict[str, Any]) -> None:
        if self.chance(50):
            spec["flags"] = list(spec.get("flags", [])) + ["symbolic"]
        else:
            spec["symbolic"] = True

    @staticmethod
    def need_libc(spec: Dict[str, Any]) -> None:
        """As nearly every real library does; so it has a version table."""
        if "dynamic" in spec:
            spec["dynamic"].append(["NEEDED", "libc.so.6"])
        else:
            spec["needed"] = list(spec.get("needed", [])) + ["libc.so.6"]
        spec["verneeds"] = {**spec.get("verneeds", {}), "libc.so.6": ["GLIBC_2.2.5"]}


class Generator:
    """A universe where finding files is easy and the order of events is not."""

    def __init__(self, source: random.Random, system: System) -> None:
        self.random, self.system = source, system

    def chance(self, percent: float) -> bool:
        return self.random.random() * 100 < percent

    def universe(self) -> Dict[str, Any]:
        pick = self.random.choice
        stems = self.random.sample(STEMS, self.random.randint(3, 6))
        dirs = self.random.sample(DIRECTORIES, self.random.randint(1, 3))
        files: Dict[str, Any] = {"/app/prog": {}}
        for stem in stems:
            files[pick(dirs) + "/" + stem] = {"soname": stem} if self.chance(75) else {}
        own = list(files)
        program = files["/app/prog"]
        for path in own[1:]:
            self.connect(files[path], stems, path.rsplit("/", 1)[1], dirs)
        if self.chance(20):         # the same name elsewhere, but another file
            stem = pick(stems)
            path = pick(DIRECTORIES) + "/" + stem
            if path not in files:
                files[path] = {"soname": stem}
                self.connect(files[path], stems, stem, dirs)
        for _ in range(pick([0, 1, 1, 2])):     # two instances of the same
            path = pick(own[1:])
            copy = pick(DIRECTORIES) + "/" + path.rsplit("/", 1)[1]
            if copy not in files:
                files[copy] = {"copy": path}
        program["needed"] = self.random.sample(stems, min(len(stems), pick([0, 0, 0, 1, 1, 2])))
        program[pick(["rpath", "runpath"])] = ":".join(dirs)
        if self.chance(30):
            program["kind"] = "exec"
        universe: Dict[str, Any] = {"exe": "/app/prog", "files": files}
        libraries = [path for path in files if path != "/app/prog"]
        if self.chance(15):
            universe["env"] = {"LD_PRELOAD": " ".join(
                self.random.sample(libraries, min(len(libraries), pick([1, 1, 2]))))}
        universe["events"] = self.events(libraries, stems)
        return universe

    def connect(self, spec: Dict[str, Any], stems: List[str], own: str, dirs: List[str]) -> None:
        """Needs: mostly what comes later in the list, so that most graphs have no circle."""
        later = stems[stems.index(own) + 1:]
        if self.chance(12):
            later = [stem for stem in stems if stem != own]
        spec["needed"] = self.random.sample(later, min(len(later),
                                                       self.random.choice([0, 1, 1, 2, 2])))
        order = self.random.sample(dirs, len(dirs))
        if self.chance(70):
            spec[self.random.choice(["rpath", "runpath", "runpath"])] = ":".join(order)
        if self.chance(3) and later:
            spec[self.random.choice(["auxiliary", "filter"])] = self.random.choice(later)
        if self.chance(15):
            spec["hash"] = self.random.choice(["sysv", "both", "both"])

    def events(self, libraries: List[str], stems: List[str]) -> List[Dict[str, Any]]:
        result: List[Dict[str, Any]] = []
        for _ in range(self.random.choice([1, 2, 3, 3, 4, 5])):
            flags = [self.random.choice(["now", "lazy", "lazy"])]
            name = self.random.choice(libraries if self.chance(70) else stems)
            if self.chance(25):
                flags.append("global")
            if self.chance(20):
                flags.append("deepbind")
            if self.chance(4):
                flags.append("nodelete")
            if self.chance(5):
                flags.append("noload")
            if result and self.chance(20):      # make global what was opened before
                name, flags = self.random.choice(result)["open"], [flags[0], "noload", "global"]
            if self.chance(2):
                flags = ["now", "newlm"]
            caller = None if self.chance(60) else "#%d" % self.random.randrange(8)
            result.append({"open": name, "from": caller, "flags": ",".join(flags)})
        return result


def make(seed: int, number: int, system: System) -> Dict[str, Any]:
    """Universe `number` of `seed`: three of four made for the purpose, the others ordinary
    ones with symbols added."""
    source = random.Random("bindings:%d:%d" % (seed, number))
    if number % 4 == 3:
        universe = generate.make(seed, number, system)
    else:
        universe = Generator(source, system).universe()
    Symbols(source).decorate(universe)
    return universe
