/* The replay library: preloaded into the engine, it takes over before main,
 * does the predicted opens as the objects that would do them, reports what the
 * real loader made of it, and leaves without ever running the engine.
 *
 * Whose open it is, the loader reads from the return address of dlopen.  So
 * dlopen is entered with the address of a return instruction *inside the
 * caller*, which leads straight back here: the caller's whole chain of DT_RPATH,
 * its DT_RUNPATH, its $ORIGIN and its flags count, whatever they are.
 *
 * In mode 1 that happens in our constructor, which -z initfirst puts before all
 * others (up to glibc 2.33 a libpthread may be first; its constructor opens
 * nothing).  In mode 2 the constructors must have run before NCCL is called:
 * the entry point of the program is overwritten with a jump to us. */
#include "confirm/replay.h"
#include "confirm/replay_map.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

int replay_records = -1;
struct nccl_path paths[PATHS_MOST];
int n_paths;
int case_path[3] = {-1, -1, -1};
int n_ranks = 1, n_elements = 1024;

static int mode;
static struct {
	int argc;
	char **argv, **envp;
} start;
static char orders[1 << 20];

struct question {
	const char *caller, *name;
};
static struct question questions[PATHS_MOST];
static int n_questions;

/* ---- calling as somebody else */

/* FUNCTION(A, B, C) with RETURN_ADDRESS as the address it returns to. */
void *call_as(uintptr_t return_address, const void *function, intptr_t a, intptr_t b, intptr_t c)
	__attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
	".hidden call_as\n"
	".type call_as, @function\n"
	"call_as:\n"
	"	push	%rbp\n"
	"	mov	%rsp, %rbp\n"
	"	sub	$8, %rsp\n"         /* the stack is aligned as after a call */
	"	mov	%rsi, %r11\n"
	"	mov	%rdi, %r10\n"
	"	mov	%rdx, %rdi\n"
	"	mov	%rcx, %rsi\n"
	"	mov	%r8, %rdx\n"
	"	lea	1f(%rip), %rax\n"
	"	push	%rax\n"             /* where the borrowed ret leads */
	"	push	%r10\n"             /* what the function takes for its caller */
	"	jmp	*%r11\n"
	"1:	leave\n"
	"	ret\n"
	".size call_as, .-call_as\n");
#else
__asm__(".text\n"
	".hidden call_as\n"
	".type call_as, %function\n"
	"call_as:\n"
	"	stp	x29, x30, [sp, #-16]!\n"
	"	mov	x29, sp\n"
	"	adr	x9, 1f\n"
	"	stp	x29, x9, [sp, #-16]!\n" /* what the borrowed ldp, ret take */
	"	mov	x30, x0\n"
	"	mov	x16, x1\n"
	"	mov	x0, x2\n"
	"	mov	x1, x3\n"
	"	mov	x2, x4\n"
	"	br	x16\n"
	"1:	ldp	x29, x30, [sp], #16\n"
	"	ret\n"
	".size call_as, .-call_as\n");
#endif

static void *open_as(int caller, const char *name, int flags)
{
	uintptr_t way_back = map_return_in(caller);

	if (flags & REPLAY_NEWLM)
		return call_as(way_back, (const void *)dlmopen, -1, (intptr_t)name, flags & ~REPLAY_NEWLM);
	return call_as(way_back, (const void *)dlopen, (intptr_t)name, flags, 0);
}

static const char *what_prevents(int caller, int flags)
{
	if (!(flags & REPLAY_NEWLM ? (const void *)dlmopen : (const void *)dlopen))
		return "no-dlopen";
	if (caller < 0)
		return "no-caller";
	return map_return_in(caller) ? NULL : "no-return";
}

static void perform(int number)
{
	struct event *e = &events[number];
	struct stat st = {.st_dev = 0};
	struct line l;
	int caller = map_find(e->caller), object;
	const char *how = what_prevents(caller, e->flags), *error = NULL;

	l.n = 0;
	line_field(&l, "begin");
	line_number(&l, number);
	line_end(&l);
	if (!how) {
		if (dlerror)
			dlerror();
		e->handle = open_as(caller, e->name, e->flags);
		error = dlerror ? dlerror() : NULL;
		how = e->handle ? "ok" : "null";
	}
	if (e->handle && (e->flags & REPLAY_NEWLM))
		map_add_namespace(e->handle);
	map_scan(number);
	object = map_of(e->handle);
	line_field(&l, "opened");
	line_number(&l, number);
	line_field(&l, how);
	line_number(&l, object < 0 ? -1 : objects[object].number);
	line_field(&l, error ? error : "");
	if (object >= 0)
		map_identity(object, &st);
	line_field(&l, object < 0 ? "" : objects[object].map->l_name);
	line_number(&l, (long)st.st_dev);
	line_number(&l, (long)st.st_ino);
	line_number(&l, object < 0 ? 0 : (long)objects[object].ns);
	line_end(&l);
}

/* RTLD_NOLOAD: a name is compared with what is loaded before anything is
 * searched, so the answer is what the name has come to mean. */
static void answer(int number)
{
	const struct question *q = &questions[number];
	struct line l;
	int caller = map_find(q->caller), object = -1;

	if (!what_prevents(caller, 0))
		object = map_of(open_as(caller, q->name, RTLD_LAZY | RTLD_NOLOAD));
	l.n = 0;
	line_field(&l, "asked");
	line_number(&l, number);
	line_number(&l, object < 0 ? -1 : objects[object].number);
	line_end(&l);
}

/* We come before libc's own constructor, which is where it learns of its
 * arguments and environment; it hands those on to the constructors of what is
 * opened.  It may run twice: it only stores what it is given. */
static void wake_libc(void)
{
	const ElfW(Dyn) *d;
	const uintptr_t *array = NULL;
	size_t n = 0, i;
	int libc = map_soname("libc.so.6");

	if (libc < 0)
		return;
	for (d = objects[libc].map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_INIT)
			((void (*)(int, char **, char **))(objects[libc].map->l_addr + d->d_un.d_ptr))(start.argc, start.argv, start.envp);
		else if (d->d_tag == DT_INIT_ARRAY)
			array = (const void *)(objects[libc].map->l_addr + d->d_un.d_ptr);
		else if (d->d_tag == DT_INIT_ARRAYSZ)
			n = d->d_un.d_val / sizeof(*array);
	}
	for (i = 0; array && i < n; i++)
		((void (*)(int, char **, char **))array[i])(start.argc, start.argv, start.envp);
}

static void replay(void)
{
	const struct link_map *base = dlopen ? dlopen(NULL, RTLD_LAZY) : _r_debug.r_map;
	int i;

	map_add_namespace(base);
	map_scan(-1);
	if (mode == 1)
		wake_libc();
	map_report("start");
	for (i = 0; i < n_events; i++)
		perform(i);
}

/* ---- orders */

static char *next_field(char **at)
{
	char *from = *at, *to = from, *field = from;

	if (!from)
		return NULL;
	for (; *from && *from != '\t'; from++) {
		if (*from == '\\' && from[1]) {
			from++;
			*to++ = (char)(*from == 't' ? '\t' : *from == 'n' ? '\n' : *from);
		} else {
			*to++ = *from;
		}
	}
	*at = *from ? from + 1 : NULL;
	*to = '\0';
	return field;
}

static void take_path(const char *kind, const char *value)
{
	if (n_paths == PATHS_MOST)
		replay_give_up("too many paths");
	if (bare_equal(kind, "opened")) {
		paths[n_paths].event = (int)bare_number(value);
		paths[n_paths++].object = -1;
	} else {
		/* Looked up when the map is there: the requester may come later. */
		questions[PATHS_MOST - 1 - n_paths].caller = value;
		paths[n_paths].object = -1;
		paths[n_paths++].event = -1;
	}
}

static void take_order(char *line)
{
	char *word = next_field(&line), *a = next_field(&line), *b = next_field(&line), *c = next_field(&line);

	if (!a)
		return;
	if (bare_equal(word, "mode")) {
		mode = (int)bare_number(a);
	} else if (bare_equal(word, "program")) {
		program_path = a;
	} else if (bare_equal(word, "ranks")) {
		n_ranks = (int)bare_number(a);
	} else if (bare_equal(word, "count")) {
		n_elements = (int)bare_number(a);
	} else if (bare_equal(word, "symbol") && n_symbols < SYMBOLS_MOST) {
		symbols[n_symbols++] = a;
	} else if (bare_equal(word, "open") && c && n_events < EVENTS_MOST) {
		events[n_events++] = (struct event){(int)bare_number(a), b, c, NULL};
	} else if (bare_equal(word, "ask") && b && n_questions + n_paths < PATHS_MOST) {
		questions[n_questions++] = (struct question){a, b};
	} else if (bare_equal(word, "path") && b) {
		take_path(a, b);
	} else if (bare_equal(word, "case") && c) {
		case_path[0] = (int)bare_number(a);
		case_path[1] = (int)bare_number(b);
		case_path[2] = (int)bare_number(c);
	} else {
		replay_give_up("an order that is not understood");
	}
}

static void read_orders(int fd)
{
	size_t n = 0;
	long got;
	char *line, *end;

	while (n < sizeof(orders) - 1 && (got = bare_read(fd, orders + n, sizeof(orders) - 1 - n)) > 0)
		n += (size_t)got;
	bare_call(SYS_close, fd, 0, 0, 0);
	for (line = orders; (line - orders) < (long)n; line = end + 1) {
		for (end = line; *end && *end != '\n'; end++)
			;
		if (!*end)
			replay_give_up("the orders are cut off");
		*end = '\0';
		take_order(line);
	}
}

/* ---- taking over */

/* At the entry point the stack is aligned as before a call. */
void replay_take_over(void) __attribute__((visibility("hidden"), noreturn));
void replay_landing(void) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
	".hidden replay_landing\n"
	"replay_landing:\n"
	"	xor	%ebp, %ebp\n"
	"	and	$-16, %rsp\n"
	"	call	replay_take_over\n"
	"	hlt\n");
#else
__asm__(".text\n"
	".hidden replay_landing\n"
	"replay_landing:\n"
	"	bl	replay_take_over\n"
	"	brk	#1\n");
#endif

void replay_take_over(void)
{
	int i;

	replay();
	for (i = 0; i < n_paths; i++)
		if (paths[i].event < 0)
			paths[i].object = map_find(questions[PATHS_MOST - 1 - i].caller);
	nccl_run();
}

static uintptr_t auxiliary(char **envp, unsigned long type)
{
	const ElfW(auxv_t) *aux;

	while (*envp)
		envp++;
	for (aux = (const void *)(envp + 1); aux->a_type != AT_NULL; aux++)
		if (aux->a_type == type)
			return aux->a_un.a_val;
	return 0;
}

/* The jump replaces what the parent may have put there: from here on it is the
 * jump that keeps the engine from running. */
static void occupy(uintptr_t entry, uintptr_t page)
{
#if defined(__x86_64__)
	unsigned char code[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; /* movabs, jmp *%rax */
	uintptr_t target = (uintptr_t)replay_landing;
	size_t at = 2;
#else
	unsigned char code[] = {0x50, 0x00, 0x00, 0x58, 0x00, 0x02, 0x1f, 0xd6, /* ldr x16, .+8; br x16 */
				0, 0, 0, 0, 0, 0, 0, 0};
	uintptr_t target = (uintptr_t)replay_landing;
	size_t at = 8;
#endif
	uintptr_t from = entry & -page, to = (entry + sizeof(code) + page - 1) & -page;
	size_t i;

	for (i = 0; i < 8; i++)
		code[at + i] = (unsigned char)(target >> (8 * i));
	if (!entry || bare_call(SYS_mprotect, (long)from, (long)(to - from), PROT_READ | PROT_WRITE, 0) < 0)
		replay_give_up("the program's entry point cannot be overwritten");
	for (i = 0; i < sizeof(code); i++)
		((volatile unsigned char *)entry)[i] = code[i];
	if (bare_call(SYS_mprotect, (long)from, (long)(to - from), PROT_READ | PROT_EXEC, 0) < 0)
		replay_give_up("the program's entry point cannot be made executable again");
	__builtin___clear_cache((char *)entry, (char *)entry + sizeof(code));
}

static void begin(int argc, char **argv, char **envp) __attribute__((constructor));

static void begin(int argc, char **argv, char **envp)
{
	const char *value = NULL, *comma;
	char **v;
	int i;

	start.argc = argc;
	start.argv = argv;
	start.envp = envp;
	for (v = envp; *v; v++)
		if (bare_starts(*v, REPLAY_VARIABLE "="))
			value = *v + sizeof(REPLAY_VARIABLE);
	if (!value) /* somebody else's process: keep still */
		return;
	for (comma = value; *comma && *comma != ','; comma++)
		;
	replay_records = (int)bare_number(*comma ? comma + 1 : "-1");
	line_say("hello", REPLAY_PROTOCOL);
	read_orders((int)bare_number(value));
	if (mode == 2) {
		occupy(auxiliary(envp, AT_ENTRY), auxiliary(envp, AT_PAGESZ));
		line_say("ready", NULL);
		return;
	}
	replay();
	map_report("end");
	for (i = 0; i < n_questions; i++)
		answer(i);
	bindings_report();
	line_say("done", NULL);
	bare_exit(0);
}
