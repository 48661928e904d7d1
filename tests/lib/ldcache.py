"""Write ld.so.cache files: new, old and combined layout, with hwcaps entries.

An entry is a dict: key, path, and optionally flags (default: this ABI's),
osversion, hwcap (a number of the legacy encoding) or level (the name of a
glibc-hwcaps subdirectory) with isa (the level number stored beside it).
"""

import functools
import struct
from typing import Any, Dict, List, Tuple

FLAGS = {"x86_64": 0x303, "i386": 3, "aarch64": 0xa03, "x32": 0x803}
ISA = {"x86-64-v2": 1, "x86-64-v3": 2, "x86-64-v4": 3}
MAGIC_OLD = b"ld.so-1.7.0\0"
MAGIC_NEW = b"glibc-ld.so.cache1.1"
EXTENSION_MAGIC = 0xeaa42174
HWCAP_EXTENSION = 1 << 62


def compare_names(one: bytes, two: bytes) -> int:
    """The order of the cache: runs of digits compare as numbers."""
    i = j = 0
    while i < len(one):
        if one[i:i + 1].isdigit():
            if not two[j:j + 1].isdigit():
                return 1
            first = second = 0
            while one[i:i + 1].isdigit():
                first, i = first * 10 + one[i] - 48, i + 1
            while two[j:j + 1].isdigit():
                second, j = second * 10 + two[j] - 48, j + 1
            if first != second:
                return first - second
        elif two[j:j + 1].isdigit():
            return -1
        elif one[i:i + 1] != two[j:j + 1]:
            return one[i] - (two[j] if j < len(two) else 0)
        else:
            i, j = i + 1, j + 1
    return -(two[j] if j < len(two) else 0)


def _compare_entries(one: Dict[str, Any], two: Dict[str, Any]) -> int:
    """As ldconfig sorts; what is equal keeps the order of the directories."""
    result = compare_names(two["key"].encode(), one["key"].encode())
    if result == 0:
        result = two["flags"] - one["flags"]
    if result == 0:
        named = (one.get("level"), two.get("level"))
        if all(named):
            result = (named[0] > named[1]) - (named[0] < named[1])
        elif any(named):
            result = -1 if named[0] else 1
        else:
            bits = [bin(e.get("hwcap", 0)).count("1") for e in (one, two)]
            result = bits[1] - bits[0] or two.get("hwcap", 0) - one.get("hwcap", 0)
    return result


def build(cache: Dict[str, Any]) -> bytes:
    """The bytes of the cache.  Keys: entries, layout, sort, generator, endian, ..."""
    entries: List[Dict[str, Any]] = [dict(e) for e in cache.get("entries", [])]
    for entry in entries:
        flags = entry.get("flags", "x86_64")
        entry["flags"] = FLAGS[flags] if isinstance(flags, str) else flags
    if cache.get("sort", True):
        entries.sort(key=functools.cmp_to_key(_compare_entries))
    layout = cache.get("layout", "new")
    if layout == "new":
        data = _new(entries, cache, 0)
    elif layout == "old":
        data = b"".join(_old(entries, 0))
    else:
        # The new header follows the entries of the old layout, not its strings:
        # those come last.
        head, _ = _old(entries, 0)
        padding = b"\0" * (-len(head) % 8)
        new = _new(entries, cache, len(head) + len(padding))
        head, strings = _old(entries, len(padding) + len(new))
        data = head + padding + new + strings
    if "patch" in cache:                    # {offset: byte}, to damage a header
        damaged = bytearray(data)
        for offset, byte in cache["patch"].items():
            damaged[int(offset)] = byte
        data = bytes(damaged)
    return data[:cache.get("truncate", len(data))]


def _old(entries: List[Dict[str, Any]], gap: int) -> Tuple[bytes, bytes]:
    """(header and entries, strings); the strings are to stand `gap` bytes after."""
    strings, table = b"", b""
    plain = [e for e in entries if not e.get("level") and not e.get("hwcap")]
    for entry in plain:
        key = gap + len(strings)
        strings += entry["key"].encode() + b"\0"
        value = gap + len(strings)
        strings += entry["path"].encode() + b"\0"
        table += struct.pack("<iII", entry["flags"], key, value)
    return MAGIC_OLD + struct.pack("<I", len(plain)) + table, strings


def _new(entries: List[Dict[str, Any]], cache: Dict[str, Any], start: int) -> bytes:
    levels = sorted({e["level"] for e in entries if e.get("level")})
    strings = b""
    base = 48 + 24 * len(entries)           # offsets count from the new header
    known: Dict[bytes, int] = {}

    def string(text: str) -> int:
        nonlocal strings
        raw = text.encode() + b"\0"
        if raw not in known:
            known[raw] = base + len(strings)
            strings += raw
        return known[raw]

    level_offsets = [string(level) for level in levels]
    table = b""
    for entry in entries:
        hwcap = entry.get("hwcap", 0)
        if entry.get("level"):
            isa = entry.get("isa", ISA.get(entry["level"], 0))
            hwcap = HWCAP_EXTENSION | isa << 32 | levels.index(entry["level"])
        table += struct.pack("<iIIIQ", entry["flags"], string(entry["key"]),
                             string(entry["path"]), entry.get("osversion", 0), hwcap)
    endian = {"unknown": 0, "invalid": 1, "little": 2, "big": 3}[cache.get("endian", "little")]
    extension_at = (start + base + len(strings) + 3) & ~3
    head = struct.pack("<20sIIB3xI12x", MAGIC_NEW, len(entries), len(strings), endian,
                       extension_at)
    body = head + table + strings
    body += b"\0" * (extension_at - start - len(body))
    return body + _extension(levels, level_offsets, cache, extension_at)


def _extension(levels: List[str], offsets: List[int], cache: Dict[str, Any], at: int) -> bytes:
    generator = cache.get("generator", "ldconfig of the tests").encode()
    sections = [(0, generator)]
    if levels:
        sections.append((1, struct.pack("<%dI" % len(offsets), *offsets)))
    body_at = at + 8 + 16 * len(sections)
    table, body = b"", b""
    for tag, data in sections:
        body += b"\0" * (-(body_at + len(body)) % 4)
        table += struct.pack("<IIII", tag, 0, body_at + len(body), len(data))
        body += data
    return struct.pack("<II", EXTENSION_MAGIC, len(sections)) + table + body
