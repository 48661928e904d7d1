#!/bin/bash
# A wheel among the shims is laid over the root as if it were installed, and nothing is written.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

cat >native.c <<'C'
int ncclGetUniqueId(void *id);
int use(void *id) { return ncclGetUniqueId(id); }
C
echo 'int main(void) { return 0; }' >engine.c
mkdir -p shim/shim fat/nvidia/nccl/lib
# shellcheck disable=SC2086 # CC may be a compiler with options
mock_copy fat/nvidia/nccl/lib/libnccl.so.2 &&
	$CC -shared -fPIC native.c -Lfat/nvidia/nccl/lib -l:libnccl.so.2 -Wl,--enable-new-dtags,-rpath,'$ORIGIN/../nvidia/nccl/lib' \
		-o shim/shim/_native.so &&
	$CC engine.c -o engine || { echo 'cannot compile'; exit 1; }
cat >shim/shim/__init__.py <<'PY'
import ctypes
from . import _native
ctypes.CDLL("libnccl.so.2")     # answered by what _native has brought
PY

# wheel NAME DIRECTORY: the files of the directory; what stands in NAME.data/purelib goes beside them.
cat >wheel.py <<'PY'
import os, sys, zipfile
name, top = sys.argv[1:]
with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as z:
    for where, _, files in os.walk(top):
        for f in sorted(files):
            path = os.path.join(where, f)
            z.write(path, os.path.relpath(path, top))
PY
mkdir -p shim/shim-1.data/purelib/shim shim/shim-1.data/scripts
echo 'import ctypes; ctypes.CDLL("libmore.so.1")' >shim/shim-1.data/purelib/shim/more.py
echo 'ctypes.CDLL("libnot.so")' >shim/shim-1.data/scripts/not.py
mkdir wheels
"$PYTHON" wheel.py wheels/shim-1-py3-none-any.whl shim && "$PYTHON" wheel.py wheels/fat-1-py3-none-any.whl fat ||
	{ echo 'cannot make wheels'; exit 1; }

# As installed: the same answer from the directory that pip would have made of them.
mkdir -p installed/site-packages
cp -r shim/shim fat/nvidia installed/site-packages/
cp shim/shim-1.data/purelib/shim/more.py installed/site-packages/shim/
"$NCCLWHICH" check -f json --clean-env ./engine installed/site-packages/shim >there.json
"$NCCLWHICH" check -f json --clean-env ./engine wheels/fat-1-py3-none-any.whl wheels/shim-1-py3-none-any.whl >laid.json
grep -q '"path": ".*/wheels/site-packages/shim/../nvidia/nccl/lib/libnccl.so.2"' laid.json ||
	fail "the copy of the other wheel is not found: $(cat laid.json)"
# The order of a package's files is not known; the other one is tried, too.
grep -q order-dependent laid.json || fail "nothing is said about the order: $(cat laid.json)"
sed 's#/wheels/shim-1-py3-none-any.whl#/installed/site-packages/shim#; s#/wheels/#/installed/#g' laid.json >same.json
diff there.json same.json >difference || { fail 'a wheel gives another answer than its installation:'; cat difference; }
[ -e wheels/site-packages ] && fail 'something was written'

# Without the other one there is nothing to bind to.
expect 1 'cannot be opened: libnccl.so.2: cannot open shared object file' check --clean-env ./engine wheels/shim-1-py3-none-any.whl

# In the packages of the Python that is asked about, where an import line finds it.
mkdir -p root/usr/bin root/usr/lib/python3.12/lib-dynload root/usr/lib/python3.12/site-packages root/w
cp engine root/usr/bin/python3.12
ldd engine | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | while read -r lib; do
	mkdir -p "root${lib%/*}" && cp -L "$lib" "root$lib"
done
touch root/usr/lib/python3.12/os.py root/usr/lib/python3.12/ctypes.py
cp wheels/*.whl root/w/
expect 0 '/usr/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2' check --root root --python /usr/bin/python3.12 --import shim \
	/w/fat-1-py3-none-any.whl /w/shim-1-py3-none-any.whl

# opens: what is in the wheel and has something to show; scripts of NAME.data are none of it.
expect 0 'site-packages/shim/more.py' opens wheels/shim-1-py3-none-any.whl
grep -q libmore.so.1 said || fail "libmore.so.1 is not listed: $(cat said)"
grep -q libnot.so said && fail 'a script was taken for a part of the package'

# What is no wheel, or a damaged or hostile one.
expect 2 'confirm: .*wheel is not there to be run' confirm ./engine wheels/shim-1-py3-none-any.whl
expect 2 'absent.whl: No such file' check ./engine absent.whl
echo 'no archive' >text.whl
expect 2 'text.whl: cannot be read as a zip archive' check ./engine text.whl
: >empty.whl
expect 2 'empty.whl: cannot be read as a zip archive' check ./engine empty.whl
head -c $(($(stat -c %s wheels/fat-1-py3-none-any.whl) / 2)) wheels/fat-1-py3-none-any.whl >short.whl
expect 2 'short.whl: cannot be read as a zip archive' check ./engine short.whl
for name in ../out.py /abs.py a//b.py a/./b.py ''; do
	"$PYTHON" -c 'import sys, zipfile; zipfile.ZipFile("bad.whl", "w").writestr(sys.argv[1] or "\0", "")' "$name" 2>/dev/null
	[ -n "$name" ] || continue
	expect 2 'bad.whl: is no wheel' check ./engine bad.whl
done
for names in 'a a/b' 'a/b a'; do
	"$PYTHON" -c 'import sys, zipfile
with zipfile.ZipFile("bad.whl", "w") as z:
    for name in sys.argv[1].split(): z.writestr(name, "x")' "$names"
	expect 2 'bad.whl: cannot be installed in .*: something is a file and a directory' check ./engine bad.whl
done
# A member that is damaged is an error of the file that is met, not a crash.
"$PYTHON" - <<'PY'
import zipfile
data = bytearray(open("wheels/shim-1-py3-none-any.whl", "rb").read())
i = zipfile.ZipFile("wheels/shim-1-py3-none-any.whl").getinfo("shim/_native.so")
at = i.header_offset + 30 + len(i.filename) + 200
data[at:at + 64] = b"\xff" * 64
open("damaged.whl", "wb").write(data)
with zipfile.ZipFile("bomb.whl", "w", zipfile.ZIP_DEFLATED) as z:
    with z.open(zipfile.ZipInfo("bomb/_big.so"), "w") as f:
        for _ in range(300):
            f.write(bytes(1 << 20))
PY
expect 1 '_native.so cannot be opened' check --clean-env ./engine damaged.whl
expect 1 '_big.so cannot be opened: .*invalid ELF header' check --clean-env ./engine bomb.whl
exit $failures
