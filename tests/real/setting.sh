# Sourced by the checks on real files: what all of them need, and where things stay.
#
#   $NCCLWHICH  the program, absolute     $cache  of downloads, absolute     $work  a folder in it, removed at the end
#   $here       this folder               $python

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${NCCLWHICH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ncclwhich}
python=${PYTHON:-python3}

refuse() { # STATUS WHY
    echo "$(basename "$0"): $2" >&2
    exit "$1"
}

if [[ -z ${NCCLWHICH-} || ! -x $NCCLWHICH ]]; then
    refuse 2 'set NCCLWHICH to the program (build it first)'
fi
NCCLWHICH=$(realpath "$NCCLWHICH")
export NCCLWHICH LC_ALL=C PYTHONDONTWRITEBYTECODE=1
unset LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT LD_BIND_NOW LD_DEBUG PYTHONPATH PYTHONHOME
mkdir -p "$cache"
cache=$(realpath "$cache")
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# needs_x86_64 WHAT: the files are for one machine only.
needs_x86_64() {
    [[ $(uname -sm) == "Linux x86_64" ]] || refuse 77 "$1 x86_64, this is $(uname -sm); nothing was checked"
}

# needs TOOL...: and a Python that reads YAML.
needs() {
    local tool

    for tool in "$python" "$@"; do
        command -v "${tool%% *}" >/dev/null || refuse 2 "$tool is not installed"
    done
    "$python" -c 'import yaml' 2>/dev/null || refuse 2 "$python has no module yaml"
}
