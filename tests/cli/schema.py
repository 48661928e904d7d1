"""What the program writes as JSON fits the schemas that it ships.  TAP.

A small validator for the words that the schemas use; a word it does not know is
an error, so that a schema cannot ask for more than is checked.
"""

import json
import os
import subprocess
import sys

SRCDIR = os.environ.get("srcdir") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ["NCCLWHICH"]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(value, schema, where="$"):
    """Every place where VALUE does not fit, as text."""
    unknown = set(schema) - {"$schema", "title", "description", "type", "enum", "properties", "required",
                             "additionalProperties", "items"}
    if unknown:
        yield "%s: the schema uses %s" % (where, ", ".join(sorted(unknown)))
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        yield "%s: %r is no %s" % (where, value, " or ".join(names))
        return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r is none of %s" % (where, value, ", ".join(schema["enum"]))
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield "%s: no %s" % (where, key)
        for key, inner in schema.get("properties", {}).items():
            if key in value:
                yield from faults(value[key], inner, "%s.%s" % (where, key))
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from faults(item, schema["items"], "%s[%d]" % (where, i))


def schema(name):
    with open(os.path.join(SRCDIR, "data/schema", name), encoding="utf-8") as f:
        return json.load(f)


def main():
    report, opens = schema("report-1.schema.json"), schema("opens-1.schema.json")
    program = os.path.realpath("/bin/sh")
    runs = [
        (report, ["check", "-f", "json", program]),
        (report, ["check", "-f", "json", "--library-path", "/nowhere", "--dlopen", "libnccl.so.2,lazy", program]),
        (report, ["check", "-f", "json", "--dlopen", "nobody:libnccl.so", program]),
        (report, ["tree", "-f", "json", "--bindings", program]),
        (report, ["tree", "-f", "json", "--dlopen", "libm.so.6,now,global", program]),
        (opens, ["opens", "-f", "json", program, PROGRAM]),
    ]
    print("1..%d" % (2 * len(runs) + 1))
    number = failed = 0
    for wanted, arguments in runs:
        first, second = (subprocess.run([PROGRAM] + arguments, stdout=subprocess.PIPE, check=False).stdout
                         for _ in range(2))
        found = list(faults(json.loads(first), wanted))
        for good, what in (not found, "fits"), (first == second, "same bytes twice"):
            number += 1
            failed += not good
            print("%s %d - %s: %s" % ("ok" if good else "not ok", number, what, " ".join(arguments[:-1])))
        for fault in found[:10]:
            print("#", fault)
    broken = list(faults({"schema": "ncclwhich-report/1", "command": "check", "runs": [{}]}, report))
    print("%s %d - a report without its parts does not fit" % ("ok" if broken else "not ok", number + 1))
    sys.exit(bool(failed) or not broken)


main()
