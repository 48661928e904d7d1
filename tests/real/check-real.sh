#!/usr/bin/env bash
# ncclwhich on real files: NVIDIA's NCCL wheels, a PyTorch CUDA wheel, and an engine with the real cudarc crate. Needs
# the package registries (pip, cargo) for the first run, no GPU, and about 3 GB in the cache.
#
# usage: NCCLWHICH=path/to/ncclwhich check-real.sh
#
# NCCLWHICH_CACHE  where downloads and builds stay; default ${XDG_CACHE_HOME:-~/.cache}/ncclwhich
#
# Prints a line for every check and last `N passed, N failed, N skipped`.
# Exit status: 0 none failed, 1 some failed, 2 usage, 77 the wheels can neither be found in the cache nor downloaded.
set -euo pipefail

# shellcheck source=tests/real/setting.sh
source "$(dirname "${BASH_SOURCE[0]}")/setting.sh"
# shellcheck source=tests/lib/root.sh
source "$here/../lib/root.sh"
newer=2.30.7 newer_code=23007
older=2.27.7 older_code=22707
torch=2.15.0
cudarc=0.19.10
rust_floor=1.88
cannot_download='failed to (download|get|fetch|query|update)|could(n.t| not) (resolve|connect)|network|offline'

PATH=$PATH:/usr/sbin:/sbin

passed=0 failed=0 skipped=0
ok() {
    echo "ok - $1"
    passed=$((passed + 1))
}
not_ok() {
    echo "not ok - $1"
    failed=$((failed + 1))
    if [[ -n ${2-} ]]; then
        printf '#   %s\n' "${2//$'\n'/$'\n#   '}"
    fi
}
skip() {
    echo "ok - $1 # SKIP $2"
    skipped=$((skipped + 1))
}
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [[ $failed == 0 ]]
    exit
}

# is NAME WANTED SEEN
is() {
    if [[ $2 == "$3" ]]; then
        ok "$1"
    else
        not_ok "$1" "wanted: $2"$'\n'"seen:   $3"
    fi
}

# ask NAME WANTED-STATUS COMMAND ARGUMENT...: a JSON report, kept in $report; WANTED-STATUS may be "any".
ask() {
    local name=$1 wanted=$2 status=0
    shift 2

    report=$work/report.json
    "$NCCLWHICH" "$1" -f json "${@:2}" >"$report" 2>"$work/complaints" || status=$?
    if [[ $wanted != any ]]; then
        is "$name: exit status" "$wanted" "$status"
    elif [[ $status != [013] ]]; then
        not_ok "$name: exit status" "$status"
    fi
    if [[ -s $work/complaints ]]; then
        sed 's/^/# stderr: /' "$work/complaints"
    fi
}

# expect NAME EXPRESSION: of the last report.
expect() {
    local said

    if said=$(python3 "$here/report.py" "$report" "$2" 2>&1); then
        ok "$1"
    else
        not_ok "$1" "$said"
    fi
}

# fetch_wheel NAME VERSION: prints the path of the wheel in the cache.
fetch_wheel() {
    local name=$1 version=$2 found tag options=()
    local stem="${name//-/_}-$version"

    found=$(compgen -G "$cache/wheels/$stem-*.whl" | head -n 1 || true)
    if [[ -z $found ]]; then
        for tag in 2_28 2_27 2_24 2_18 2_17; do
            options+=(--platform "manylinux_${tag}_$(uname -m)")
        done
        options+=(--platform "manylinux2014_$(uname -m)")
        mkdir -p "$work/download" "$cache/wheels"
        python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
            --python-version 3.12 "${options[@]}" --dest "$work/download" "$name==$version" >&2 || return 1
        mv "$work/download/$stem"-*.whl "$cache/wheels/"
        found=$(compgen -G "$cache/wheels/$stem-*.whl" | head -n 1)
    fi
    echo "$found"
}

# unpack_wheel WHEEL: prints the directory of the unpacked wheel in the cache.
unpack_wheel() {
    local directory
    directory=$cache/unpacked/$(basename "$1" .whl)

    if [[ ! -d $directory ]]; then
        python3 "$here/wheel.py" unpack "$1" "$directory"
    fi
    echo "$directory"
}

need_wheel() {
    local wheel

    if ! wheel=$(fetch_wheel "$1" "$2"); then
        echo "check-real.sh: $1 $2 is not in $cache and cannot be downloaded; nothing was checked" >&2
        exit 77
    fi
    unpack_wheel "$wheel"
}

# --- PyTorch -------------------------------------------------------------------------------------------------------

# The real loader's list for a shared object: NAME => FILE, without addresses.
trace() {
    LD_TRACE_LOADED_OBJECTS=1 LD_LIBRARY_PATH=$2 "$interp" "$1" 2>/dev/null |
        sed 's/^[[:space:]]*//; s/ (0x[0-9a-f]*)$//' || true
}

# Libraries in place of the CUDA libraries that torch's other dependencies bring, in the directory where those would be.
add_stand_ins() {
    local lib=$1 directory=$2 names objects

    mapfile -t names < <(trace "$lib" '' | sed -n 's/ => not found$//p' | sort -u)
    mapfile -t objects < <(trace "$lib" '' | sed -n 's/^.* => \(\/.*\)/\1/p' | sort -u)
    python3 "$here/stand_ins.py" "$directory" "${names[@]}" -- "$lib" "${objects[@]}"
}

check_torch() {
    local site=$work/site decoy=$work/decoy lib nccl path text

    # The same inodes as in the cache: hard links.
    cp -al "$torch_files" "$site"
    cp -al "$torch_nccl_files/nvidia" "$site/"
    mkdir "$decoy"
    ln "$older_files/nvidia/nccl/lib/libnccl.so.2" "$decoy/libnccl.so.2"
    lib=$site/torch/lib/libtorch_cuda.so
    nccl=$(realpath "$site/nvidia/nccl/lib/libnccl.so.2")
    add_stand_ins "$lib" "$site/nvidia/cu13/lib"
    text=$(LD_TRACE_LOADED_OBJECTS=1 LD_WARN=yes LD_BIND_NOW=yes "$interp" "$lib" 2>&1 |
        grep -E 'not found|undefined symbol|no version' || true)
    is "torch $torch: the real loader could bind everything" "" "$text"

    text=$(readelf -dW "$lib")
    is "torch $torch: libtorch_cuda.so carries DT_RPATH, no DT_RUNPATH" "1 0" \
        "$(grep -c '(RPATH)' <<<"$text" || true) $(grep -c '(RUNPATH)' <<<"$text" || true)"

    for path in "" "$decoy"; do
        text="torch $torch, no LD_LIBRARY_PATH"
        if [[ -n $path ]]; then
            text="torch $torch, LD_LIBRARY_PATH with a decoy of $older"
        fi
        is "$text: the real loader takes the wheel's NCCL" "$nccl" \
            "$(realpath "$(trace "$lib" "$path" | sed -n 's/^libnccl\.so\.2 => //p')")"
        ask "$text" any check --clean-env ${path:+--library-path "$path"} "$lib"
        expect "$text: ncclwhich check says the wheel's NCCL" "instances() == ['$nccl']"
        expect "$text: found by DT_RPATH" "found_by('libnccl.so.2', 'needed') == ['rpath']"
        expect "$text: version read from the file" "versions() == ['$torch_nccl']"
        expect "$text: start-up works" "not any(o.get('missing') for o in run['objects'])"
        ask "$text" 0 tree --clean-env ${path:+--library-path "$path"} "$lib"
        expect "$text: ncclwhich tree lists that file, once" \
            "[o['realpath'] for o in objects('libnccl.so.2')] == ['$nccl']"
        expect "$text: ncclwhich tree lists the real loader's files in its order" \
            "loaded_after('libtorch_cuda.so') == '$(real_order "$lib" "$path")'.split()"
        LD_LIBRARY_PATH=$path "$NCCLWHICH" check -f json "$lib" >"$report" 2>/dev/null || true
        expect "$text: the same from the caller's environment" "instances() == ['$nccl']"
    done
}

# Files of the loader's list, in order, without those that any process has: here they come in their turn, in a process
# that opens the object they are there before it.
real_order() {
    trace "$1" "$2" | sed -n '/linux-vdso\|ld-linux\|libc\.so/d; s/^.* => //; /^\//p' | tr '\n' ' '
}

# --- the cudarc engine ---------------------------------------------------------------------------------------------

rust_is_new_enough() {
    local version

    version=$(rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
    [[ -n $version && $(printf '%s\n' "$rust_floor" "$version" | sort -V | head -n 1) == "$rust_floor" ]]
}

# Builds in the cache, so that nothing is written beside the sources. Sets $engine.
build_engine() {
    local file

    mkdir -p "$cache/engine/src" "$cache/engine-nccl"
    for file in Cargo.toml build.rs shim.c src/main.rs; do
        if ! cmp -s "$here/engine/$file" "$cache/engine/$file"; then
            cp "$here/engine/$file" "$cache/engine/$file"
        fi
    done
    ln -sfn "$newer_files/nvidia/nccl/lib/libnccl.so.2" "$cache/engine-nccl/libnccl.so"
    (cd "$cache/engine" && ENGINE_NCCL_LIB_DIR=$cache/engine-nccl \
        cargo build --quiet --release --target-dir "$cache/target") >"$work/cargo.log" 2>&1 || return 1
    engine=$cache/target/release/engine
}

# make_root ROOT VERSION FILES: the engine, what the real loader needs to start it, and one NCCL in the system directory
# under all three names and in ld.so.cache. Sets $system.
make_root() {
    local root=$1 version=$2 files=$3

    fill_root "$root" "$engine" "$newer_files/nvidia/nccl/lib" || return 1
    cp "$engine" "$root/opt/engine/engine"
    ln "$files/nvidia/nccl/lib/libnccl.so.2" "$root$system/libnccl.so.$version"
    name_copy "$root" "$version"
    ldconfig -X -i -r "$root" 2>/dev/null
}

# Sets $way: how a program can be started inside a root here, empty if it cannot.
choose_way() {
    local candidate

    for candidate in chroot 'unshare --user --map-root-user chroot'; do
        read -ra way <<<"$candidate"
        if LD_LIBRARY_PATH=/shared/nccl/lib "${way[@]}" "$1" /opt/engine/engine >"$work/try.log" 2>&1; then
            return
        fi
    done
    way=()
}

# really ROOT LIBRARY-PATH NAME SHIM-CODE CUDARC-CODE FILE...: starts the engine; compares what both paths answer and
# the files that the loader really initialised.
really() {
    local root=$1 path=$2 name=$3 shim=$4 opened=$5 said
    shift 5

    if [[ ${#way[@]} == 0 ]]; then
        skip "$name: the real loader" "neither chroot nor user namespaces may be used here"
        return
    fi
    said=$(LD_DEBUG=files LD_LIBRARY_PATH=$path "${way[@]}" "$root" /opt/engine/engine 2>"$work/debug" || true)
    is "$name: really run, the shim and cudarc answer" "shim $shim (result 0) cudarc $opened" \
        "$(grep -E '^(shim|cudarc) ' <<<"$said" | tr '\n' ' ' | sed 's/ $//')"
    is "$name: really run, the files mapped" "$(printf '%s\n' "$@" | sort)" \
        "$(sed -n 's/.*calling init: \(.*libnccl.*\)/\1/p' "$work/debug" | sort -u)"
}

check_engine() {
    local root=$work/seed shared=/shared/nccl/lib/libnccl.so text first

    text=$(grep -a -o 'libnccl\.so[.0-9]*' "$engine" | sort -u | tr '\n' ' ')
    is "the engine holds no libnccl.so, only its DT_NEEDED" "libnccl.so.2 " "$text"
    is "the engine has no line that ends a string after libnccl.so" 0 \
        "$(tr '\0' '\n' <"$engine" | grep -a -c 'libnccl\.so$' || true)"

    make_root "$root" "$older" "$older_files"
    mkdir -p "$root/shared/nccl/lib"
    ln "$newer_files/nvidia/nccl/lib/libnccl.so.2" "$root$shared.$newer"
    ln -s "libnccl.so.$newer" "$root$shared.2"
    choose_way "$root"

    local arguments=(--root "$root" --library-path /shared/nccl/lib /opt/engine/engine)
    ask "seed layout" 1 check "${arguments[@]}"
    expect "seed layout: verdict crossed or split" "verdict in ('crossed', 'split')"
    expect "seed layout: cudarc's path to libnccl.so is found, by its profile" "paths('libnccl.so', 'profile') != []"
    expect "seed layout: the report names cudarc $cudarc" "'cudarc' in text and '$cudarc' in text"
    expect "seed layout: libnccl.so is found by the cache" \
        "found_by('libnccl.so', 'profile') == ['cache'] and opened('libnccl.so') == ['$system/libnccl.so.$older']"
    expect "seed layout: libnccl.so.2 is found by LD_LIBRARY_PATH" \
        "found_by('libnccl.so.2', 'needed') == ['env'] and opened('libnccl.so.2') == ['$shared.$newer']"
    expect "seed layout: two copies, $older and $newer read from the files" "versions() == ['$older', '$newer']"
    expect "seed layout: the files of the two copies" \
        "instances() == ['$shared.$newer', '$system/libnccl.so.$older']"
    expect "seed layout: cudarc's path mints an id, makes and uses a communicator" \
        "does('libnccl.so') == ['makes-comm', 'mints-id', 'uses-comm']"
    expect "seed layout: the shim's path mints an id and makes a communicator" \
        "{'makes-comm', 'mints-id'} <= set(does('libnccl.so.2'))"
    expect "seed layout: the missing file is among the candidates" \
        "passed_over('libnccl.so', '$shared') == ['ENOENT']"
    expect "seed layout: the fix is one link" "'ln -s libnccl.so.2 $shared' in fixes()"
    first=$(cksum <"$report")
    ask "seed layout" any check "${arguments[@]}"
    is "seed layout: the same bytes twice" "$first" "$(cksum <"$report")"
    really "$root" /shared/nccl/lib "seed layout" "$newer_code" "$older_code" \
        "$shared.2" "$system/libnccl.so"

    ln -s libnccl.so.2 "$root$shared"
    ask "with the link" 0 check "${arguments[@]}"
    expect "with the link: verdict one" "verdict == 'one'"
    expect "with the link: one copy, $newer" "versions() == ['$newer']"
    really "$root" /shared/nccl/lib "with the link" "$newer_code" "$newer_code" "$shared.2"

    make_root "$work/image" "$newer" "$newer_files"
    ask "container" 0 check --root "$work/image" /opt/engine/engine
    expect "container: verdict one" "verdict == 'one'"
    expect "container: one copy, $newer" "versions() == ['$newer']"
    really "$work/image" '' "container" "$newer_code" "$newer_code" "$system/libnccl.so.2"
}

# -------------------------------------------------------------------------------------------------------------------

case $(uname -sm) in
"Linux x86_64" | "Linux aarch64") ;;
*)
    echo "check-real.sh: there are no such wheels for $(uname -sm); nothing was checked" >&2
    exit 77
    ;;
esac
for tool in python3 gcc readelf ldconfig; do
    if ! command -v "$tool" >/dev/null; then
        echo "check-real.sh: $tool is not installed" >&2
        exit 2
    fi
done
if ! python3 -m pip --version >/dev/null 2>&1 && [[ ! -d $cache/wheels ]]; then
    echo "check-real.sh: pip is not installed and $cache has no wheels; nothing was checked" >&2
    exit 77
fi
interp=$(readelf -lW "/proc/$$/exe" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')

newer_files=$(need_wheel nvidia-nccl-cu13 "$newer")
older_files=$(need_wheel nvidia-nccl-cu13 "$older")
torch_files=$(need_wheel torch "$torch")
torch_nccl=$(python3 "$here/wheel.py" pinned "$(fetch_wheel torch "$torch")" nvidia-nccl-cu13)
torch_nccl_files=$(need_wheel nvidia-nccl-cu13 "$torch_nccl")
echo "# wheels in $cache: nvidia-nccl-cu13 $newer and $older, torch $torch (asks for NCCL $torch_nccl)"

check_torch
if ! rust_is_new_enough; then
    skip "the engine with cudarc $cudarc" "no Rust of $rust_floor or newer"
elif ! build_engine; then
    if grep -Eqi "$cannot_download" "$work/cargo.log"; then
        skip "the engine with cudarc $cudarc" "the crates cannot be downloaded"
    else
        not_ok "the engine with cudarc $cudarc builds" "$(tail -n 20 "$work/cargo.log")"
    fi
else
    check_engine
fi
finish
