#!/bin/bash
# Two opens whose order the files do not show, and which decide differently: the report says so.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

mkdir a b
cat >opener.c <<'C'
#include <dlfcn.h>
const char *const name = NAME;
void *opener(void) { return dlopen(name, RTLD_NOW); }
C
echo 'int main(void) { return 0; }' >engine.c
# shellcheck disable=SC2086 # CC may be a compiler with options
mock_copy a/libnccl.so.2 && cp a/libnccl.so.2 b/ &&
	$CC -shared -fPIC -DNAME="\"$work/a/libnccl.so.2\"" opener.c -o bypath.so -ldl &&
	$CC -shared -fPIC -DNAME='"libnccl.so.2"' opener.c -o byname.so -ldl &&
	$CC -Wl,--no-as-needed engine.c -L. -l:bypath.so -l:byname.so -o engine || { echo 'cannot compile'; exit 1; }

# The path comes first here: then the bare name is answered by what is loaded.
"$NCCLWHICH" check --clean-env --library-path ".:b" ./engine >said 2>&1
grep -q '^verdict: one' said || { echo 'not one copy:'; cat said; failures=1; }
grep -q 'opposite order.*verdict is split.*\[order-dependent\]' said ||
	{ echo 'nothing is said about the order:'; cat said; failures=1; }

# Declared opens have the order of the command line: nothing to be unsure about.
"$NCCLWHICH" check --clean-env --library-path ".:b" --dlopen "./bypath.so:$work/a/libnccl.so.2" \
	--dlopen './byname.so:libnccl.so.2' ./engine >said 2>&1
grep -q order-dependent said && { echo 'the order was declared:'; cat said; failures=1; }
exit $failures
