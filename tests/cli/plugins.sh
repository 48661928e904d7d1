#!/bin/bash
# The plugins that a copy opens itself, by its version, its variables and its configuration files.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

for version in 2.18.1 2.19.3 2.20.5 2.21.5 2.22.3 2.26.2 2.27.7 2.28.3 2.28.7 2.29.7 2.30.7 2.32.3; do
	printf 'const char b[] = "NCCL version %s+cuda13.0";\nint ncclGetVersion(int *v) { *v = 1; return 0; }\n' \
		$version >mock.c
	mkdir -p "root/$version"
	# shellcheck disable=SC2086 # CC may be a compiler with options
	$CC -shared -fPIC -Wl,-soname,libnccl.so.2 mock.c -o "root/$version/libnccl.so.2" ||
		{ echo 'cannot compile'; exit 1; }
done

# opens VERSION 'NAME NAME...' ARGUMENT...
opens() {
	local version=$1 wanted=$2 got
	shift 2
	got=$("$NCCLWHICH" opens --root root "$@" "/$version/libnccl.so.2" | sed -n 's/^  opens \([^,]*\), .*  \[profile.*/\1/p' |
		paste -s -d' ')
	if [ "$got" != "$wanted" ]; then
		printf '%s %s\n  wanted %s\n  got    %s\n' "$version" "$*" "$wanted" "$got"
		failures=$((failures + 1))
	fi
}

net=libnccl-net.so tuner=libnccl-tuner.so profiler=libnccl-profiler.so env=libnccl-env.so
opens 2.18.1 "$net"
opens 2.19.3 "$net $tuner"
opens 2.22.3 "$net $tuner"
opens 2.28.3 "$net $tuner $profiler"
opens 2.28.7 "$net $tuner $profiler $env"
opens 2.29.7 "$net $tuner $profiler $env libnccl-gin.so"
opens 2.30.7 "$net $tuner $profiler $env libnccl-gin.so libnccl-rma.so"
opens 2.32.3 "$net $tuner $profiler $env libnccl-gin.so libnccl-rma.so"

# The variable: a name of its own, a name and the default, a list.
opens 2.20.5 "libnccl-net-x.so $tuner" --env NCCL_NET_PLUGIN=x
opens 2.21.5 "x libnccl-net-x.so $net $tuner" --env NCCL_NET_PLUGIN=x
opens 2.22.3 "x libnccl-net-x.so $tuner" --env NCCL_NET_PLUGIN=x
opens 2.27.7 "x libnccl-net-x.so y libnccl-net-y.so $tuner $profiler" --env NCCL_NET_PLUGIN=x,y
opens 2.27.7 "/p/libz.so $tuner $profiler" --env NCCL_NET_PLUGIN=/p/libz.so
opens 2.27.7 "none libnccl-net-none.so $tuner $profiler" --env NCCL_NET_PLUGIN=none
opens 2.28.3 "$tuner $profiler" --env NCCL_NET_PLUGIN=none
opens 2.28.3 "$net t libnccl-tuner-t.so $profiler" --env NCCL_TUNER_PLUGIN=t

# Files: the system's, the user's before it, one that a variable names instead of the user's; the environment wins.
mkdir -p root/etc root/home
echo 'NCCL_NET_PLUGIN=sys' >root/etc/nccl.conf
opens 2.22.3 "sys libnccl-net-sys.so $tuner"
printf '# a comment\nNCCL_NET_PLUGIN=user\n' >root/home/.nccl.conf
opens 2.22.3 "user libnccl-net-user.so $tuner" --env HOME=/home
echo 'NCCL_DEBUG=INFO' >root/home/other.conf
opens 2.26.2 "sys libnccl-net-sys.so $tuner $profiler" --env HOME=/home --env NCCL_CONF_FILE=/home/other.conf
opens 2.22.3 "user libnccl-net-user.so $tuner" --env HOME=/home --env NCCL_CONF_FILE=/home/other.conf
opens 2.22.3 "e libnccl-net-e.so $tuner" --env HOME=/home --env NCCL_NET_PLUGIN=e
exit $((failures > 0))
