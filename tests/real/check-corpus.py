#!/usr/bin/env python3
"""Compares what `ncclwhich opens` lists for real consumers with what they really open; see check-corpus.sh.

usage: NCCLWHICH=path/to/ncclwhich check-corpus.py --cache DIRECTORY --work DIRECTORY [--markdown] [NAME...]

The truth is the union of two records of one run: every call of dlopen and dlmopen with its flags and its place
(record.c, preloaded), and what LD_DEBUG=files says was loaded dynamically and for whom. Calls are counted for the
files of a consumer; those of a Python file are made by ctypes.

A name that was opened is `found` if it is listed; otherwise it is missed, and it is said whether a computed name is
listed at the very place of the call, elsewhere in the file, or not at all. A name that is listed and was not opened is
extra. What is missed or extra has to be explained in corpus.yaml; for a libnccl that is opened where nothing is listed,
not even a computed name, no explanation counts. Besides, the names of libnccl and the files that hide their loader have
to be those that corpus.yaml expects.
"""

import argparse
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
PLATFORMS = [f"manylinux_2_{minor}" for minor in range(39, 4, -1)] + ["manylinux2014", "manylinux2010", "manylinux1"]
NOT_NEEDED = re.compile(r"\.(a|bc|h|hpp|cuh|cu|pyi|pxd|pyx|cmake|lib|o|fatbin)$|/(include|tests?|testing/_data)/")
# Of these wheels only the files that are read.
ONLY = {"vllm": re.compile(r"/pynccl_wrapper\.py$|vllm/utils/nccl\.py$"), "sglang": re.compile(r"/pynccl_wrapper\.py$")}
KEPT = {"torch"}  # the wheel itself stays in the cache: check-real.sh has it there, too
DYNAMIC = re.compile(r"file=(.*) \[\d+\];  dynamically loaded by (.*) \[\d+\]$")
OFFLINE = re.compile(r"could(n.t| not) (resolve|connect|find)|no matching distribution|network|offline|timed? ?out|"
                     r"dial tcp|ENOTFOUND|ECONNREFUSED|not found: module|failed to (download|get|fetch)", re.I)
RTLD = {"global": 0x100, "nodelete": 0x1000, "deepbind": 8, "noload": 4}


class Skip(Exception):
    """A consumer cannot be checked here, and why."""


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                          stdin=subprocess.DEVNULL, **options)


# --- what is fetched ------------------------------------------------------------------------------------------------

class Cache:
    def __init__(self, directory, work, corpus):
        self.directory, self.work, self.corpus = directory, work, corpus
        self.sites, self.runs = {}, {}
        self.python = find_python()

    def download(self, name, version):
        """Path of the wheel; in the cache for KEPT, else in the work directory."""
        stem = f"{name.replace('-', '_')}-{version}"
        directory = os.path.join(self.directory, "wheels") if name in KEPT else os.path.join(self.work, "wheels")
        os.makedirs(directory, exist_ok=True)
        found = glob.glob(os.path.join(directory, f"{stem}-*.whl"))
        if not found:
            print(f"# downloading {name} {version}", flush=True)
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                       "--no-cache-dir", "--no-deps", "--only-binary=:all:", "--python-version", "3.12",
                       "--dest", directory, f"{name}=={version}"]
            done = run(command + [f"--platform={platform}_x86_64" for platform in PLATFORMS])
            found = glob.glob(os.path.join(directory, f"{stem}-*.whl"))
            if done.returncode != 0 or not found:
                raise Skip(f"{name} {version} cannot be downloaded: {last_line(done.stderr)}")
        return found[0]

    def wheel(self, name):
        """Directory of the unpacked wheel, in the cache."""
        version = self.corpus["wheels"][name]
        directory = os.path.join(self.directory, "corpus", f"{name}-{version}")
        if not os.path.isdir(directory):
            scratch = os.path.join(self.work, "unpacking")
            path = self.download(name, version)
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    if name in ONLY and not ONLY[name].search(member) and not member.endswith("/METADATA"):
                        continue
                    if not NOT_NEEDED.search(member):
                        archive.extract(member, scratch)
            os.makedirs(os.path.dirname(directory), exist_ok=True)
            os.rename(scratch, directory)
            if name not in KEPT:
                os.remove(path)
        return directory

    def site(self, names):
        """The site-packages of a virtual environment with these wheels: hard links into the cache."""
        key = tuple(names)
        if key not in self.sites:
            if not self.python:
                raise Skip("no CPython 3.12")
            parts = [self.wheel(name) for name in names]
            venv = os.path.join(self.work, f"venv{len(self.sites)}")
            done = run([self.python, "-m", "venv", "--without-pip", venv])
            if done.returncode != 0:
                raise Skip(f"no virtual environment: {last_line(done.stderr)}")
            site = os.path.join(venv, "lib/python3.12/site-packages")
            for part in parts:
                shutil.copytree(part, site, copy_function=os.link, dirs_exist_ok=True)
            if "torch" in names:
                add_stand_ins(site)
            self.sites[key] = site
        return self.sites[key]

    def nccl(self, version):
        """An older libnccl, where check-wheels.sh keeps it, too."""
        kept = os.path.join(self.directory, "nccl", version, "libnccl.so.2")
        if not os.path.exists(kept):
            path = self.download("nvidia-nccl-cu12", version)
            with zipfile.ZipFile(path) as archive:
                archive.extract("nvidia/nccl/lib/libnccl.so.2", os.path.join(self.work, "older"))
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            os.rename(os.path.join(self.work, "older/nvidia/nccl/lib/libnccl.so.2"), kept)
            os.remove(path)


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"


def find_python():
    candidates = [os.environ.get("PYTHON312"), shutil.which("python3.12")]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.12.*/bin/python3.12")))
    for candidate in filter(None, candidates):
        done = run([candidate, "-c", "import sys, ctypes, venv; print(*sys.version_info[:2], sys.executable)"])
        if done.returncode == 0 and done.stdout.startswith("3 12 "):
            return candidate
    return None


def trace(path):
    """The loader's list: (names not found, files)."""
    interp = "/lib64/ld-linux-x86-64.so.2"
    said = run([interp, path], env={"LD_TRACE_LOADED_OBJECTS": "1"}).stdout
    return set(re.findall(r"^\t(\S+) => not found", said, re.M)), set(re.findall(r" => (/.*) \(0x", said))


def add_stand_ins(site):
    """Libraries in place of the large CUDA libraries that torch needs."""
    names, files = set(), set()
    for name in ("libtorch_cuda.so", "libtorch_python.so"):
        path = os.path.join(site, "torch/lib", name)
        missing, mapped = trace(path)
        names |= missing
        files |= mapped | {path}
    done = run([sys.executable, os.path.join(HERE, "stand_ins.py"), os.path.join(site, "nvidia/cu13/lib"),
                *sorted(names), "--", *sorted(files)])
    if done.returncode != 0:
        raise Skip(f"no stand-ins: {last_line(done.stderr)}")


# --- what is really opened ------------------------------------------------------------------------------------------

class Truth:
    def __init__(self):
        self.calls = {}  # (object, name): {(flags, offset)}
        self.said = ""

    def add(self, caller, name, flags=None, offset=None):
        self.calls.setdefault((caller, name), set())
        if flags is not None:
            self.calls[caller, name].add((flags, offset))


def really_run(cache, command, program, environment=None):
    """Runs it and takes both records. PROGRAM is the file behind "(program)"."""
    truth = Truth()
    record, debug = os.path.join(cache.work, "record"), os.path.join(cache.work, "debug")
    for path in [record, *glob.glob(f"{debug}.*")]:
        if os.path.exists(path):
            os.remove(path)
    home = os.path.join(cache.work, "home")
    os.makedirs(home, exist_ok=True)
    options = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1",
               "NCCL_SOCKET_IFNAME": "lo", "RECORD": record, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": debug,
               "LD_PRELOAD": os.path.join(cache.work, "record.so"), **SETTINGS, **(environment or {})}
    try:
        done = run(command, env=options, cwd=home, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skip(f"{command[0]}: {error}") from error
    truth.said = done.stdout + done.stderr
    if os.path.exists(record):
        with open(record, encoding="utf-8", errors="replace") as file:
            for line in file:
                flags, caller, offset, name = line.rstrip("\n").split("\t", 3)
                truth.add(os.path.realpath(program if caller == "(program)" else caller), name, int(flags, 16),
                          int(offset, 16))
    for path in glob.glob(f"{debug}.*"):
        with open(path, encoding="utf-8", errors="replace") as file:
            for match in filter(None, map(DYNAMIC.search, file)):
                caller = match[2] if "/" in match[2] else program
                truth.add(os.path.realpath(caller), match[1])
    return truth


def build_go(cache):
    go, settings = shutil.which("go"), cache.corpus["go"]
    directory = os.path.join(cache.directory, "go")
    if not go:
        raise Skip("no Go")
    if not os.path.exists(os.path.join(directory, "corpus")):
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        with open(os.path.join(directory, "main.go"), "w", encoding="utf-8") as file:
            file.write(f'package main\n\nimport (\n\t"fmt"\n\n\t"{settings["module"]}/pkg/nvml"\n)\n\n'
                       "func main() {\n\tfmt.Println(nvml.Init())\n}\n")
        environment = {**os.environ, "CGO_ENABLED": "1", "GOTOOLCHAIN": "local"}
        module = f"{settings['module']}@{settings['version']}"
        for command in (["mod", "init", "corpus"], ["get", module], ["build", "."]):
            done = run([go, *command], cwd=directory, env=environment)
            if done.returncode != 0:
                raise Skip(f"go {command[0]}: {last_line(done.stderr)}")
    return os.path.join(directory, "corpus")


def fetch_node(cache):
    npm, node = shutil.which("npm"), shutil.which("node")
    directory, settings = os.path.join(cache.directory, "node"), cache.corpus["node"]
    if not npm or not node:
        raise Skip("no Node")
    if not os.path.isdir(directory):
        done = run([npm, "pack", "--silent", f"{settings['package']}@{settings['version']}"], cwd=cache.work)
        if done.returncode != 0:
            raise Skip(f"npm: {last_line(done.stderr)}")
        archive = os.path.join(cache.work, last_line(done.stdout))
        scratch = os.path.join(cache.work, "node")
        os.makedirs(scratch)
        run(["tar", "-xzf", archive, "-C", scratch])
        os.rename(os.path.join(scratch, "package"), directory)
        os.remove(archive)
    addon = os.path.join(directory, "bins/linux-x64-cuda/llama-addon.node")
    script = (f"const m = {{exports: {{}}}}; process.dlopen(m, '{addon}');"
              f"console.log('addon', Object.keys(m.exports).filter(k => k == 'AddonModel')[0]);"
              f"m.exports.loadBackends('{os.path.dirname(addon)}')")
    return [node, "-e", script], node


def build_engine(cache):
    engine = os.path.join(cache.directory, "target/release/engine")
    if not os.path.exists(engine):
        raise Skip("check-real.sh builds it in the cache: run that first")
    # Its DT_NEEDED is the wheel's copy; a directory without libnccl.so, so that every name is tried.
    library = os.path.join(cache.work, "engine-nccl")
    os.makedirs(library, exist_ok=True)
    link = os.path.join(library, "libnccl.so.2")
    if not os.path.exists(link):
        os.symlink(os.path.join(cache.site(["nvidia-nccl-cu13"]), "nvidia/nccl/lib/libnccl.so.2"), link)
    return engine, {"LD_LIBRARY_PATH": library}


def truth_of(cache, consumer, site):
    how = consumer.get("truth")
    if not how:
        return None
    key = json.dumps([how, consumer.get("wheels")])
    if key not in cache.runs:
        (kind, value), environment = next(iter(how.items())), None
        if kind == "python":
            program = os.path.join(site, "../../../bin/python")
            command = [os.path.normpath(program), "-c", value.replace("SITE", site)]
        elif kind == "call":
            program = os.path.join(cache.work, "call")
            command = [program, *(place(cache, site, word) for word in value)]
        elif kind == "go":
            program = build_go(cache)
            command = [program]
        elif kind == "node":
            command, program = fetch_node(cache)
        else:
            program, environment = build_engine(cache)
            command = [program]
        cache.runs[key] = really_run(cache, command, program, environment)
    return cache.runs[key]


def place(cache, site, word):
    if word.startswith("CACHE/nccl/"):
        cache.nccl(word.split("/")[2])
    return word.replace("SITE", site or "").replace("CACHE", cache.directory)


# --- what ncclwhich lists -------------------------------------------------------------------------------------------

def ask(program, path):
    """The object of the report, None if this is no file that it reads."""
    done = run([program, "opens", "-f", "json", path], env={"LC_ALL": "C"})
    if done.returncode == 2 and "invalid ELF header" in done.stderr:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"ncclwhich opens {path}: status {done.returncode}: {done.stderr.strip()}")
    (answer,) = json.loads(done.stdout)["objects"]
    return answer


def symbol_addresses(path):
    said = run(["nm", "-D", "--defined-only", path]).stdout
    rows = [fields for fields in map(str.split, said.splitlines()) if len(fields) == 3]
    return {name.split("@")[0]: int(address, 16) for address, _, name in rows}


def sites_of(path, answer):
    """Addresses of the calls whose name is said to be computed."""
    sites, symbols = set(), None
    for entry in answer["opens"]:
        where = entry.get("where") or ""
        if not entry["computed"]:
            continue
        name, plus, offset = where.rpartition("+")
        if plus:
            symbols = symbol_addresses(path) if symbols is None else symbols
            if name in symbols:
                sites.add(symbols[name] + int(offset, 16))
        elif where.startswith("0x"):
            sites.add(int(where, 16))
    return sites


# Set in every run: what the NVTX headers open by it is seen that way.
SETTINGS = {"NVTX_INJECTION64_PATH": "/nowhere/libnvtx-injection.so"}
SETTING = re.compile(r"\{env:([^}]*)\}")


def fits(listed, opened):
    """Is the listed name, with its placeholders, the one that was opened?"""
    if not all(variable in SETTINGS for variable in SETTING.findall(listed)):
        return False
    listed = SETTING.sub(lambda variable: SETTINGS[variable[1]], listed)
    pattern = re.sub(r"\{[^}]*\}", "*", listed.replace("[", "[[]"))
    if pattern.startswith("$ORIGIN/"):
        pattern = "*/" + re.sub(r"^(\$ORIGIN/|\.\./)+", "", pattern)
    return listed == opened or fnmatch.fnmatchcase(opened, pattern)


def holds(path, name):
    """Does the text stand in the file, or all pieces that it is made of?"""
    with open(path, "rb") as file:
        data = file.read()
    return all(piece.encode() in data for part in SETTING.split(name) for piece in part.split("/"))


def words(flags):
    """Flags as ncclwhich writes them."""
    return {"now" if flags & 2 else "lazy", *(w for w, bit in RTLD.items() if flags & bit)} | \
        ({"local"} if not flags & 0x100 else set())


# --- the comparison -------------------------------------------------------------------------------------------------

class Row:
    def __init__(self, name):
        self.name, self.found, self.opened, self.missed, self.extra = name, [], [], [], []
        self.computed, self.faults, self.notes, self.skip = 0, [], [], None


def explain(consumer, kind, name):
    for pattern, why in (consumer.get(kind) or {}).items():
        if fnmatch.fnmatchcase(name, pattern):
            return why
    return None


def callers_of(consumer, path):
    """Which calls count for the file: those of ctypes for Python, or where the file has none of its own."""
    if path.endswith(".py") or consumer.get("callers"):
        return lambda caller: os.path.basename(caller).startswith("_ctypes.")
    real = os.path.realpath(path)
    return lambda caller: caller == real


def compare_file(row, consumer, path, answer, truth, seen):
    ours = callers_of(consumer, path)
    calls = {name: places for (caller, name), places in (truth.calls.items() if truth else []) if ours(caller)}
    listed = [entry for entry in answer["opens"] if entry["name"]]
    sites = sites_of(path, answer)
    row.computed += sum(1 for entry in answer["opens"] if entry["computed"])
    for name, places in sorted(calls.items()):
        fitting = [entry for entry in listed if fits(entry["name"], name)]
        seen.setdefault(name, False)
        if fitting:
            seen[name] = True
            compare_flags(row, consumer, name, fitting, places)
        elif any(site in range(offset - 7, offset - 1) for site in sites for _, offset in places):
            seen[name] = seen[name] or "computed, at that place"
        elif any(entry["computed"] for entry in answer["opens"]):
            seen[name] = seen[name] or "computed, elsewhere"
    for entry in listed:
        row.found.append(entry["name"])
        if not any(fits(entry["name"], name) for name in calls):
            row.extra.append(entry["name"])
            if not explain(consumer, "extra", entry["name"]) and not (
                    entry["evidence"] == "code" and consumer.get("reading") and holds(path, entry["name"])):
                row.faults.append(f"extra, not explained: {entry['name']} [{entry['evidence']}] of {path}")


def compare_flags(row, consumer, name, fitting, places):
    for flags, _ in places:
        if all(entry["flags"] is not None and set(entry["flags"]) != words(flags) for entry in fitting):
            text = f"{name}: flags {fitting[0]['flags']}, really {sorted(words(flags))}"
            why = explain(consumer, "flags", name)
            (row.notes if why else row.faults).append(text + (f": {why}" if why else ""))


def shown(cache, site, name):
    return (name.replace(site, "SITE") if site else name).replace(cache.directory, "CACHE")


def compare(cache, program, consumer):
    row = Row(consumer["name"])
    site = cache.site(consumer["wheels"]) if consumer.get("wheels") else None
    truth = truth_of(cache, consumer, site)
    if truth and consumer.get("says") and consumer["says"] not in truth.said:
        row.faults.append(f"the run did not say {consumer['says']!r}: {truth.said.strip()[-400:]}")
    paths = sorted({path for pattern in consumer["files"]
                    for path in glob.glob(place(cache, site, pattern), recursive=True) if not os.path.islink(path)})
    if not paths:
        raise Skip("its files are not there")
    hiding, unread, seen = [], 0, {}
    for path in paths:
        answer = ask(program, path)
        if answer is None:
            unread += 1
            answer = {"opens": [], "hidden_loader": []}
        if answer["hidden_loader"]:
            hiding.append(os.path.basename(path))
        compare_file(row, consumer, path, answer, truth, seen)
    for name, how in sorted(seen.items()):
        row.opened.append(shown(cache, site, name))
        if how is not True:
            row.missed.append(f"{shown(cache, site, name)} ({how or ('not read' if unread else 'not seen')})")
            why = explain(consumer, "missed", name)
            silent = not how and os.path.basename(name).startswith("libnccl")
            if (silent or not why) and not unread:
                row.faults.append(f"missed, not explained: {name} ({how or 'not seen'})")
    if unread:
        row.skip = "Python files are not read by this ncclwhich"
        return row
    names = sorted({n for n in map(os.path.basename, row.found) if n.startswith("libnccl")})
    wanted = consumer.get("nccl", names)
    if any(not any(fnmatch.fnmatchcase(n, w) for n in names) for w in wanted) or \
            any(not any(fnmatch.fnmatchcase(n, w) for w in wanted) for n in names):
        row.faults.append(f"names of libnccl: {names}, wanted {wanted}")
    if hiding and not (consumer.get("hidden") or names):
        row.faults.append(f"hidden loader: {hiding}")
    elif consumer.get("hidden") and not hiding:
        row.notes.append("hidden-loader is no longer reported: corpus.yaml need not expect it")
    return row


def check_others(cache, program):
    """Rows of what has no NCCL: (name, faults)."""
    site = None
    try:
        site = cache.site(["numpy", "scipy", "ml-dtypes", "fastrlock"])
    except Skip as why:
        yield "numpy, scipy and others", None, str(why)
    for other in cache.corpus["others"]:
        if other.startswith("SITE"):
            paths = glob.glob(place(cache, site, other), recursive=True) if site else []
        else:
            paths = [path for path in [shutil.which(other)] if path]
        if not paths:
            yield other, None, "not here"
            continue
        faults = []
        for path in paths:
            answer = ask(program, os.path.realpath(path))
            if answer is None:
                continue
            named = [e["name"] for e in answer["opens"] if e["name"] and "nccl" in e["name"]]
            if answer["hidden_loader"] or named:
                faults.append(f"{path}: hidden loader {answer['hidden_loader']}, names {named}, "
                              f"looks up {answer['looks_up']}")
        # An extension module is opened by its interpreter, which defines what it leaves undefined.
        host = ["--exe", cache.python] if other.startswith("SITE") else []
        done = run([program, "check", "--clean-env", "-f", "json", *host, os.path.realpath(paths[0])],
                   env={"LC_ALL": "C"})
        if done.returncode not in (0, 1, 3) or json.loads(done.stdout)["verdict"] not in ("none", "unsure"):
            faults.append(f"{paths[0]}: check: status {done.returncode}, {done.stdout[:200]}{done.stderr.strip()}")
        elif '"hidden-loader"' in done.stdout:
            faults.append(f"{paths[0]}: check reports hidden-loader")
        yield f"{other} ({len(paths)} files)" if len(paths) > 1 else other, faults, None


# --- the table ------------------------------------------------------------------------------------------------------

def brief(names, limit):
    names = list(dict.fromkeys(names))
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f", and {more} more" if more > 0 else "") if names else "-"


def print_row(row, markdown):
    limit = 100 if markdown else 6
    cells = [row.name, brief(row.found, limit) + (f"; {row.computed} computed" if row.computed else ""),
             brief(row.opened, limit), brief(row.missed, limit), brief(row.extra, limit)]
    if markdown:
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |", flush=True)
    else:
        print(" | ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--markdown", action="store_true", help="the table as in doc/corpus.md, nothing shortened")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only consumers with this text in their names")
    options = parser.parse_args()
    program = os.environ["NCCLWHICH"]
    with open(os.path.join(HERE, "corpus.yaml"), encoding="utf-8") as file:
        corpus = yaml.safe_load(file)
    cache = Cache(options.cache, options.work, corpus)
    passed = failed = skipped = 0
    said = []

    print_head(options.markdown)
    for consumer in corpus["consumers"]:
        if options.names and not any(name in consumer["name"] for name in options.names):
            continue
        try:
            row = compare(cache, program, consumer)
        except Skip as why:
            row = Row(consumer["name"])
            row.skip = str(why)
        print_row(row, options.markdown)
        passed += not row.faults and not row.skip
        failed += bool(row.faults)
        skipped += bool(row.skip and not row.faults)
        said += [f"not ok - {row.name}: {fault}" for fault in row.faults]
        said += [f"skipped - {row.name}: {row.skip}"] if row.skip else []
        said += [f"# {row.name}: {note}" for note in row.notes]
    if not options.names:
        for name, faults, why in check_others(cache, program):
            passed += faults == []
            failed += bool(faults)
            skipped += faults is None
            said.append(f"skipped - {name}: {why}" if faults is None else
                        f"not ok - {name}: {'; '.join(faults)}" if faults else
                        f"ok - {name}: no path, no hidden loader")
    print("\n".join(said))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if failed:
        return 1
    return 0 if passed else 77


def print_head(markdown):
    head = ["consumer", "found by us", "opened in truth", "missed", "extra"]
    print(("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|") if markdown else " | ".join(head), flush=True)


if __name__ == "__main__":
    sys.exit(main())
