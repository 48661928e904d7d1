#!/usr/bin/env bash
# The main job in miniature, for somebody who has never seen ncclwhich: an engine that reaches NCCL in two ways, on a
# machine where the two ways end in two different files. Everything is compiled here, into a temporary directory; the
# libraries are mocks that need no GPU.
#
# usage: NCCLWHICH=path/to/ncclwhich demo.sh [--keep]
#
# Exit status: 0 every answer as expected, 1 not so, 2 the demo could not run.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../lib/root.sh
source "$here/../lib/root.sh"
keep=no
case "${1-}" in
'') ;;
--keep) keep=yes ;;
*)
    echo "usage: NCCLWHICH=path/to/ncclwhich demo.sh [--keep]" >&2
    exit 2
    ;;
esac

if [[ -z ${NCCLWHICH-} || ! -x $NCCLWHICH ]]; then
    echo "demo.sh: set NCCLWHICH to the program (build it first)" >&2
    exit 2
fi
NCCLWHICH=$(realpath "$NCCLWHICH")
read -ra cc <<<"${CC:-gcc}"
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT LD_BIND_NOW

work=$(mktemp -d "${TMPDIR:-/tmp}/ncclwhich-demo.XXXXXX")
leave() {
    if [[ $keep == yes ]]; then
        echo "kept: $work"
    else
        rm -rf "$work"
    fi
}
trap leave EXIT
cd "$work"

failures=0
fail() {
    printf 'NOT AS EXPECTED: %s\n' "$*"
    failures=$((failures + 1))
}

title() {
    printf '\n%s\n%s\n' "$*" "${*//?/-}"
}

# The two mock versions, the shim's archive and the engine.
build() {
    local flags=(-std=gnu11 -O2 -Wall -Wextra)
    local version code size

    mkdir build
    while read -r version code size; do
        "${cc[@]}" "${flags[@]}" -fPIC -shared -Wl,-z,lazy -Wl,-soname,libnccl.so.2 -DNCCL_CODE="$code" \
            -DNCCL_VERSION="\"$version\"" -DNCCL_COMM="$size" "$here/nccl.c" -o "build/libnccl.so.$version"
    done <<<"2.30.7 23007 1199744
2.27.7 22707 1080320"
    ln -s libnccl.so.2.30.7 build/libnccl.so
    ln -s libnccl.so.2.30.7 build/libnccl.so.2
    "${cc[@]}" "${flags[@]}" -fPIE -c "$here/shim.c" -o build/shim.o
    ar rcs build/libshim.a build/shim.o
    "${cc[@]}" "${flags[@]}" -fPIE -pie "$here/engine.c" "$here/binding.c" -Lbuild -lshim -lnccl -ldl -o build/engine
    "${cc[@]}" "${flags[@]}" -DBINDING_FLAGS='(RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND)' -fPIE -pie \
        "$here/engine.c" "$here/binding.c" -Lbuild -lshim -lnccl -ldl -o build/engine-deepbind
}

# make_root ROOT VERSION: a small root file system that the real loader can start the engine in, with NCCL VERSION in
# the system directory under all three names, as the distribution's packages install it. Sets $system.
make_root() {
    local root=$1 version=$2

    if ! fill_root "$root" build/engine "$PWD/build"; then
        echo "demo.sh: ldd names no libc.so" >&2
        exit 2
    fi
    cp build/engine build/engine-deepbind "$root/opt/engine/"
    cp "build/libnccl.so.$version" "$root$system/"
    name_copy "$root" "$version"
    if ! ldconfig -X -i -r "$root" 2>build/ldconfig.log; then
        echo "(ldconfig made no ld.so.cache in $root; its system directory is searched by default all the same)"
    fi
}

layout() {
    local root=$1

    find "$root" \( -name 'libnccl*' -o -name engine -o -name ld.so.cache \) \
        \( -type f -printf '    %p\n' -o -type l -printf '    %p -> %l\n' \) | sort
}

# check ROOT WANTED-VERDICTS WANTED-STATUS ARGUMENT...: shows the command and what it says; keeps it in build/said.
check() {
    local root=$1 verdicts=$2 wanted=$3 status=0
    shift 3

    printf '$ ncclwhich check --root %s %s\n\n' "$root" "$*"
    "$NCCLWHICH" check --root "$root" "$@" >build/said 2>build/complaints || status=$?
    cat build/said
    if [[ -s build/complaints ]]; then
        sed 's/^/stderr: /' build/complaints
    fi
    printf '\n(exit status %d)\n' "$status"
    if ! grep -Eq "^verdict: ($verdicts)" build/said; then
        fail "no line 'verdict: ${verdicts//|/ or }'"
    fi
    if [[ $status != "$wanted" ]]; then
        fail "exit status $status, not $wanted"
    fi
}

says() {
    if ! grep -Fq -e "$1" build/said; then
        fail "the report does not say '$1'"
    fi
}

# Sets $way: how a program can be started inside a root here, empty if it cannot.
choose_way() {
    local candidate

    for candidate in chroot 'unshare --user --map-root-user chroot'; do
        read -ra way <<<"$candidate"
        if LD_LIBRARY_PATH=/shared/nccl/lib "${way[@]}" host /opt/engine/engine decode >build/try.log 2>&1; then
            return
        fi
    done
    way=()
}

# really ROOT WANTED-STATUS WANTED-TEXT LIBRARY-PATH [ENGINE]: starts the engine for real.
really() {
    local root=$1 wanted=$2 text=$3 path=$4 engine=/opt/engine/${5-engine} status=0

    if [[ ${#way[@]} == 0 ]]; then
        echo "Not started for real: neither chroot nor user namespaces may be used here."
        return
    fi
    if [[ -n $path ]]; then
        printf '$ LD_LIBRARY_PATH=%s %s      (for real, inside %s)\n\n' "$path" "$engine" "$root"
        LD_LIBRARY_PATH=$path "${way[@]}" "$root" "$engine" >build/ran 2>&1 || status=$?
    else
        printf '$ %s      (for real, inside %s)\n\n' "$engine" "$root"
        "${way[@]}" "$root" "$engine" >build/ran 2>&1 || status=$?
    fi
    cat build/ran
    printf '\n(exit status %d)\n' "$status"
    if [[ $status != "$wanted" ]] || ! grep -q -e "$text" build/ran; then
        fail "the real run did not end with status $wanted and '$text'"
    fi
}

build
make_root host 2.27.7
mkdir -p host/shared/nccl/lib
cp build/libnccl.so.2.30.7 host/shared/nccl/lib/
ln -s libnccl.so.2.30.7 host/shared/nccl/lib/libnccl.so.2
make_root image 2.30.7
choose_way

cat <<TEXT
ncclwhich demo: which NCCL does each part of this engine get?

An inference engine reaches NCCL in two ways. Its communication shim is linked to libnccl.so.2. Its other half is
written like the Rust crate cudarc: it opens NCCL at run time, under a name that it composes from "lib", "nccl" and
".so", so that name stands nowhere in the file. Nothing in the engine says that the two must get the same file.

(The libraries here are mocks, compiled a moment ago: two versions with the real names, banners and version numbers,
and communicators of different size. The loader is the real one.)
TEXT

title "1. A bare-metal machine"
cat <<TEXT
A shared directory has NCCL 2.30.7, but not under the plain name libnccl.so. The system has an older one, 2.27.7,
under every name, and in its ld.so.cache. "host" is the root directory of that machine:

TEXT
layout host
cat <<TEXT

The engine is started with LD_LIBRARY_PATH=/shared/nccl/lib. Before it is started, ask:

TEXT
check host crossed 1 --library-path /shared/nccl/lib /opt/engine/engine
says 2.30.7
says 2.27.7
says 'passed over /shared/nccl/lib/libnccl.so: no such file'
says 'ln -s libnccl.so.2 /shared/nccl/lib/libnccl.so'
says 'runs in copy 1: ncclCommGetAsyncError  [first-collective: error'
says 'first trouble at the first collective: ncclInvalidArgument (4)'
echo
really host 1 'all-reduce: 4 (ncclInvalidArgument)' /shared/nccl/lib
cat <<TEXT

Both copies are sound. The communicator was made by 2.27.7, and the first collective of 2.27.7 asked "is this
communicator ready?" through a symbol that the loader had bound to 2.30.7, which does not know the object.
TEXT

title "2. The same machine after the fix"
cat <<TEXT
One link, so that the composed name is found in the shared directory, too:

\$ ln -s libnccl.so.2 host/shared/nccl/lib/libnccl.so

TEXT
ln -s libnccl.so.2 host/shared/nccl/lib/libnccl.so
check host one 0 --library-path /shared/nccl/lib /opt/engine/engine
echo
really host 0 'all-reduce: 0 (ncclSuccess)' /shared/nccl/lib

title "3. The container"
cat <<TEXT
The image has one NCCL, installed with both links, and sets no LD_LIBRARY_PATH. The same engine file was never broken
there, which is why nobody looked at its links:

TEXT
layout image
echo
check image one 0 /opt/engine/engine
echo
really image 0 'all-reduce: 0 (ncclSuccess)' ''

title "4. For who owns the code that opens it"
cat <<TEXT
The machine as it was, without the link, but with an engine that opens its copy with RTLD_DEEPBIND: the copy then asks
itself first. There are still two copies, and nothing goes from one to the other. (The flag is declared here; it
overrides what the profile of cudarc says.)

TEXT
rm host/shared/nccl/lib/libnccl.so
check host split 1 --library-path /shared/nccl/lib --dlopen 'libnccl.so,lazy,local,deepbind' \
    /opt/engine/engine-deepbind
if grep -q '^crossings' build/said; then
    fail "crossings in spite of RTLD_DEEPBIND"
fi
echo
really host 0 'all-reduce: 0 (ncclSuccess)' /shared/nccl/lib engine-deepbind

title "Summary"
if [[ $failures != 0 ]]; then
    echo "demo: $failures not as expected"
    exit 1
fi
echo "demo: bare metal broken, one link mends it, the container is sound, RTLD_DEEPBIND separates: all as expected"
