/* driver.c: runs inside the program under test and reports what the loader did.

   Every program written by elfwriter.py NEEDs this library by absolute path
   and starts by calling driver_main.  It performs the events it is told, each
   as the object that the event names (through that object's trampoline, so
   that the loader sees a return address inside it), and writes one JSON
   document a line.

   Orders come on file descriptor 197, reports leave on 198: nothing of the
   driver is visible in the file system that the loader searches.  The
   descriptors are far from those that the loader opens.

   Bindings.  After the last event the relocations of every object that has a
   trampoline are read from its dynamic section, and each slot is reported with
   the object that its address lies in.  A slot of the PLT that still leads to
   its own stub is called; it is bound with the scopes as they are then.  These
   calls happen in the order of the link map and, within an object, of its
   DT_JMPREL, in a child process: a call of what does not exist ends it, and
   another goes on with the next slot.

   Hazards.  Nothing here may load a further library (no locale, no NSS, no
   printf of names).  All bytes of a name above 0x7f are written as \u00XX, a
   line is therefore Latin-1 in disguise.  Results are written as they become
   known: an event may kill the process.  */

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { ORDERS = 197, REPORT = 198, TRAMPOLINE = 64 + 12 * 56 + 8 };

static const char marker[] = "nwtramp1";

typedef void *call_fn (const void *, intptr_t, intptr_t, const void *);

static char line[1 << 16];
static size_t used;

static void
put (const char *text)
{
  size_t length = strlen (text);
  if (length > sizeof line - used)
    length = sizeof line - used;
  memcpy (line + used, text, length);
  used += length;
}

static void
put_string (const char *text)
{
  static const char digits[] = "0123456789abcdef";
  if (text == NULL)
    {
      put ("null");
      return;
    }
  put ("\"");
  for (; *text; text++)
    {
      unsigned char c = *text;
      char one[8] = { (char) c, 0 };
      if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
        {
          memcpy (one, "\\u00", 4);
          one[4] = digits[c >> 4];
          one[5] = digits[c & 15];
          one[6] = 0;
        }
      put (one);
    }
  put ("\"");
}

static void
put_number (unsigned long number)
{
  char text[24];
  char *at = text + sizeof text - 1;
  *at = 0;
  do
    *--at = '0' + number % 10;
  while (number /= 10);
  put (at);
}

static void
flush (void)
{
  put ("\n");
  for (size_t done = 0; done < used;)
    {
      ssize_t n = write (REPORT, line + done, used - done);
      if (n <= 0)
        _exit (99);
      done += n;
    }
  used = 0;
}

/* The link map list that holds MAP, as [[name, dev, ino], ...].  */
static void
put_maps (const struct link_map *map, const char *program)
{
  while (map != NULL && map->l_prev != NULL)
    map = map->l_prev;
  put ("[");
  for (int first = 1; map != NULL; map = map->l_next, first = 0)
    {
      struct stat st = { 0 };
      const char *name = map->l_name;
      if (stat (*name ? name : program, &st) != 0)
        memset (&st, 0, sizeof st);
      put (first ? "[" : ",[");
      put_string (name);
      put (",");
      put_number (st.st_dev);
      put (",");
      put_number (st.st_ino);
      put ("]");
    }
  put ("]");
}

/* Where MAP has its trampoline, or NULL.  */
static call_fn *
trampoline_of (const struct link_map *map, const struct link_map *base, uintptr_t program)
{
  /* A program that is not position independent has l_addr zero.  */
  uintptr_t start = map == base ? program : map->l_addr;
  /* libc and ld.so are mapped from their first page as well, so this read
     is safe; they just have no marker.  */
  if (memcmp ((const char *) start + TRAMPOLINE - 8, marker, 8) != 0)
    return NULL;
  return (call_fn *) (start + TRAMPOLINE);
}

/* The object of the base namespace that NAME means: its realname, "" for the
   program, or "#N": the Nth, going round, of those that have a trampoline.  */
static const struct link_map *
find_caller (const struct link_map *base, const char *name, uintptr_t program)
{
  if (*name != '#')
    {
      const struct link_map *map = base;
      while (map != NULL && strcmp (map->l_name, name) != 0)
        map = map->l_next;
      return map != NULL && trampoline_of (map, base, program) ? map : NULL;
    }
  unsigned number = 0;
  while (*++name)
    number = number * 10 + (*name - '0');
  const struct link_map *map = base;
  for (;;)
    {
      if (trampoline_of (map, base, program) && number-- == 0)
        return map;
      map = map->l_next ? map->l_next : base;
    }
}

static void
perform (char *order, const struct link_map *base, uintptr_t program, const char *path)
{
  /* FLAGS \x1f CALLER \x1f NAME; a leading '!' in FLAGS: dlmopen into a new
     namespace; '0': the name is a null pointer.  */
  char *caller = strchr (order, '\x1f');
  *caller++ = 0;
  char *name = strchr (caller, '\x1f');
  *name++ = 0;
  int flags = 0, fresh = 0;
  for (const char *c = order; *c; c++)
    switch (*c)
      {
      case 'l': flags |= RTLD_LAZY; break;
      case 'n': flags |= RTLD_NOW; break;
      case 'g': flags |= RTLD_GLOBAL; break;
      case 'd': flags |= RTLD_DEEPBIND; break;
      case 'o': flags |= RTLD_NOLOAD; break;
      case 'k': flags |= RTLD_NODELETE; break;
      case '!': fresh = 1; break;
      case '0': name = NULL; break;
      }
  const struct link_map *map = find_caller (base, caller, program);
  if (map == NULL)
    {
      put ("{\"event\":\"no-caller\"}");
      flush ();
      return;
    }
  call_fn *call = trampoline_of (map, base, program);
  put ("{\"caller\":");
  put_string (map->l_name);
  put (",\"begin\":1}");
  flush ();
  dlerror ();
  struct link_map *handle
    = fresh ? call ((const void *) LM_ID_NEWLM, (intptr_t) name, flags,
                    (const void *) dlmopen)
            : call (name, flags, 0, (const void *) dlopen);
  const char *error = dlerror ();
  put (handle ? "{\"event\":\"ok\",\"object\":" : "{\"event\":\"null\",\"object\":");
  put_string (handle ? handle->l_name : NULL);
  put (",\"error\":");
  put_string (error);
  if (handle != NULL && fresh)
    {
      put (",\"namespace\":");
      put_maps (handle, path);
    }
  put ("}");
  flush ();
}

/* ---- bindings  */

enum { MAPS = 128, CALLS = 1024 };

static struct object
{
  const struct link_map *map;
  uintptr_t start, end;         /* of its image */
  int ours;                     /* written by elfwriter.py */
} objects[MAPS];
static int n_objects;

static struct call
{
  int object;
  const char *symbol;
  const uintptr_t *slot;
} calls[CALLS];
static int n_calls;

static void
list_objects (const struct link_map *base, uintptr_t program)
{
  const struct link_map *map = base;
  while (map->l_prev != NULL)
    map = map->l_prev;
  for (; map != NULL && n_objects < MAPS; map = map->l_next)
    {
      struct object *o = &objects[n_objects++];
      o->map = map;
      if (strncmp (map->l_name, "linux-", 6) == 0)
        continue;
      o->start = map == base ? program : map->l_addr;
      o->ours = trampoline_of (map, base, program) != NULL;
      const ElfW(Ehdr) *ehdr = (const void *) o->start;
      const ElfW(Phdr) *phdr = (const void *) (o->start + ehdr->e_phoff);
      for (int i = 0; i < ehdr->e_phnum; i++)
        if (phdr[i].p_type == PT_LOAD
            && map->l_addr + phdr[i].p_vaddr + phdr[i].p_memsz > o->end)
          o->end = map->l_addr + phdr[i].p_vaddr + phdr[i].p_memsz;
    }
}

/* The object that an address lies in, or -1.  */
static int
owner_of (uintptr_t address)
{
  for (int i = 0; i < n_objects; i++)
    if (address >= objects[i].start && address < objects[i].end)
      return i;
  return -1;
}

/* [object, symbol, class, provider, when]  */
static void
put_binding (int object, const char *symbol, const char *class, int to, const char *when)
{
  put ("{\"binding\":[");
  put_number (object);
  put (",");
  put_string (symbol);
  put (",\"");
  put (class);
  put ("\",");
  if (to < 0)
    put ("null");
  else
    put_number (to);
  put (",\"");
  put (when);
  put ("\"]}");
}

/* Whether the slot leads to the stub of the object itself.  */
static int
is_unbound (int object, uintptr_t address)
{
  const unsigned char *code = (const unsigned char *) address;
  return owner_of (address) == object && code[0] == 0x68 && code[5] == 0xe9; /* push, jmp */
}

static void
read_relocations (int object, const ElfW(Rela) *rela, size_t size, const ElfW(Sym) *symtab,
                  const char *strtab)
{
  for (const ElfW(Rela) *end = rela + size / sizeof *rela; rela < end; rela++)
    {
      if (ELF64_R_SYM (rela->r_info) == 0)
        continue;
      const char *symbol = strtab + symtab[ELF64_R_SYM (rela->r_info)].st_name;
      const uintptr_t *slot = (const void *) (objects[object].map->l_addr + rela->r_offset);
      unsigned type = ELF64_R_TYPE (rela->r_info);
      int jump = type == R_X86_64_JUMP_SLOT;
      if (jump && is_unbound (object, *slot))
        {
          if (n_calls < CALLS)
            calls[n_calls++] = (struct call) { object, symbol, slot };
          continue;
        }
      put_binding (object, symbol, jump ? "plt" : type == R_X86_64_COPY ? "copy" : "data",
                   owner_of (*slot), "load");
      flush ();
    }
}

static void
read_object (int object)
{
  const struct link_map *map = objects[object].map;
  uintptr_t value[DT_JMPREL + 1] = { 0 };
  for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
    if (d->d_tag > 0 && d->d_tag <= DT_JMPREL)
      {
        value[d->d_tag] = d->d_un.d_val;
        /* ld.so makes the addresses absolute in place, but not everywhere.  */
        if ((d->d_tag == DT_SYMTAB || d->d_tag == DT_STRTAB || d->d_tag == DT_RELA
             || d->d_tag == DT_JMPREL) && value[d->d_tag] < objects[object].start)
          value[d->d_tag] += map->l_addr;
      }
  const ElfW(Sym) *symtab = (const void *) value[DT_SYMTAB];
  const char *strtab = (const void *) value[DT_STRTAB];
  read_relocations (object, (const void *) value[DT_RELA], value[DT_RELASZ], symtab, strtab);
  read_relocations (object, (const void *) value[DT_JMPREL], value[DT_PLTRELSZ], symtab, strtab);
}

/* A jump to data or to nothing (a weak reference): return to the caller.  */
static void
return_from_nowhere (int signal, siginfo_t *info, void *context)
{
  greg_t *reg = ((ucontext_t *) context)->uc_mcontext.gregs;
  if ((greg_t) (intptr_t) info->si_addr != reg[REG_RIP])
    _exit (128 + signal);
  reg[REG_RIP] = *(const greg_t *) reg[REG_RSP];
  reg[REG_RSP] += 8;
}

static void
make_calls (volatile int *next)
{
  struct sigaction action = { .sa_sigaction = return_from_nowhere, .sa_flags = SA_SIGINFO };
  sigaction (SIGSEGV, &action, NULL);
  for (; *next < n_calls; ++*next)
    {
      const struct call *c = &calls[*next];
      ((void (*) (void)) *c->slot) ();
      put_binding (c->object, c->symbol, "plt", owner_of (*c->slot), "call");
      flush ();
    }
  _exit (0);
}

static void
report_bindings (const struct link_map *base, uintptr_t program)
{
  list_objects (base, program);
  put ("{\"ours\":[");
  for (int i = 0, some = 0; i < n_objects; i++)
    if (objects[i].ours)
      {
        put (some++ ? "," : "");
        put_number (i);
      }
  put ("]}");
  flush ();
  for (int i = 0; i < n_objects; i++)
    if (objects[i].ours)
      read_object (i);
  volatile int *next = mmap (NULL, sizeof *next, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  while (*next < n_calls)
    {
      int status;
      pid_t child = fork ();
      if (child == 0)
        make_calls (next);
      if (child < 0 || waitpid (child, &status, 0) != child)
        _exit (97);
      if (*next < n_calls)
        {
          const struct call *c = &calls[(*next)++];
          put_binding (c->object, c->symbol, "plt", -1, "call");
          flush ();
        }
    }
  put ("{\"end\":1}");
  flush ();
}

/* Called by the program's entry point; never returns.  */
void
driver_main (const intptr_t *stack, uintptr_t program)
{
  static char orders[1 << 16];
  const char *path = (const char *) stack[1];
  size_t length = 0;
  for (ssize_t n; length < sizeof orders - 1
       && (n = read (ORDERS, orders + length, sizeof orders - 1 - length)) > 0;)
    length += n;
  close (ORDERS);
  struct link_map *base = dlopen (NULL, RTLD_LAZY);
  put ("{\"start\":");
  put_maps (base, path);
  put ("}");
  flush ();
  for (char *order = orders, *end; (end = strchr (order, '\n')) != NULL; order = end + 1)
    {
      *end = 0;
      perform (order, base, program, path);
    }
  put ("{\"maps\":");
  put_maps (base, path);
  put ("}");
  flush ();
  report_bindings (base, program);
  _exit (0);
}
