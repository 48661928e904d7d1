#!/bin/bash
# The process that an import line makes: which extension modules are opened, in which order, found without Python.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"
tag=cpython-312-$(uname -m)-linux-gnu
lib=root/opt/py/lib/python3.12
site=root/venv/lib/python3.12/site-packages

# write FILE: its text from standard input.
write() {
	mkdir -p "$(dirname "$1")" && cat >"$1"
}

# extension FILE...
extension() {
	local file
	for file; do
		mkdir -p "$(dirname "$file")" && cp mock.so "$file"
	done
}

# opens 'MODULE-FILE...' ARGUMENT...: the extension modules opened, in order, without what all paths begin with.
opens() {
	local wanted=$1 got
	shift 1
	"$NCCLWHICH" check -f json --root root "$@" >said 2>error || true
	got=$("$PYTHON" - said <<'PY'
import json, re, sys
try:
    run = json.load(open(sys.argv[1]))["runs"][0]
    names = [e["request"] for e in run["events"] if e["request"].endswith(".so")]
    print(" ".join(re.sub(r"^.*/(site-packages|dist-packages|lib-dynload|python3\.12|more)/", "", n).split(".")[0] for n in names))
except (ValueError, KeyError) as e:
    print("no report:", repr(e))
PY
)
	if [ "$got" != "$wanted" ]; then
		printf '%s\n  wanted %s\n  got    %s\n' "$*" "$wanted" "$got"
		cat error
		failures=$((failures + 1))
	fi
}

# refused TEXT ARGUMENT...
refused() {
	local text=$1 status=0
	shift
	"$NCCLWHICH" check --root root "$@" >said 2>&1 || status=$?
	if [ $status -ne 2 ] || ! grep -qF -- "$text" said; then
		echo "wanted status 2 and '$text' from: check $*"
		echo "got status $status and:"
		cat said
		failures=$((failures + 1))
	fi
}

# An installation in /opt/py, a virtual environment of it in /venv; the interpreter never runs.
echo 'int PyInit_errno(void) { return 0; } int main(void) { return PyInit_errno(); }' >engine.c
echo 'int PyInit_mock(void) { return 0; }' >mock.c
# The names of cimported modules stand in an extension as whole strings.
echo 'const char *const names[] = {"alpha._deep", "alpha._deep.Type", "alpha.plain"}; int PyInit__own(void) { return !names[0]; }' >own.c
mkdir -p root/opt/py/bin root/venv/bin
# shellcheck disable=SC2086,SC2015 # CC may be a compiler with options
$CC -rdynamic engine.c -o root/opt/py/bin/python3.12 && $CC -shared -fPIC mock.c -o mock.so &&
	$CC -shared -fPIC own.c -o own.so || { echo 'cannot compile'; exit 1; }
ldd root/opt/py/bin/python3.12 | grep -o '/[^ ]*' | xargs -I{} cp -L --parents {} root ||
	{ echo 'no libc to be copied'; exit 1; }
mkdir -p root/usr/bin && cp root/opt/py/bin/python3.12 root/usr/bin/python3
ln -s /opt/py/bin/python3.12 root/venv/bin/python3
printf 'home = /opt/py/bin\nversion = 3.12.9\n' | write root/venv/pyvenv.cfg
echo 'import sys' | write $lib/os.py
for name in __future__ typing importlib/__init__ contextlib; do echo 'import sys' | write $lib/$name.py; done
extension $lib/lib-dynload/{_struct,_json}."$tag".so
echo 'from _struct import *' | write $lib/struct.py

# Extensions before source, the tag before abi3 before none; a package before a module.
extension $site/alpha/_{a,b,c,d,deep}."$tag".so $site/alpha/_a.abi3.so $site/alpha/{_one,_two,_late}.so \
	$site/alpha/_three.abi3.so $site/alpha/_never.so
echo 'import alpha._never' | write $site/alpha/_a.py
echo 'import alpha._never' | write $site/alpha.py
echo 'import alpha._never' | write $site/alpha/plain.py
cp own.so $site/alpha/_own."$tag".so
write $site/alpha/__init__.py <<'PY'
"""A text: import alpha._never"""
# import alpha._never
from __future__ import annotations
import typing as t, struct
from typing import TYPE_CHECKING
from . import _a
text = f"import {'alpha'}._never {t:'>10}" ; import alpha._b as b
if TYPE_CHECKING or False:
    from . import _never
if t.TYPE_CHECKING: from . import _never
def later(
        argument=lambda x: x):
    """import"""
    import alpha._never
    if argument:
        from . import _never
    return '''
import alpha._never
'''
class Runs(
    object,
):
    from alpha import (_c,  # import alpha._never
        _d as dd, nothing)
    def method(self): import alpha._never
    x = 1
from \
    alpha.sub import *
from .cycle import other
PY
echo '__all__ = ["_s"]; from ..sub.below import thing' | write $site/alpha/sub/__init__.py
extension $site/alpha/sub/_s.so $site/alpha/sub/_t.so
echo 'from . import _t as thing' | write $site/alpha/sub/below.py
echo 'import alpha; from alpha import cycle, _one; other = 1' | write $site/alpha/cycle.py
all='_struct alpha/_a alpha/_b alpha/_c alpha/_d alpha/sub/_t alpha/sub/_s alpha/_one'
opens "$all" --python /venv --import alpha
opens "$all" --python /venv/bin/python3 --import alpha
opens "$all alpha/_two _json" --python /venv --import alpha._two,alpha,_json
opens "$all alpha/_three alpha/_own alpha/_deep" --python /venv --import alpha._three --import alpha._own

# Branches: what the platform, the version and the environment decide, and what nothing decides.
extension $site/beta/_{a,b,c,d,e,f,g,h,i,no}.so
write $site/beta/__init__.py <<'PY'
import sys, os, importlib
if sys.platform == "win32":
    from . import _no
elif sys.version_info >= (3, 13) or sys.version_info[0] == 2:
    from . import _no
elif not (os.name != "posix") and sys.version_info < (3, 13):
    from . import _a
else:
    from . import _no
if os.environ.get("BETA", "0") == "1":
    from . import _b
if computed():
    from . import _c
else:
    from . import _d
try:
    import nowhere
    from . import _no
except (ImportError, OSError):
    from . import _e
else:
    from . import _no
try:
    from . import _f
except ImportError:
    from . import _no
finally: from . import _g
try:
    import beta.breaks
except ImportError: pass
with contextlib.suppress(ImportError):
    import nowhere
    from . import _no
for name in ():
    importlib.import_module(".%s" % name, __name__)
importlib.import_module("._i", __package__)
PY
printf 'from . import _h\nimport nowhere\n' | write $site/beta/breaks.py
branches='beta/_c beta/_d beta/_e beta/_f beta/_g beta/_h beta/_i'
opens "beta/_a $branches" --python /venv --import beta
opens "beta/_a beta/_b $branches" --python /venv --import beta --env BETA=1

# Where modules are: PYTHONPATH first, .pth files, namespace packages in several places, the installation's
# own packages only where the environment asks for them; a built-in module is no file.
extension root/more/ns/_x.so $site/ns/_y.so root/opt/py/lib/python3.12/site-packages/_base.so root/early/more/_json.so
printf '# a comment\n/more\n../nowhere\n' | write $site/more.pth
echo 'import ns._x, ns._y, errno' | write $site/gamma.py
opens 'ns/_x ns/_y' --python /venv --import gamma
opens '_json' --python /venv --import _json
opens '_json' --python /venv --import _json --env PYTHONPATH=/nowhere:/early/more
grep -q '/early/more/_json.so' said || { echo 'PYTHONPATH does not come first'; failures=1; }
refused 'no module _base' --python /venv --import _base
opens '_base' --python /opt/py --import _base
printf 'home = /opt/py/bin\ninclude-system-site-packages = true\n' | write root/venv/pyvenv.cfg
opens '_base' --python /venv --import _base

# What is asked for has to be there; what that asks for need not.
echo 'import nowhere, _json' | write $site/delta.py
opens '_json' --python /venv --import delta
refused 'no module nowhere' --python /venv --import delta,nowhere
refused 'no module alpha.nothing' --python /venv --import alpha.nothing
refused 'the name of a module' --python /venv --import a..b
refused 'bin/python3' --python /more --import alpha
refused 'No such file' --python /nowhere --import alpha
refused 'no library of Python' --python /usr/bin/python3 --import alpha
exit $((failures > 0))
