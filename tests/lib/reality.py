"""Run the real loader on a root and record what it did.

The child does chroot, becomes another user where the universe says so, and
executes the program.  Orders and reports go through pipes (see driver.c).

Without root rights a user namespace is tried; there, another user and set-user-ID
do not exist.  `how_to_confine()` says which way works: "root", "user-namespace"
or None.

Hazard: opening a FIFO blocks the real loader for ever, hence the deadline.
"""

import ctypes
import functools
import json
import os
import resource
import select
import signal
import time
from typing import Any, Dict, List, Optional

from universe import Root, events_of

ORDERS, REPORT = 197, 198
NOBODY = 65534
DEADLINE = 5.0
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
FLAG_LETTERS = {"lazy": "l", "now": "n", "global": "g", "local": "", "deepbind": "d",
                "noload": "o", "nodelete": "k", "newlm": "!", "null-name": "0", "none": ""}


class Unable(Exception):
    """This machine cannot run the universe; the text says why."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _enter_user_namespace(with_mounts: bool) -> None:
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWUSER | (CLONE_NEWNS if with_mounts else 0)
    if _libc().unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", "0 %d 1" % uid), ("gid_map", "0 %d 1" % gid)):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)


@functools.lru_cache(maxsize=1)
def how_to_confine() -> Optional[str]:
    """Which way to chroot works here; tried in a child."""
    for way in ("root", "user-namespace"):
        child = os.fork()
        if child == 0:
            try:
                if way == "user-namespace":
                    _enter_user_namespace(False)
                os.chroot("/")
                os._exit(0)
            except OSError:
                os._exit(1)
        if os.waitpid(child, 0)[1] == 0:
            return way
    return None


def orders(events: List[Dict[str, Any]], exe: str) -> bytes:
    lines = b""
    for event in events:
        flags = "".join(FLAG_LETTERS[flag] for flag in event["flags"])
        name = event["open"]
        if name is None:
            flags, name = flags + "0", ""
        caller = event["from"] or ""
        if caller == exe:
            caller = ""
        lines += b"\x1f".join(os.fsencode(text) for text in (flags, caller, name)) + b"\n"
    return lines


def _child(root: Root, way: str, fds: Dict[int, int], uid: Optional[int]) -> None:
    """Never returns; what goes wrong here ends with status 98 and a text on stderr."""
    universe = root.universe
    try:
        for target, fd in fds.items():
            os.dup2(fd, target)
        for limit in (resource.RLIMIT_CORE,):
            resource.setrlimit(limit, (0, 0))
        if way == "user-namespace":
            _enter_user_namespace(root.proc_is_real)
        elif root.proc_is_real:
            if _libc().unshare(CLONE_NEWNS) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            _libc().mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        if root.proc_is_real:
            place = os.fsencode(os.path.join(root.path, "proc"))
            if _libc().mount(b"/proc", place, None, MS_BIND | MS_REC, None) != 0:
                raise OSError(ctypes.get_errno(), "mount of /proc")
        os.chroot(root.path)
        os.chdir(universe.get("cwd", "/"))
        if uid is not None:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        env = {os.fsencode(k): os.fsencode(str(v)) for k, v in universe.get("env", {}).items()}
        signal.alarm(60)            # survives exec: no child outlives its test for long
        os.execve(universe["exe"], [universe["exe"]], env)
    except BaseException as error:  # the interpreter of the tests must not go on twice
        os.write(2, ("cannot run: %s" % error).encode())
    finally:
        os._exit(98)


def run(root: Root, deadline: float = DEADLINE) -> Dict[str, Any]:
    """What happened: start, maps, events; see `interpret`."""
    way = how_to_confine()
    if way is None:
        raise Unable("neither root rights nor user namespaces")
    universe = root.universe
    uid = NOBODY if universe.get("secure") or universe.get("user") == "nobody" else None
    if uid is not None and way != "root":
        raise Unable("another user is needed, which takes root rights")
    if universe.get("secure") and os.statvfs(root.path).f_flag & os.ST_NOSUID:
        raise Unable("the scratch file system ignores set-user-ID bits")
    events = events_of(universe)
    order_r, order_w = os.pipe()
    report_r, report_w = os.pipe()
    error_r, error_w = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    os.write(order_w, orders(events, universe["exe"]))
    os.close(order_w)
    child = os.fork()
    if child == 0:
        _child(root, way, {0: null, 1: null, 2: error_w, ORDERS: order_r, REPORT: report_w}, uid)
    for fd in (order_r, report_w, error_w, null):
        os.close(fd)
    report, errors, late = _collect(report_r, error_r, deadline)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(report_r)
    os.close(error_r)
    text = errors.decode("utf-8", "replace").strip()
    if status == 98 << 8 and text.startswith("cannot run: "):
        if "mount" in text or "unshare" in text:
            raise Unable(text)
        return {"start": {"ok": False, "why": text, "how": "exec"}, "maps": [], "events": []}
    return interpret(report, text, status, late, len(events))


def _collect(report_r: int, error_r: int, deadline: float):
    chunks = {report_r: [], error_r: []}
    waiting = {report_r, error_r}
    end = time.monotonic() + deadline
    while waiting:
        left = end - time.monotonic()
        ready = select.select(list(waiting), [], [], max(0, left))[0]
        if not ready:
            return b"".join(chunks[report_r]), b"".join(chunks[error_r]), True
        for fd in ready:
            data = os.read(fd, 1 << 16)
            if data:
                chunks[fd].append(data)
            else:
                waiting.discard(fd)
    return b"".join(chunks[report_r]), b"".join(chunks[error_r]), False


def _name(text: Optional[str]) -> Optional[str]:
    """A Latin-1 disguise back to the name."""
    return None if text is None else os.fsdecode(text.encode("latin-1"))


def _maps(entries: List[List]) -> List[Dict[str, Any]]:
    return [{"path": _name(name), "dev": dev, "ino": ino} for name, dev, ino in entries]


def interpret(report: bytes, stderr: str, status: int, late: bool, count: int) -> Dict[str, Any]:
    """The record of one run:

    {"start": {"ok": true} or {"ok": false, "how": "exit|signal|timeout", "why": text},
     "stderr": text, "maps": [{"path", "dev", "ino"}...] at the end, "start_maps": as "maps",
     "events": [{"result": "ok|null|no-caller|crash|timeout|unreached", "object", "error",
                "caller"}...]}; `caller` is the realname that "#N" came to mean.
     "bindings": [{"object", "symbol", "class": "plt|data|copy", "to": path or None,
                   "when": "load|call"}...] of the objects named in "ours"; "complete": whether
     that list is}
    """
    documents = [json.loads(line) for line in report.split(b"\n") if line.endswith(b"}")]
    result: Dict[str, Any] = {"start": {"ok": True}, "maps": [], "start_maps": [], "events": [],
                              "ours": [], "bindings": [], "complete": False, "stderr": stderr}
    if late:
        how, why = "timeout", "no end before the deadline"
    elif os.WIFSIGNALED(status):
        how, why = "signal", signal.Signals(os.WTERMSIG(status)).name
    else:
        how, why = "exit", stderr or "exit status %d" % os.WEXITSTATUS(status)
    caller = None
    for document in documents:
        if "start" in document:
            result["start_maps"] = result["maps"] = _maps(document["start"])
        elif "begin" in document:
            caller = _name(document["caller"])
        elif "maps" in document:
            result["maps"] = _maps(document["maps"])
        elif "ours" in document:
            result["ours"] = [result["maps"][obj]["path"] for obj in document["ours"]]
        elif "end" in document:
            result["complete"] = True
        elif "binding" in document:
            obj, symbol, kind, to, when = document["binding"]
            result["bindings"].append({
                "object": result["maps"][obj]["path"], "symbol": _name(symbol), "class": kind,
                "to": None if to is None else result["maps"][to]["path"], "when": when})
        else:
            event = {"result": document["event"], "object": _name(document.get("object")),
                     "error": _name(document.get("error")), "caller": caller}
            if "namespace" in document:
                event["namespace"] = _maps(document["namespace"])
            result["events"].append(event)
    if not result["start_maps"]:
        result["start"] = {"ok": False, "how": how, "why": why}
        return result
    if len(result["events"]) < count:
        what = "timeout" if late else "crash"
        result["events"].append({"result": what, "object": None, "error": why, "caller": caller})
    while len(result["events"]) < count:
        result["events"].append({"result": "unreached", "object": None, "error": None})
    return result
