"""Build the driver once, with the C compiler of the environment (CC, default gcc)."""

import os
import shlex
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def build_driver(directory: str) -> str:
    """Compile driver.c into `directory`; returns the path of the library."""
    target = os.path.join(directory, "driver.so")
    source = os.path.join(HERE, "driver.c")
    if os.path.exists(target) and os.path.getmtime(target) >= os.path.getmtime(source):
        return target
    command = shlex.split(os.environ.get("CC", "gcc")) + [
        "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-O1", "-fPIC", "-shared", "-nostdlib",
        "-Wl,-z,now", "-o", target + ".new", source, "-Wl,--as-needed", "-lc", "-ldl"]
    subprocess.run(command, check=True)
    os.rename(target + ".new", target)
    return target
