#!/bin/bash
# Arrows go down only: a folder of src/ includes its own headers and those of the folders below it.
set -u
: "${srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"

below() {
	case $1 in
	base) echo ;;
	elf) echo base ;;
	root) echo base ;;
	loader) echo base elf root ;;
	linkage) echo base elf root loader ;;
	verdict) echo base elf root loader linkage ;;
	report | confirm) echo base elf root loader linkage verdict ;;
	cmd) echo base elf root loader linkage verdict report confirm ;;
	*) return 1 ;;
	esac
}

status=0
cd "$srcdir/src" || exit 99
while IFS=: read -r file line text; do
	from=${file%%/*}
	to=$(sed 's/.*"\([^"/]*\)\/.*/\1/' <<<"$text")
	allowed=$(below "$from") || { echo "src/$from is not in tests/cli/layers.sh"; status=1; continue; }
	case " $from $allowed " in
	*" $to "*) ;;
	*) echo "src/$file:$line: $from must not include from $to"; status=1 ;;
	esac
done < <(grep -rn --include='*.[ch]' '^#include "' . | sed 's|^\./||' | sort)
exit $status
