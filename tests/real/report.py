#!/usr/bin/env python3
"""Asks questions of a JSON report of ncclwhich, for check-real.sh.

usage: report.py REPORT EXPRESSION

EXPRESSION is Python over the names below. Exit status: 0 it is true, 1 it is not (its parts are shown), 2 the report
cannot be read.
"""

import json
import os
import sys


class Report:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.document = json.loads(self.text)
        self.run = self.document["runs"][0]

    def objects(self, name):
        """Objects of the link map whose path ends in this file name."""
        return [o for o in self.run.get("objects", []) if os.path.basename(o.get("path") or "") == name]

    def loaded_after(self, name):
        """Paths of the link map after that object, without the C library and the loader."""
        paths = [o["path"] for o in self.run["objects"]]
        at = [os.path.basename(path) for path in paths].index(name)
        return [p for p in paths[at + 1:] if not os.path.basename(p).startswith(("libc.so", "ld-linux", "linux-vdso"))]

    def paths(self, request, evidence=None):
        """Linkage paths with this request, and this evidence where one is named."""
        return [p for p in self.run.get("paths", [])
                if p["request"] == request and (evidence is None or evidence in p["evidence"])]

    def opened(self, request, evidence=None):
        """Where the paths with this request end: a sorted list without repetition."""
        return sorted({p["resolved"] or "nowhere" for p in self.paths(request, evidence)})

    def found_by(self, request, evidence=None):
        return sorted({p["found_by"] or "nothing" for p in self.paths(request, evidence)})

    def does(self, request):
        """What the paths with this request do with the library."""
        return sorted({use for p in self.paths(request) for use in p["does"]})

    def passed_over(self, request, candidate):
        """Why this candidate of a request was passed over: error codes."""
        return sorted({c["code"] for p in self.paths(request) for c in p["candidates"] if c["path"] == candidate})

    def versions(self):
        return sorted({i["version"] for i in self.run.get("instances", [])})

    def instances(self):
        return sorted({i["realpath"] for i in self.run.get("instances", [])})

    def fixes(self):
        return [fix.get("command") for finding in self.run.get("findings", []) for fix in finding.get("fixes", [])]

    def names(self):
        return {name: getattr(self, name) for name in
                ("text", "document", "run", "objects", "loaded_after", "paths", "opened", "found_by", "does",
                 "passed_over", "versions", "instances", "fixes")}


def main():
    try:
        report = Report(sys.argv[1])
        scope = {**report.names(), "verdict": report.document.get("verdict")}
        result = eval(sys.argv[2], scope)  # the expressions are check-real.sh's own
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"report.py: {sys.argv[1]}: {error!r}", file=sys.stderr)
        return 2
    if result:
        return 0
    print(f"not so: {sys.argv[2]}", file=sys.stderr)
    print(f"verdict {report.document.get('verdict')}, instances {report.instances()}, versions {report.versions()}",
          file=sys.stderr)
    for path in report.run.get("paths", []):
        print(f"path {path['request']}: evidence {path['evidence']}, resolved {path['resolved']}, "
              f"found by {path['found_by']}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
