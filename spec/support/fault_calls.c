/*
 * fault_calls.c - lets the N-th malloc, open, read, write, fsync, rename or close that the core makes fail: for specs, in
 * their own process (spec/support/fault_calls.lua installs it) or in a worker's (LD_PRELOAD).
 *
 * It replaces entries of the global offset table of the object that holds lc_malloc, so that only calls of the core itself
 * are seen: librdkafka's, LuaJIT's and libc's go their way, and the address sanitizer's allocator stays in use.
 * What shall happen is in a block of memory that a file backs (LC_FAULT_CALLS=FILE), so that a spec can change it while a
 * worker runs.
 * Threads: any.   Used by: spec/fault/08, 09, 10
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* spec/support/fault_calls.lua has the same */
typedef struct fault_block {
        int32_t armed;
        int32_t calls;      /* bits of 1 << CALL_* */
        int64_t nth;        /* of the calls counted */
        int32_t persistent; /* and all after it */
        int32_t error;      /* errno, 0: a short read or write */
        int32_t checked;    /* malloc: 1 only calls beside lc_malloc and its kin, 2 only those, 0 both */
        int32_t unused;
        int64_t count, failed;
        char path[256];  /* files whose name has this in it; "": all */
        char thread[16]; /* threads whose name begins so; "": all */
        int64_t room;    /* write: bytes that still fit, -1: no limit; used with error ENOSPC and nth 0 */
} fault_block_t;

enum { CALL_MALLOC, CALL_OPEN, CALL_READ, CALL_WRITE, CALL_FSYNC, CALL_RENAME, CALL_CLOSE, CALL_FTRUNCATE };

static fault_block_t own = {.room = -1};
fault_block_t *fault_calls = &own;

/* ---- whose calls are counted -------------------------------------------------------------------------------------- */

static struct range {
        uintptr_t from, to;
} ends_process[8]; /* lc_malloc and its kin */
static int nends;

static int unchecked(uintptr_t caller)
{
        for (int i = 0; i < nends; i++)
                if (caller >= ends_process[i].from && caller <= ends_process[i].to)
                        return 1;
        return 0;
}

static int on_thread(void)
{
        char name[16] = "";

        if (!fault_calls->thread[0])
                return 1;
        prctl(PR_GET_NAME, name);
        return !strncmp(name, fault_calls->thread, strlen(fault_calls->thread));
}

static int on_path(const char *path)
{
        return !fault_calls->path[0] || (path && strstr(path, fault_calls->path));
}

static int on_fd(int fd)
{
        char link[64], path[512];
        ssize_t n;

        if (!fault_calls->path[0])
                return 1;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return 0;
        path[n] = '\0';
        return on_path(path);
}

/* One more call of this kind: does it fail? */
static int fails(int call)
{
        int64_t n;

        if (!fault_calls->nth || !(fault_calls->calls & 1 << call) || !on_thread())
                return 0;
        n = __atomic_add_fetch(&fault_calls->count, 1, __ATOMIC_SEQ_CST);
        if (n != fault_calls->nth && !(fault_calls->persistent && n > fault_calls->nth))
                return 0;
        __atomic_add_fetch(&fault_calls->failed, 1, __ATOMIC_SEQ_CST);
        return 1;
}

#define ARMED __builtin_expect(__atomic_load_n(&fault_calls->armed, __ATOMIC_RELAXED), 0)
#define CALLER ((uintptr_t)__builtin_return_address(0))

static int no_memory(uintptr_t caller)
{
        int want = fault_calls->checked;

        if (want && (want == 2) != unchecked(caller))
                return 0;
        return fails(CALL_MALLOC);
}

/* ---- the calls ---------------------------------------------------------------------------------------------------- */

static void *faulty_malloc(size_t n)
{
        if (ARMED && no_memory(CALLER)) {
                errno = ENOMEM;
                return NULL;
        }
        return malloc(n);
}

static void *faulty_calloc(size_t count, size_t n)
{
        if (ARMED && no_memory(CALLER)) {
                errno = ENOMEM;
                return NULL;
        }
        return calloc(count, n);
}

static void *faulty_realloc(void *p, size_t n)
{
        if (ARMED && n && no_memory(CALLER)) {
                errno = ENOMEM;
                return NULL;
        }
        return realloc(p, n);
}

static int faulty_open(const char *path, int flags, ...)
{
        va_list ap;
        int mode;

        va_start(ap, flags);
        mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, int) : 0;
        va_end(ap);
        if (ARMED && on_path(path) && fails(CALL_OPEN)) {
                errno = fault_calls->error;
                return -1;
        }
        return open(path, flags, mode);
}

static ssize_t faulty_read(int fd, void *p, size_t n)
{
        if (ARMED && on_fd(fd) && fails(CALL_READ)) {
                if (fault_calls->error) {
                        errno = fault_calls->error;
                        return -1;
                }
                n = n > 7 ? n / 7 : n;
        }
        return read(fd, p, n);
}

/* A full disk takes what fits, then nothing. */
static ssize_t full_disk(int fd, const void *p, size_t n)
{
        int64_t room = __atomic_load_n(&fault_calls->room, __ATOMIC_SEQ_CST);
        ssize_t rc;

        if (!room && n) {
                __atomic_add_fetch(&fault_calls->failed, 1, __ATOMIC_SEQ_CST);
                errno = ENOSPC;
                return -1;
        }
        rc = write(fd, p, (int64_t)n > room ? (size_t)room : n);
        if (rc > 0)
                __atomic_sub_fetch(&fault_calls->room, rc, __ATOMIC_SEQ_CST);
        return rc;
}

static ssize_t faulty_write(int fd, const void *p, size_t n)
{
        if (ARMED && on_fd(fd)) {
                if (fault_calls->room >= 0 && on_thread())
                        return full_disk(fd, p, n);
                if (fails(CALL_WRITE)) {
                        if (fault_calls->error) {
                                errno = fault_calls->error;
                                return -1;
                        }
                        n = n > 1 ? n / 2 : n;
                }
        }
        return write(fd, p, n);
}

static int faulty_fallocate(int fd, int mode, off_t at, off_t n)
{
        if (ARMED && on_fd(fd) && fault_calls->room >= 0 && at + n > fault_calls->room) {
                __atomic_add_fetch(&fault_calls->failed, 1, __ATOMIC_SEQ_CST);
                errno = ENOSPC;
                return -1;
        }
        return fallocate(fd, mode, at, n);
}

static int faulty_fsync(int fd)
{
        if (ARMED && on_fd(fd) && fails(CALL_FSYNC)) {
                errno = fault_calls->error;
                return -1;
        }
        return fsync(fd);
}

static int faulty_rename(const char *from, const char *to)
{
        if (ARMED && on_path(from) && fails(CALL_RENAME)) {
                errno = fault_calls->error;
                return -1;
        }
        return rename(from, to);
}

/* It is closed all the same, as on Linux. */
static int faulty_close(int fd)
{
        int bad = ARMED && on_fd(fd) && fails(CALL_CLOSE), rc = close(fd);

        if (bad) {
                errno = fault_calls->error;
                return -1;
        }
        return rc;
}

static int faulty_ftruncate(int fd, off_t size)
{
        if (ARMED && on_fd(fd) && fails(CALL_FTRUNCATE)) {
                errno = fault_calls->error;
                return -1;
        }
        return ftruncate(fd, size);
}

/* ---- putting them in ---------------------------------------------------------------------------------------------- */

static void *replacement(const char *name)
{
        static const struct {
                const char *name;
                void *function;
        } all[] = {
                {"malloc", faulty_malloc}, {"calloc", faulty_calloc},       {"realloc", faulty_realloc},
                {"open", faulty_open},     {"open64", faulty_open},         {"read", faulty_read},
                {"write", faulty_write},   {"fsync", faulty_fsync},         {"fdatasync", faulty_fsync},
                {"rename", faulty_rename}, {"close", faulty_close},         {"ftruncate", faulty_ftruncate},
                {"ftruncate64", faulty_ftruncate},
                {"fallocate", faulty_fallocate}, {"fallocate64", faulty_fallocate},
        };

        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (!strcmp(name, all[i].name))
                        return all[i].function;
        return NULL;
}

static int patch(uintptr_t base, const ElfW(Rela) *rel, size_t n, const ElfW(Sym) *symbols, const char *strings)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        int done = 0;

        for (size_t i = 0; i < n; i++) {
                unsigned long type = ELF64_R_TYPE(rel[i].r_info), symbol = ELF64_R_SYM(rel[i].r_info);
                void **slot = (void **)(base + rel[i].r_offset), *function;
#if defined(__x86_64__)
                if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
                        continue;
#elif defined(__aarch64__)
                if (type != R_AARCH64_JUMP_SLOT && type != R_AARCH64_GLOB_DAT)
                        continue;
#else
#error "fault_calls.c: which relocations are those of functions on this machine?"
#endif
                function = replacement(strings + symbols[symbol].st_name);
                if (!function)
                        continue;
                mprotect((void *)((uintptr_t)slot & ~(page - 1)), page, PROT_READ | PROT_WRITE);
                *slot = function;
                done++;
        }
        return done;
}

/* How many calls are seen now; 0: there is no core here. */
int fault_calls_install(void)
{
        static const char *const names[] = {"lc_malloc",  "lc_calloc",  "lc_realloc", "lc_strdup",
                                            "lc_strndup", "lc_strtrim", "lc_asprintf"};
        const ElfW(Rela) *rela = NULL, *jumps = NULL;
        const ElfW(Sym) *symbols = NULL;
        const char *strings = NULL;
        size_t nrela = 0, njumps = 0;
        struct link_map *map;
        Dl_info info;
        void *core = dlsym(RTLD_DEFAULT, "lc_malloc");

        if (!core || !dladdr1(core, &info, (void **)&map, RTLD_DL_LINKMAP))
                return 0;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                ElfW(Sym) *s;
                void *f = dlsym(RTLD_DEFAULT, names[i]);
                if (f && dladdr1(f, &info, (void **)&s, RTLD_DL_SYMENT) && s)
                        ends_process[nends++] =
                                (struct range){(uintptr_t)f, (uintptr_t)f + s->st_size};
        }
        for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
                switch (d->d_tag) {
                case DT_RELA:
                        rela = (const void *)d->d_un.d_ptr;
                        break;
                case DT_RELASZ:
                        nrela = d->d_un.d_val / sizeof(*rela);
                        break;
                case DT_JMPREL:
                        jumps = (const void *)d->d_un.d_ptr;
                        break;
                case DT_PLTRELSZ:
                        njumps = d->d_un.d_val / sizeof(*jumps);
                        break;
                case DT_SYMTAB:
                        symbols = (const void *)d->d_un.d_ptr;
                        break;
                case DT_STRTAB:
                        strings = (const void *)d->d_un.d_ptr;
                        break;
                default:
                        break;
                }
        }
        if (!symbols || !strings)
                return 0;
        return patch(map->l_addr, rela, nrela, symbols, strings) +
               patch(map->l_addr, jumps, njumps, symbols, strings);
}

/* Under the address sanitizer: is there memory that nobody can reach any more? It is reported on stderr. */
int fault_calls_leaks(void)
{
        int (*check)(void);

        *(void **)&check = dlsym(RTLD_DEFAULT, "__lsan_do_recoverable_leak_check");
        return check ? check() : 0;
}

__attribute__((constructor)) static void from_environment(void)
{
        const char *file = getenv("LC_FAULT_CALLS");
        void *p;
        int fd;

        if (!file)
                return;
        fd = open(file, O_RDWR | O_CLOEXEC);
        p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (fd >= 0)
                close(fd);
        if (p == MAP_FAILED || !fault_calls_install()) {
                /* e.g. the shell that starts the worker */
                return;
        }
        fault_calls = p;
}
