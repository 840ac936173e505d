/* code.c - see code.h. Any thread. Spec: spec/unit/plugins_spec.lua. */
#include "script/code.h"
#include "script/checked.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/hash.h"
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_FILE = 16 * 1024 * 1024 };

typedef struct bytes { /* shared by the tables of sets that follow each other */
        int refs;      /* atomic */
        lc_buf_t code;
} bytes_t;

typedef struct entry {
        char *path;
        bytes_t *bytes;
        UT_hash_handle hh;
} entry_t;

struct lc_code {
        pthread_mutex_t lock;
        entry_t *table;
};

lc_code_t *lc_code_new(void)
{
        lc_code_t *code = lc_calloc(1, sizeof(*code));

        pthread_mutex_init(&code->lock, NULL);
        return code;
}

static void drop(lc_code_t *code, entry_t *e)
{
        HASH_DEL(code->table, e);
        if (!__atomic_sub_fetch(&e->bytes->refs, 1, __ATOMIC_ACQ_REL)) {
                lc_buf_free(&e->bytes->code);
                free(e->bytes);
        }
        free(e->path);
        free(e);
}

/* bytes: a reference, taken. */
static entry_t *add(lc_code_t *code, const char *path, bytes_t *bytes)
{
        entry_t *e = lc_calloc(1, sizeof(*e));

        e->path = lc_strdup(path);
        e->bytes = bytes;
        HASH_ADD_KEYPTR(hh, code->table, e->path, strlen(e->path), e);
        return e;
}

static bool is_of(const char *path, const char *file, const char *below)
{
        size_t n = below ? strlen(below) : 0;

        return !strcmp(path, file) || (below && !strncmp(path, below, n) && path[n] == '/');
}

/* Entries of `from` into the new or locked table `to`, where wanted. */
static void share(lc_code_t *to, lc_code_t *from, const char *file, const char *below, bool wanted)
{
        entry_t *e, *next;

        pthread_mutex_lock(&from->lock);
        HASH_ITER(hh, from->table, e, next)
        {
                if (is_of(e->path, file, below) != wanted)
                        continue;
                __atomic_add_fetch(&e->bytes->refs, 1, __ATOMIC_RELAXED);
                add(to, e->path, e->bytes);
        }
        pthread_mutex_unlock(&from->lock);
}

lc_code_t *lc_code_copy(lc_code_t *code, const char *without, const char *below)
{
        lc_code_t *out = lc_code_new();

        share(out, code, without, below, false);
        return out;
}

void lc_code_drop(lc_code_t *code, const char *file, const char *below)
{
        entry_t *e, *next;

        HASH_ITER(hh, code->table, e, next)
        {
                if (is_of(e->path, file, below))
                        drop(code, e);
        }
}

void lc_code_take(lc_code_t *code, lc_code_t *from, const char *file, const char *below)
{
        lc_code_drop(code, file, below);
        share(code, from, file, below, true);
}

void lc_code_free(lc_code_t *code)
{
        entry_t *e, *next;

        if (!code)
                return;
        HASH_ITER(hh, code->table, e, next)
        drop(code, e);
        pthread_mutex_destroy(&code->lock);
        free(code);
}

static entry_t *find(const lc_code_t *code, const char *path)
{
        entry_t *e;

        HASH_FIND_STR(code->table, path, e);
        return e;
}

bool lc_code_exists(lc_code_t *code, const char *path)
{
        struct stat st;
        bool known;

        pthread_mutex_lock(&code->lock);
        known = find(code, path) != NULL;
        pthread_mutex_unlock(&code->lock);
        return known || (stat(path, &st) == 0 && S_ISREG(st.st_mode));
}

static int read_file(const char *path, lc_buf_t *out, lc_err_t *err)
{
        struct stat st;
        ssize_t n;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = -1;

        if (fd < 0 || fstat(fd, &st) < 0) {
                lc_err_set(err, LC_FATAL, errno, "cannot read %s: %s", path, strerror(errno));
                goto done;
        }
        if (!S_ISREG(st.st_mode) || st.st_size > LARGEST_FILE) {
                lc_err_set(err, LC_FATAL, 0, "%s is not a Lua file%s", path,
                           S_ISREG(st.st_mode) ? ": larger than 16 MiB" : "");
                goto done;
        }
        do {
                if (lc_buf_reserve(out, 64 * 1024) < 0) {
                        lc_err_set(err, LC_FATAL, ENOMEM, "out of memory reading %s", path);
                        goto done;
                }
                n = read(fd, out->p + out->len, 64 * 1024);
                if (n > 0)
                        out->len += (size_t)n;
        } while (n > 0 || (n < 0 && errno == EINTR));
        if (n < 0) {
                lc_err_set(err, LC_FATAL, errno, "cannot read %s: %s", path, strerror(errno));
                goto done;
        }
        rc = 0;
done:
        if (fd >= 0)
                close(fd);
        return rc;
}

static int write_code(lua_State *L, const void *p, size_t n, void *buf)
{
        (void)L;
        lc_buf_add(buf, p, n);
        return 0;
}

int lc_code_load(lua_State *L, const char *text, size_t n, const char *name, bool checked)
{
        int rc = luaL_loadbufferx(L, text, n, name, "t");

        for (int way = 0; rc == 0 && checked; way++) { /* it compiles: with the tests it must, too */
                lc_buf_t with = LC_BUF_INIT;
                int try;

                if (way == LC_CHECKED_WAYS) {
                        lua_pop(L, 1);
                        lua_pushfstring(
                                L,
                                "%s: a function at the limits of Lua (upvalues, constants, size) cannot be "
                                "run here",
                                *name == '@' ? name + 1 : "the text");
                        return LUA_ERRSYNTAX;
                }
                lc_checked_text(text, n, way, &with);
                if (lc_buf_ok(&with))
                        try = luaL_loadbufferx(L, with.p ? with.p : "", with.len, name, "t");
                else
                        try = (lua_pushnil(L), LUA_ERRMEM);
                lc_buf_free(&with);
                if (try == 0) {
                        lua_remove(L, -2);
                        return 0;
                }
                lua_pop(L, 1);
        }
        return rc;
}

/* Source on top of nothing -> function on the stack, bytecode in *out. Loading runs protected inside. */
static int compile(lua_State *L, const char *path, bool checked, lc_buf_t *out, lc_err_t *err)
{
        lc_buf_t text = LC_BUF_INIT, name = LC_BUF_INIT;
        int rc = -1;

        if (read_file(path, &text, err) < 0)
                goto done;
        lc_buf_printf(&name, "@%s", path);
        if (lc_code_load(L, text.p ? text.p : "", text.len, name.p, checked) != 0) {
                lc_err_set(err, LC_FATAL, 0, "%s",
                           lua_tostring(L, -1) ? lua_tostring(L, -1) : "cannot be loaded");
                lua_pop(L, 1);
                goto done;
        }
        if (lua_dump(L, write_code, out) != 0 || !lc_buf_ok(out)) {
                lua_pop(L, 1);
                lc_err_set(err, LC_FATAL, ENOMEM, "out of memory compiling %s", path);
                goto done;
        }
        rc = 0;
done:
        lc_buf_free(&text);
        lc_buf_free(&name);
        return rc;
}

int lc_code_push(lc_code_t *code, lua_State *L, const char *path, bool checked, lc_err_t *err)
{
        lc_buf_t out = LC_BUF_INIT;
        entry_t *e;
        bytes_t *bytes;
        int rc = 0;

        pthread_mutex_lock(&code->lock);
        e = find(code, path);
        if (!e) {
                rc = compile(L, path, checked, &out, err);
                if (rc == 0) {
                        bytes = lc_calloc(1, sizeof(*bytes));
                        bytes->refs = 1;
                        bytes->code = out;
                        add(code, path, bytes);
                } else {
                        lc_buf_free(&out);
                }
                pthread_mutex_unlock(&code->lock);
                return rc;
        }
        pthread_mutex_unlock(&code->lock); /* entries never change and go with the set */
        if (luaL_loadbufferx(L, e->bytes->code.p, e->bytes->code.len, path, "b") != 0) {
                lc_err_set(err, LC_FATAL, 0, "%s",
                           lua_tostring(L, -1) ? lua_tostring(L, -1) : "cannot be loaded");
                lua_pop(L, 1);
                return -1;
        }
        return 0;
}
