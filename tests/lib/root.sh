# Sourced: a small root file system that the real loader can start a program in.

# fill_root ROOT PROGRAM LIBRARY_PATH: the links of this system's top and every library that ldd names for PROGRAM, but
# for the tracked one. Sets $system to the directory of libc.so.6; 1 where ldd names none.
fill_root() {
    local root=$1 program=$2 library_path=$3 path directory link

    system=
    mkdir -p "$root/etc" "$root/opt/engine"
    for link in /lib /lib64; do
        if [[ -L $link ]]; then
            ln -s "$(readlink "$link")" "$root$link"
        fi
    done
    while read -r path; do
        directory=$(realpath "$(dirname "$path")")
        mkdir -p "$root$directory"
        cp -L "$path" "$root$directory/"
        case $path in
        */libc.so.*) system=$directory ;;
        esac
    done < <(LD_LIBRARY_PATH=$library_path ldd "$program" |
        sed -n '/libnccl/d; s/.*=> *//; s/^[[:space:]]*\(\/.*\) (0x.*/\1/p')
    [[ -n $system ]]
}

# name_copy ROOT VERSION: the names under which packages install libnccl.so.VERSION in $system, and its ld.so.conf.
name_copy() {
    ln -s "libnccl.so.$2" "$1$system/libnccl.so.2"
    ln -s libnccl.so.2 "$1$system/libnccl.so"
    echo "$system" >"$1/etc/ld.so.conf"
}
