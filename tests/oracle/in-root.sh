#!/usr/bin/env bash
# The case folders, random universes and the replay under another distribution's loader: in a root that holds python3,
# PyYAML, gcc and binutils, as `debootstrap --include=python3,python3-yaml,gcc,libc6-dev,binutils` makes it. Needs root
# rights; the program is the portable one (`make portable`). The root is entered in a mount namespace of its own, and
# /ncclwhich in it is written over.
#
# usage: in-root.sh PORTABLE ROOT [UNIVERSES [SEED]]      PORTABLE: the directory that `make portable` fills
#
# Exit status: 0 nothing differs, 1 something does, 2 it could not be run.
set -euo pipefail

if (($# < 2)); then
    sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
portable=$(realpath "$1")
root=$(realpath "$2")
for file in "$portable/ncclwhich" "$root/usr/bin/python3"; do
    [[ -x $file ]] || { echo "in-root.sh: $file is missing" >&2; exit 2; }
done
export NCCLWHICH=/ncclwhich/portable/ncclwhich UNIVERSES=${3:-1000} SEED=${4:-7} LC_ALL=C
rm -rf "$root/ncclwhich"
mkdir "$root/ncclwhich"
cp -r "$tests" "$tests/../src" "$tests/../data" "$root/ncclwhich"
cp -r "$portable" "$root/ncclwhich/portable"

# Of itself a chroot has no mount point at /, which confirm's own view of a root needs.
exec unshare --mount --propagation private bash -c '
    mount --bind "$1" "$1" && mount --bind /proc "$1/proc" && mount --bind /dev "$1/dev" && cd "$1" &&
    exec chroot . /bin/bash -c "
        cd /ncclwhich/tests; status=0
        ldd --version | head -1
        python3 lib/run-cases | grep -Ev \"^(PASS|SKIP)\"
        ((PIPESTATUS[0])) && status=1
        python3 oracle/oracle.py --n \$UNIVERSES --seed \$SEED | tail -n 1
        ((PIPESTATUS[0])) && status=1
        python3 oracle/oracle.py --n \$UNIVERSES --seed \$SEED --bindings | tail -n 1
        ((PIPESTATUS[0])) && status=1
        python3 confirm/run-confirm --cases --universes 200 | grep -v \"^ok\"
        ((PIPESTATUS[0])) && status=1
        exit \$status"' in-root "$root"
