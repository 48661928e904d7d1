#!/bin/bash
# Every header compiles alone: it includes what it uses.
set -u
: "${srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${CC:=cc}"
status=0
cd "$srcdir/src" || exit 99
while read -r header; do
	# $CC may carry flags.
	# shellcheck disable=SC2086
	printf '#include "%s"\n' "${header#./}" |
		$CC -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -fsyntax-only -x c - ||
		{ echo "does not compile alone: src/${header#./}"; status=1; }
done < <(find . -name '*.h' | sort)
exit $status
