#!/bin/bash
# What a profile can say besides names: defaults, a star, another loader, a switch, a failure; and being named.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

echo 'int ncclGetUniqueId(void *); int use(void *id) { return ncclGetUniqueId(id); }' >plugin.c
# As UCC: the name of the plugin is found by a glob, the library's stands nowhere.
cat >libucc.c <<'C'
#include <dlfcn.h>
#include <glob.h>
const char pattern[] = "%s/libucc_%s_*.so";
void *open_plugin(const char *path) { return dlopen(path, RTLD_LAZY); }
C
echo 'extern void *open_plugin(const char *); int main(void) { return !open_plugin("x"); }' >user.c
echo 'int main(void) { return 0; }' >engine.c
mkdir -p nccl ucc/lib/ucc depot/a1/lib depot/empty
# shellcheck disable=SC2086 # CC may be a compiler with options
mock_copy nccl/libnccl.so.2 && cp nccl/libnccl.so.2 depot/a1/lib/ &&
	$CC -shared -fPIC plugin.c -Lnccl -l:libnccl.so.2 -Wl,-rpath,"$work/nccl" -o ucc/lib/ucc/libucc_tl_nccl.so &&
	$CC -shared -fPIC libucc.c -Wl,-soname,libucc.so.1 -o ucc/lib/libucc.so.1 -ldl &&
	$CC user.c -Lucc/lib -l:libucc.so.1 -Wl,-rpath,"$work/ucc/lib" -o user && $CC engine.c -o engine ||
	{ echo 'cannot compile'; exit 1; }

# A plugin that brings the library: a path of its DT_NEEDED.
checks 0 'libucc_tl_nccl.so needs libnccl.so.2' ./user
rm ucc/lib/ucc/libucc_tl_nccl.so
checks 3 'verdict: none' ./user

# profile TEXT...: own.yaml with these lines
profile() {
	printf '%s\n' 'name: own' 'target: nccl' 'about: a test' 'named_only: true' 'flags: [lazy, local]' "$@" >own.yaml
}
own=(--profile ./own.yaml --profile own ./engine)

profile 'versions:' "  - names: ['{env:DIRECTORY|$work/nccl}/libnccl.so.2']"
checks 0 "copy 1, 2.30.7: $work/nccl/libnccl.so.2" "${own[@]}"
checks 0 "copy 1, 2.30.7: $work/depot/a1/lib/libnccl.so.2" --env DIRECTORY="$work/depot/a1/lib" "${own[@]}"
checks 1 'verdict: absent' --env DIRECTORY=/nowhere "${own[@]}"

# A star is the one entry that leads to a file; with two of them nothing is tried.
profile 'versions:' "  - names: ['$work/depot/*/lib/libnccl.so.2']"
checks 0 "copy 1, 2.30.7: $work/depot/a1/lib/libnccl.so.2" "${own[@]}"
mkdir -p depot/a2/lib && cp nccl/libnccl.so.2 depot/a2/lib/
checks 3 'verdict: none' "${own[@]}"

profile 'when: first-use' 'failure: no NCCL, no fun' 'unless: OWN_DISABLE' 'versions:' '  - names: [libnccl.so]'
checks 1 'known from its profile: own, at the first use' "${own[@]}"
checks 1 'opens libnccl.so and gets no copy: .*it then says: no NCCL, no fun' "${own[@]}"
checks 3 'verdict: none' --env OWN_DISABLE=1 "${own[@]}"
checks 1 'verdict: absent' --env OWN_DISABLE=0 "${own[@]}"

# The other loader is used whatever became of the first.
profile 'versions:' '  - names: [libnccl.so]' 'also:' "  - {names: [libnccl.so, '$work/nccl/libnccl.so.2'], flags: [now, local]}"
checks 1 "copy 1, 2.30.7: $work/nccl/libnccl.so.2" "${own[@]}"
grep -q 'opens libnccl.so and gets no copy' said || { echo 'the first loader fails unseen:'; cat said; failures=1; }

# On behalf of another object, whose RUNPATH is then searched; the consumer is still the engine.
$CC -shared -fPIC -Wl,-soname,libhelper.so plugin.c -Lnccl -l:libnccl.so.2 -o libhelper.so -Wl,-rpath,"$work/nccl" &&
	$CC -Wl,--no-as-needed engine.c -L. -l:libhelper.so -Wl,-rpath,"$work" -o helped || { echo 'cannot compile'; exit 1; }
profile 'caller: libhelper.so' 'does: [mints-id]' 'versions:' '  - names: [libnccl.so]'
ln -s libnccl.so.2 nccl/libnccl.so
checks 0 'libhelper.so opens libnccl.so for .*/helped  \(known from its profile: own; mints ids\)' --profile ./own.yaml --profile own ./helped
rm nccl/libnccl.so
profile 'does: [everything]' 'versions:' '  - names: [libnccl.so]'
checks 2 "does 'everything': mints-id" "${own[@]}"

# Named profiles with versions, and names that are none.
checks 1 'known from its profile: cudarc 0.19.10' --profile cudarc=0.19.10 ./engine
checks 2 'its version is wanted' --profile cudarc ./engine
checks 2 'has nothing for this version' --profile cudarc=99.0.0 ./engine
checks 2 'no profile of this name' --profile nobody ./engine
profile 'when: later' 'versions:' '  - names: [libnccl.so]'
checks 2 "when 'later': start, import or first-use" "${own[@]}"
exit $failures
