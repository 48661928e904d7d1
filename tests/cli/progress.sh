#!/bin/bash
# Short work says nothing of its progress, on a terminal or elsewhere (tests/unit/progress.c has long work).
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

# Runs the command on a terminal of its own, and prints what that got.
cat >terminal.py <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if not pid:
    os.execvpe(sys.argv[1], sys.argv[1:], {**os.environ, "TERM": "xterm"})
data = b""
try:
    while part := os.read(fd, 65536):
        data += part
except OSError:
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(data)
PY
mkdir package
echo 'import ctypes; ctypes.CDLL("libplug.so")' >package/asks.py
"$PYTHON" terminal.py "$NCCLWHICH" opens -o list package >got
[ -s got ] && fail "on a terminal: $(cat -v got)"
grep -q libplug.so list || fail "no list: $(cat list)"
"$NCCLWHICH" opens package 2>said >list
[ -s said ] && fail "elsewhere: $(cat -v said)"
exit $failures
