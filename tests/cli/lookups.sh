#!/bin/bash
# Functions that are looked up with RTLD_DEFAULT or RTLD_NEXT: which copy has them, as the real loader says it.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

# Two copies: the old one lacks ncclCommInitRank.
cat >mock.c <<'C'
const char banner[] = "NCCL version " VERSION "+cuda13.0";
int ncclGetVersion(int *version) { *version = CODE; return 0; }
int ncclGetUniqueId(void *id) { (void)id; return 0; }
#ifdef NEW
int ncclCommInitRank(void **comm) { (void)comm; return 0; }
#endif
C
cat >say.h <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static void say(const char *name, void *f)
{
	Dl_info i;

	printf("%s %s\n", name, f && dladdr(f, &i) ? i.dli_fname : "-");
}
C
# Each function in the global scope first, then in what is opened.
cat >first.c <<'C'
#include "say.h"
int main(void)
{
	void *h = dlopen(NEW_COPY, RTLD_LAZY), *f;

	if (!(f = dlsym(RTLD_DEFAULT, "ncclGetUniqueId")) && h)
		f = dlsym(h, "ncclGetUniqueId");
	say("ncclGetUniqueId", f);
	if (!(f = dlsym(RTLD_DEFAULT, "ncclCommInitRank")) && h)
		f = dlsym(h, "ncclCommInitRank");
	say("ncclCommInitRank", f);
	return 0;
}
C
# A library before the copy in the list, which asks for what comes next.
cat >next.c <<'C'
#include "say.h"
void next(void)
{
	say("ncclGetUniqueId", dlsym(RTLD_NEXT, "ncclGetUniqueId"));
}
C
echo 'void next(void); int ncclGetVersion(int *); int main(void) { int v; next(); return ncclGetVersion(&v); }' >asks.c
mkdir old new
# shellcheck disable=SC2086 # CC may be a compiler with options
$CC -shared -fPIC -Wl,-soname,libnccl.so.2 -DVERSION='"2.19.3"' -DCODE=21903 mock.c -o old/libnccl.so.2 &&
	$CC -shared -fPIC -Wl,-soname,libnccl.so.2 -DVERSION='"2.30.7"' -DCODE=23007 -DNEW mock.c -o new/libnccl.so.2 &&
	$CC -O2 -w -DNEW_COPY="\"$work/new/libnccl.so.2\"" first.c -o first -ldl &&
	$CC -O2 -w -shared -fPIC -Wl,-soname,libnext.so next.c -o libnext.so -ldl &&
	$CC -Wl,--no-as-needed asks.c -L. -l:libnext.so -Lold -l:libnccl.so.2 -Wl,-rpath,"$work:$work/old" -o asks ||
	{ echo 'cannot compile'; exit 1; }

cat >bindings.py <<'PY'
import json
run = json.load(open("report.json"))["runs"][0]
path = {o["id"]: o["path"] for o in run["objects"]}
for b in sorted((b for b in run["bindings"] if b.get("looked_up")), key=lambda b: b["symbol"], reverse=True):
    print(b["symbol"], path[b["to"]])
PY

# same WANTED-STATUS ARGUMENT... PROGRAM: lookups that are foretold are what the program gets; the rest comes from the handle.
same() {
	local status=0 wanted=$1 program=${*: -1} line
	shift
	"$NCCLWHICH" check -f json --clean-env "$@" >report.json || status=$?
	[ $status -eq "$wanted" ] || { echo "$*: status $status, not $wanted"; cat report.json; failures=$((failures + 1)); }
	env -i "${variables[@]}" "$program" >real
	"$PYTHON" bindings.py >foretold
	while read -r line; do
		grep -qxF "$line" real || { echo "$*: foretold $line, really:"; cat real; failures=$((failures + 1)); }
	done <foretold
}

# Without a global copy all comes from the handle.
variables=()
same 0 ./first
[ -s foretold ] && { echo 'nothing is in the global scope:'; cat foretold; failures=$((failures + 1)); }

# An old copy is global: ids are minted there, communicators made in the new one.
variables=(LD_PRELOAD="$work/old/libnccl.so.2")
same 1 --preload "$work/old/libnccl.so.2" ./first
grep -qxF "ncclGetUniqueId $work/old/libnccl.so.2" foretold || { echo 'not bound to the global copy:'; cat foretold; failures=$((failures + 1)); }
grep -q '"kind": "id"' report.json || { echo 'the id that crosses is not seen'; cat report.json; failures=$((failures + 1)); }

variables=()
same 0 ./asks
grep -qxF "ncclGetUniqueId $work/old/libnccl.so.2" foretold || { echo 'RTLD_NEXT is not followed:'; cat foretold; failures=$((failures + 1)); }

"$NCCLWHICH" opens ./first >said
grep -q 'looks up ncclCommInitRank, ncclGetUniqueId  \[with RTLD_DEFAULT\]' said || { cat said; failures=$((failures + 1)); }
exit $failures
