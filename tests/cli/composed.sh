#!/bin/bash
# Names that an engine makes of formats, settings and tables: what it really gets is what was said.
set -u
# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/../lib/cli.sh"

# Each engine opens by one function, says what it got, and uses the library.
cat >engine.h <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
static void *open_library(void);
int main(void)
{
	void *h = open_library();
	struct link_map *map;

	if (!h || dlinfo(h, RTLD_DI_LINKMAP, &map))
		puts("nothing");
	else if (dlsym(h, "ncclCommInitRank") && dlsym(h, "ncclGetUniqueId"))
		puts(map->l_name);
	return 0;
}
C
cat >home.c <<'C'
#include "engine.h"
static void *open_library(void)
{
	const char *home = getenv("ACME_HOME");
	char name[4096];

	if (home)
		snprintf(name, sizeof(name), "%s/lib%s.so.%d", home, "nccl", 2);
	else
		snprintf(name, sizeof(name), "%s", "libnccl.so.2");
	return dlopen(name, RTLD_LAZY);
}
C
cat >file.c <<'C'
#include "engine.h"
static void *open_library(void)
{
	const char *name = getenv("ACME_FILE");

	return dlopen(name ? name : "libnccl.so.2", RTLD_LAZY);
}
C
# Two calls of which one is made, and two of which the second follows where the first fails.
cat >either.c <<'C'
#include "engine.h"
static void *open_library(void)
{
	const char *name = getenv("ACME_FILE");

	if (name)
		return dlopen(name, RTLD_LAZY);
	fputs("the usual one\n", stderr);
	return dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NODELETE);
}
C
cat >orelse.c <<'C'
#include "engine.h"
static void *open_library(void)
{
	const char *name = getenv("ACME_FILE");
	void *h = NULL;

	if (name)
		h = dlopen(name, RTLD_LAZY);
	if (!h) {
		fputs("the usual one\n", stderr);
		h = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NODELETE);
	}
	return h;
}
C
cat >table.c <<'C'
#include "engine.h"
static void *open_library(void)
{
	static const char *const names[] = {"libnccl.so.9", "libnccl.so.2", "libnccl.so", "libnccl.so.1"};
	void *h = NULL;

	for (unsigned i = 0; !h && i < sizeof(names) / sizeof(names[0]); i++)
		h = dlopen(names[i], RTLD_LAZY);
	return h;
}
C
cat >suffix.c <<'C'
#include "engine.h"
static __attribute__((noinline)) void *open_version(const char *suffix)
{
	char name[256];
	void *h;

	snprintf(name, sizeof(name), "libnccl.so%s", suffix);
	h = dlopen(name, RTLD_LAZY);
	if (!h)
		fprintf(stderr, "no %s\n", name);
	return h;
}
static void *open_library(void)
{
	const char *chosen = getenv("ACME_SUFFIX");
	void *h = open_version(chosen ? chosen : ".2");

	return h ? h : open_version("");
}
C
mkdir a b
# shellcheck disable=SC2086 # CC may be a compiler with options
{
	mock_copy a/libnccl.so.2 && cp a/libnccl.so.2 a/libnccl.so &&
		cp a/libnccl.so.2 b/libnccl.so.2 && cp a/libnccl.so.2 b/other.so &&
		for engine in home file either orelse table suffix; do
			$CC -O2 -w $engine.c -o $engine -ldl && $CC -O0 -w $engine.c -o $engine-plain -ldl || exit 1
		done
} || { echo 'cannot compile'; exit 1; }

# same ENGINE [NAME=VALUE]: what it gets is the instance that is foretold; with `nothing` there is none.
same() {
	local engine=$1 real said
	shift
	real=$(env -i "$@" LD_LIBRARY_PATH="$work/a" "./$engine" 2>/dev/null)
	"$NCCLWHICH" check -f json --clean-env "${@/#/--env=}" --library-path "$work/a" "./$engine" >report.json
	said=$("$PYTHON" -c 'import json
run = json.load(open("report.json"))["runs"][0]
paths = [o["realpath"] for o in run["objects"] if o["id"] in [i["object"] for i in run["instances"]]]
print(" ".join(paths) or ("nothing" if run["verdict"] in ("absent", "none") else run["verdict"]))')
	if [ "$(realpath -q "$real" || echo "$real")" != "$said" ] && [ "$real" != "$said" ]; then
		echo "$engine $*: gets $real, but $said was foretold"
		failures=$((failures + 1))
	fi
}

for kind in '' -plain; do
	same home$kind
	same home$kind ACME_HOME="$work/b"
	same home$kind ACME_HOME="$work/nowhere"
	for engine in file either orelse; do
		same $engine$kind
		same $engine$kind ACME_FILE="$work/b/libnccl.so.2"
		same $engine$kind ACME_FILE="$work/b/other.so"
		same $engine$kind ACME_FILE=libnccl.so
		same $engine$kind ACME_FILE="$work/nowhere/libnccl.so.2"
	done
	same table$kind
	same suffix$kind
	same suffix$kind ACME_SUFFIX=.7
	same suffix$kind ACME_SUFFIX=.2
done
exit $failures
