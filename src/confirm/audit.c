/* The audit library: records, and changes nothing.
 *
 * It lives in somebody's process for as long as that runs, so it keeps no
 * descriptor (the program may close it and have the number for a file of its
 * own): the file is opened for each record.  It needs no libc, which would be a
 * second one in its namespace.  A record that cannot be written is lost, and the
 * program goes on. */
#define LINE_ROOM_GIVEN 6144 /* the stack may be a small one */
#define LINE_FAILED()   return
#include "confirm/audit.h"
#include "confirm/replay_bare.h"

#include <link.h>

int replay_records = -1;

static const char *file, *prefix = "nccl";

static void begin(int argc, char **argv, char **envp) __attribute__((constructor));

static void begin(int argc, char **argv, char **envp)
{
	(void)argc, (void)argv;
	for (; envp && *envp; envp++)
		if (bare_starts(*envp, AUDIT_VARIABLE "="))
			file = *envp + sizeof(AUDIT_VARIABLE);
		else if (bare_starts(*envp, AUDIT_PREFIX "="))
			prefix = *envp + sizeof(AUDIT_PREFIX);
}

static void line_begin(struct line *l, const char *kind)
{
	l->n = 0;
	line_field(l, kind);
	line_number(l, bare_call(SYS_getpid, 0, 0, 0, 0));
}

/* One write to a file opened for appending: processes do not mix their lines. */
static void line_append(struct line *l)
{
	long fd = bare_call(SYS_openat, AT_FDCWD, (long)file, O_WRONLY | O_APPEND | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	l->text[l->n++] = '\n';
	bare_call(SYS_write, fd, (long)l->text, (long)l->n, 0);
	bare_call(SYS_close, fd, 0, 0, 0);
}

#define PUBLIC __attribute__((visibility("default")))

PUBLIC unsigned la_version(unsigned version)
{
	return file ? version : 0; /* 0: not interested */
}

PUBLIC unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	struct stat st = {.st_dev = 0};
	struct line l;
	int program = namespace == LM_ID_BASE && !*map->l_name;

	*cookie = (uintptr_t)map;
	if (bare_stat(program ? "/proc/self/exe" : map->l_name, &st) < 0)
		st.st_ino = 0;
	line_begin(&l, "object");
	line_number(&l, namespace);
	line_field(&l, map->l_name);
	line_number(&l, (long)st.st_dev);
	line_number(&l, (long)st.st_ino);
	line_number(&l, program);
	line_append(&l);
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

static int contains(const char *name, const char *part)
{
	for (; *name; name++)
		if (bare_starts(name, part))
			return 1;
	return 0;
}

static const char *name_of(const uintptr_t *cookie)
{
	return cookie && *cookie ? ((const struct link_map *)*cookie)->l_name : "";
}

PUBLIC char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
	struct line l;

	if (flag == LA_SER_ORIG && contains(name, prefix)) {
		line_begin(&l, "search");
		line_field(&l, name);
		line_field(&l, name_of(cookie));
		line_append(&l);
	}
	return (char *)name;
}

PUBLIC uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
			      const char *name)
{
	struct line l;

	(void)index;
	if (bare_starts(name, prefix)) {
		line_begin(&l, "binding");
		line_field(&l, name_of(from));
		line_field(&l, name_of(to));
		line_field(&l, name);
		line_field(&l, *flags & LA_SYMB_DLSYM ? "dlsym" : "call");
		line_append(&l);
	}
	*flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
	return symbol->st_value;
}
