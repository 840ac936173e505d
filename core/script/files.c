/*
 * files.c - read of a script's files, and what their lines are made of: LuaJIT's own stay in one C loop for as
 * long as the file goes on, or for ever at zero bytes. These look at the guard (guard.h) between two buffers and
 * while they wait for input. lua/connect/strings.lua puts them into the io library.
 *
 * Nothing is held while something may raise but Lua's own memory.
 * Threads:   the script's; stdin is everybody's, so a buffer is taken under the FILE's lock.
 * Tests:     spec/unit/files_spec.lua
 */
#include "script/state.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <lualib.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 100, NUMERAL = 200 };

static FILE *file_of(lua_State *L)
{
        FILE **f = luaL_checkudata(L, 1, LUA_FILEHANDLE);

        if (!*f)
                luaL_error(L, "attempt to use a closed file");
        return *f;
}

/* Will the next byte come from the descriptor? Where it cannot be known a wait for input is not ended. */
static bool is_drained(const FILE *f)
{
#ifdef __GLIBC__
        return f->_IO_read_ptr >= f->_IO_read_end;
#else
        (void)f;
        return false;
#endif
}

static void wait_for_input(lua_State *L, FILE *f)
{
        struct pollfd p = {.fd = fileno(f), .events = POLLIN};
        int rc;

        lc_guard_check(L);
        if (!is_drained(f) || p.fd < 0 || (fcntl(p.fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
                return;
        while ((rc = poll(&p, 1, WAIT_MS)) == 0 || (rc < 0 && errno == EINTR))
                lc_guard_check(L);
}

/* Bytes up to n, the end of the buffer, a newline with `line`, or the end of the file. *last: the last byte, EOF. */
static size_t take(FILE *f, char *out, size_t n, bool line, int *last)
{
        size_t i = 0;

        flockfile(f);
        do {
                *last = getc_unlocked(f);
                if (*last == EOF)
                        break;
                out[i++] = (char)*last;
        } while (i < n && !(line && *last == '\n') && !is_drained(f));
        funlockfile(f);
        return i;
}

/* Pushes a string: `most` bytes, with `line` those up to the end of the line, or what there is. chop: without the newline.
 * false: not a byte. */
static bool read_some(lua_State *L, FILE *f, double most, bool line, bool chop)
{
        luaL_Buffer b;
        bool some = false;
        int last = 0;

        luaL_buffinit(L, &b);
        while (most > 0 && last != EOF && !(line && last == '\n')) {
                char *at = luaL_prepbuffer(&b);
                size_t got;

                wait_for_input(L, f);
                got = take(f, at, most < LUAL_BUFFERSIZE ? (size_t)most : LUAL_BUFFERSIZE, line, &last);
                most -= (double)got;
                some = some || got;
                luaL_addsize(&b, got - (chop && last == '\n'));
        }
        luaL_pushresult(&b);
        return some;
}

static bool read_line(lua_State *L, FILE *f, bool chop)
{
        return read_some(L, f, HUGE_VAL, true, chop);
}

static int byte(lua_State *L, FILE *f)
{
        wait_for_input(L, f);
        return getc(f);
}

static bool test_end(lua_State *L, FILE *f)
{
        int c = byte(L, f);

        if (c != EOF)
                ungetc(c, f);
        lua_pushliteral(L, "");
        return c != EOF;
}

typedef struct numeral {
        lua_State *L;
        FILE *f;
        int c; /* the byte ahead */
        int n;
        char text[NUMERAL + 1];
} numeral_t;

static bool accept(numeral_t *m, const char *set)
{
        if (m->c <= 0 || !strchr(set, m->c) || m->n >= NUMERAL)
                return false;
        m->text[m->n++] = (char)m->c;
        m->c = byte(m->L, m->f);
        return true;
}

static void accept_all(numeral_t *m, const char *set)
{
        while (accept(m, set))
                ;
}

static bool read_number(lua_State *L, FILE *f)
{
        numeral_t m = {.L = L, .f = f};
        const char *digits = "0123456789";
        bool hex;
        char *end;
        double d;

        do
                m.c = byte(L, f);
        while (isspace(m.c));
        accept(&m, "+-");
        hex = accept(&m, "0") && accept(&m, "xX");
        if (hex)
                digits = "0123456789abcdefABCDEF";
        accept_all(&m, digits);
        if (accept(&m, "."))
                accept_all(&m, digits);
        if (m.n && accept(&m, hex ? "pP" : "eE")) {
                accept(&m, "+-");
                accept_all(&m, "0123456789");
        }
        if (m.c != EOF)
                ungetc(m.c, f);
        m.text[m.n] = '\0';
        d = strtod(m.text, &end);
        if (end == m.text || (hex && *end)) { /* as fscanf, which takes "1e" for 1 */
                lua_pushnil(L);
                return false;
        }
        lua_pushnumber(L, d);
        return true;
}

static bool read_one(lua_State *L, FILE *f, int arg)
{
        const char *format;

        if (lua_type(L, arg) == LUA_TNUMBER) {
                double n = lua_tonumber(L, arg);
                return n > 0 ? read_some(L, f, n, false, false) : test_end(L, f);
        }
        if (lua_type(L, arg) != LUA_TSTRING)
                luaL_argerror(L, arg, "invalid option");
        format = lua_tostring(L, arg);
        format += *format == '*';
        switch (*format) {
        case 'l':
        case 'L':
                return read_line(L, f, *format == 'l');
        case 'a':
                read_some(L, f, HUGE_VAL, false, false);
                return true;
        case 'n':
                return read_number(L, f);
        default:
                luaL_argerror(L, arg, "invalid format");
                return false;
        }
}

/* read(file, format..): as file:read() of Lua 5.1, with "*L", and the star may be missing */
static int file_read(lua_State *L)
{
        FILE *f = file_of(L);
        int n = lua_gettop(L);
        bool ok = true;

        lc_guard_stack(L); /* the buffer is 8 KiB of it */
        luaL_checkstack(L, n + LUA_MINSTACK, "too many arguments");
        clearerr(f);
        if (n == 1)
                ok = read_line(L, f, true);
        for (int i = 2; i <= n && ok; i++)
                ok = read_one(L, f, i);
        if (ferror(f)) {
                int error = errno;
                lua_pushnil(L);
                lua_pushstring(L, strerror(error));
                lua_pushinteger(L, error);
                return 3;
        }
        if (!ok) {
                lua_pop(L, 1);
                lua_pushnil(L);
        }
        return lua_gettop(L) - n;
}

void lc_files_push(lua_State *L)
{
        lua_pushcfunction(L, file_read);
        lua_setfield(L, -2, "file_read");
}
