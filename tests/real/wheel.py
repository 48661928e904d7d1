#!/usr/bin/env python3
"""Wheels, for check-real.sh.

usage: wheel.py unpack WHEEL DIRECTORY     the shared objects and the metadata of a wheel
       wheel.py pinned WHEEL NAME          the version of the distribution NAME that the wheel's metadata asks for
"""

import email
import os
import re
import shutil
import sys
import tempfile
import zipfile


def unpack(wheel, directory):
    parent = os.path.dirname(os.path.abspath(directory))
    os.makedirs(parent, exist_ok=True)
    scratch = tempfile.mkdtemp(dir=parent)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if re.search(r"\.so(\.[0-9.]+)?$", name) or name.endswith(".dist-info/METADATA"):
                    archive.extract(name, scratch)
        os.rename(scratch, directory)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def pinned(wheel, name):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        fields = email.message_from_bytes(archive.read(metadata))
    for requirement in fields.get_all("Requires-Dist", []):
        match = re.match(re.escape(name) + r"\s*\(?==\s*([0-9][0-9A-Za-z.]*)", requirement)
        if match:
            return match[1]
    raise SystemExit(f"wheel.py: {wheel} does not ask for {name}")


if __name__ == "__main__":
    if sys.argv[1] == "unpack":
        unpack(sys.argv[2], sys.argv[3])
    else:
        print(pinned(sys.argv[2], sys.argv[3]))
