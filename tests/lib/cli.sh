# Sourced by tests of the command line: an empty folder to work in, and what is counted there.
# Ends with `exit $failures`; $said has what the program said last.
: "${CC:=gcc}" "${PYTHON:=python3}" "${srcdir:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
failures=0

fail() {
	printf '%s\n' "$*"
	failures=$((failures + 1))
}

# expect STATUS TEXT ARGUMENT...: `ncclwhich ARGUMENT...` ends so and says TEXT, a regular expression.
expect() {
	local wanted=$1 text=$2 status=0
	shift 2
	"$NCCLWHICH" "$@" >said 2>&1 || status=$?
	if [ $status -ne "$wanted" ] || ! grep -qE -- "$text" said; then
		fail "wanted status $wanted and '$text' from: $*"
		echo "got status $status and:"
		cat said
	fi
}

# checks STATUS TEXT ARGUMENT...: the same of `check` in an empty environment.
checks() {
	expect "$1" "$2" check --clean-env "${@:3}"
}

# mock_copy FILE: a copy of the library that says its version, and does nothing.
mock_copy() {
	cat >mock.c <<'C'
const char banner[] = "NCCL version 2.30.7+cuda13.0";
int ncclGetVersion(int *version) { *version = 23007; return 0; }
int ncclGetUniqueId(void *id) { (void)id; return 0; }
int ncclCommInitRank(void **comm) { (void)comm; return 0; }
C
	# shellcheck disable=SC2086 # CC may be a compiler with options
	$CC -shared -fPIC -Wl,-soname,libnccl.so.2 mock.c -o "$1"
}
