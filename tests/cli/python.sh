#!/bin/bash
# Python files: as an engine behind #!, as shims; names that are literals, variables, computed; a known consumer.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

# opens STATUS TEXT ARGUMENT...: a check with the copy on the library path.
opens() {
	checks "$1" "$2" --library-path "$work/lib" "${@:3}"
}

mkdir lib other
echo 'int main(void) { return 0; }' >engine.c
# shellcheck disable=SC2086 # CC may be a compiler with options
mock_copy lib/libnccl.so.2 && cp lib/libnccl.so.2 other/ &&
	$CC engine.c -o engine || { echo 'cannot compile'; exit 1; }

cat >shim.py <<'PY'
"""A text that says CDLL("libnccl.so.9") opens nothing."""
import ctypes, os
# nor does a comment: CDLL("libnccl.so.8")
lib = ctypes.CDLL(
    os.environ.get("ACME_NCCL", "libnccl.so.2"),
    mode=ctypes.RTLD_GLOBAL)
PY
opens 0 "opens libnccl.so.2  \(in a script, $work/shim.py:4\)" ./engine shim.py
opens 0 'global scope' ./engine shim.py
opens 0 "opens $work/other/libnccl.so.2" --env ACME_NCCL="$work/other/libnccl.so.2" ./engine shim.py
opens 1 'verdict: absent' --env ACME_NCCL=libnccl.so.7 ./engine shim.py
grep -q 'so\.[89]' said && { echo 'a comment or a text was taken for a call'; failures=1; }

echo 'import ctypes.util; ctypes.CDLL(ctypes.util.find_library("nccl"))' >find.py
opens 0 'opens libnccl.so.2' ./engine find.py

# A name that is computed is hidden only where the API is looked up.
printf 'import ctypes, sys\nctypes.CDLL(sys.argv[1])\n' >plain.py
opens 3 'verdict: none' ./engine plain.py
printf 'import ctypes, sys\nl = ctypes.CDLL("lib" + sys.argv[1])\nl["ncclGetUniqueId"], l["ncclCommInitRank"]\n' >hidden.py
opens 3 'hidden-loader' ./engine hidden.py
opens 3 'verdict: unsure' ./engine hidden.py

# A known consumer: its variable is the only name, if it is set.
printf 'import envs, ctypes\nso = envs.VLLM_NCCL_SO_PATH or "libnccl.so.2"\nctypes.CDLL(so)\n' >pynccl.py
opens 0 'known from its profile: vllm' ./engine pynccl.py
opens 1 'opens /nowhere/libnccl.so' --env VLLM_NCCL_SO_PATH=/nowhere/libnccl.so ./engine pynccl.py

# A preload by path, before an extension that asks by name: the first copy answers.
mkdir -p site-packages/torch site-packages/nvidia/nccl/lib && cp other/libnccl.so.2 site-packages/nvidia/nccl/lib/
printf 'def _preload_cuda_deps():\n    x = [("nccl", "libnccl.so.*[0-9]")]\n' >site-packages/torch/__init__.py
printf 'import ctypes\nctypes.CDLL("libnccl.so.2")\n' >asks.py
opens 0 'known from its profile: torch' ./engine site-packages/torch/__init__.py asks.py
grep -q 'verdict: one' said && grep -q "copy 1.*$work/site-packages/nvidia" said || { echo 'the preload did not answer'; cat said; failures=1; }
rm -r site-packages/nvidia
opens 0 "copy 1, 2.30.7: $work/lib/libnccl.so.2" ./engine site-packages/torch/__init__.py asks.py

# A package as a shim: its files are read, its extension modules opened.
mkdir -p acme/inner && echo >acme/__init__.py && cp asks.py acme/inner/ && echo 'int acme;' >acme.c
# shellcheck disable=SC2086
$CC -shared -fPIC -Wl,--no-as-needed acme.c -Llib -l:libnccl.so.2 -o acme/core.so || { echo 'cannot compile'; exit 1; }
opens 0 "$work/acme/core.so needs libnccl.so.2" ./engine acme
opens 0 "in a script, $work/acme/inner/asks.py:2" ./engine acme
mkdir empty
opens 2 'a directory without Python files' ./engine empty

# The engine itself may be a script: its interpreter is the executable.
mkdir bin && cp engine bin/python3
printf '#!/usr/bin/env python3\nimport ctypes\nctypes.CDLL("libnccl.so.2")\n' >serve && chmod +x serve
opens 0 "$work/bin/python3 opens libnccl.so.2" --env PATH="$work/bin" ./serve
opens 2 'is not on the PATH' --env PATH=/nowhere ./serve
exit $((failures > 0))
