#!/bin/bash
# Long work says on a terminal how far it has come, and leaves nothing of it; elsewhere it says nothing.
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
# Files that take more than a second to be unpacked, all of them nothing.
"$PYTHON" - <<'PY'
import zipfile
with zipfile.ZipFile("long.whl", "w", zipfile.ZIP_DEFLATED) as z:
    for i in range(6):
        with z.open(zipfile.ZipInfo("p/m%d.so" % i), "w", force_zip64=True) as f:
            for _ in range(400):
                f.write(bytes(1 << 20))
    z.writestr("p/a.py", 'import ctypes; ctypes.CDLL("libplug.so")')
PY
"$PYTHON" terminal.py "$NCCLWHICH" opens -o list long.whl >got
grep -q 'of 7 ' got || fail "no progress on a terminal: $(cat -v got)"
tail -c 4 got | grep -q $'\r\033\\[K' || fail "something is left on the terminal: $(tail -c 40 got | cat -v)"
grep -q libplug.so list || fail "no list: $(cat list)"
"$PYTHON" terminal.py "$NCCLWHICH" opens -q -o list long.whl >got
[ -s got ] && fail "progress in spite of -q: $(cat -v got)"
"$NCCLWHICH" opens long.whl 2>said >/dev/null
[ -s said ] && fail "progress without a terminal: $(cat -v said)"
exit $failures
