/*
 * strings.c - find, match, gmatch and gsub of scripts: Lua's patterns, ended by the guard (guard.h) when they
 * take long. lua/connect/strings.lua puts them into the string library.
 *
 * Patterns are Lua 5.1's with %f, %g and zero bytes. Nothing is held but Lua's own memory, so raising is fine
 * anywhere.
 * Threads:   the script's.
 * Tests:     spec/unit/strings_spec.lua
 */
#include "script/state.h"
#include <ctype.h>
#include <string.h>

enum { CAPTURES = 32, DEPTH = 200, STEPS = 4096 };
enum { OPEN = -1, POSITION = -2 };
static const char SPECIALS[] = "^$*+?.([%-";

typedef struct matcher {
        lua_State *L;
        const char *src, *src_end; /* the subject */
        const char *pat_end;
        int depth, captures;
        unsigned steps; /* since the last look at the guard */
        struct {
                const char *at;
                ptrdiff_t len; /* or OPEN, POSITION */
        } cap[CAPTURES];
} matcher_t;

static const char *match(matcher_t *m, const char *s, const char *p);

static void step(matcher_t *m)
{
        if (++m->steps >= STEPS) {
                m->steps = 0;
                lc_guard_check(m->L);
        }
}

/* ---- one character ------------------------------------------------------------------------------ */

static bool in_class(unsigned char c, unsigned char cls)
{
        bool yes;

        if (c >= 0x80 && cls >= 0x80)
                return c == cls;
        switch (cls | 0x20) { /* C locale, as LuaJIT's tables */
        case 'a':
                yes = isalpha(c);
                break;
        case 'c':
                yes = iscntrl(c);
                break;
        case 'd':
                yes = isdigit(c);
                break;
        case 'g':
                yes = isgraph(c);
                break;
        case 'l':
                yes = islower(c);
                break;
        case 'p':
                yes = ispunct(c);
                break;
        case 's':
                yes = isspace(c);
                break;
        case 'u':
                yes = isupper(c);
                break;
        case 'w':
                yes = isalnum(c);
                break;
        case 'x':
                yes = isxdigit(c);
                break;
        case 'z':
                yes = c == 0;
                break;
        default:
                return c == cls;
        }
        if (!isalpha(cls))
                return c == cls; /* '!' | 0x20 and the like */
        return isupper(cls) ? !yes : yes;
}

/* Behind the single-character item at p. */
static const char *item_end(const matcher_t *m, const char *p)
{
        if (*p == '%') {
                if (p + 1 >= m->pat_end)
                        luaL_error(m->L, "malformed pattern (ends with '%%')");
                return p + 2;
        }
        if (*p != '[')
                return p + 1;
        p++;
        if (p < m->pat_end && *p == '^')
                p++;
        do { /* a ] in the first place is a member */
                if (p >= m->pat_end)
                        luaL_error(m->L, "malformed pattern (missing ']')");
                p += *p == '%' ? 2 : 1;
        } while (p >= m->pat_end || *p != ']');
        return p + 1;
}

/* set: at '[', end: behind ']'. */
static bool in_set(unsigned char c, const char *set, const char *end)
{
        bool wanted = true;
        const char *p = set + 1, *last = end - 1;

        if (*p == '^') {
                wanted = false;
                p++;
        }
        while (p < last) {
                if (*p == '%') {
                        if (in_class(c, (unsigned char)p[1]))
                                return wanted;
                        p += 2;
                } else if (p + 2 < last && p[1] == '-') {
                        if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2])
                                return wanted;
                        p += 3;
                } else if ((unsigned char)*p++ == c) {
                        return wanted;
                }
        }
        return !wanted;
}

static bool fits(const matcher_t *m, const char *s, const char *p, const char *end)
{
        if (s >= m->src_end)
                return false;
        if (*p == '.')
                return true;
        if (*p == '%')
                return in_class((unsigned char)*s, (unsigned char)p[1]);
        if (*p == '[')
                return in_set((unsigned char)*s, p, end);
        return *p == *s;
}

/* ---- items -------------------------------------------------------------------------------------- */

static const char *most(matcher_t *m, const char *s, const char *p, const char *end)
{
        const char *at = s;

        for (; fits(m, at, p, end); at++)
                step(m);
        for (; at >= s; at--) {
                const char *r = match(m, at, end + 1);
                if (r)
                        return r;
        }
        return NULL;
}

static const char *fewest(matcher_t *m, const char *s, const char *p, const char *end)
{
        for (;; s++) {
                const char *r = match(m, s, end + 1);
                if (r || !fits(m, s, p, end))
                        return r;
        }
}

static const char *open_capture(matcher_t *m, const char *s, const char *p, ptrdiff_t kind)
{
        const char *r;

        if (m->captures >= CAPTURES)
                luaL_error(m->L, "too many captures");
        m->cap[m->captures].at = s;
        m->cap[m->captures++].len = kind;
        r = match(m, s, p);
        if (!r)
                m->captures--;
        return r;
}

static const char *close_capture(matcher_t *m, const char *s, const char *p)
{
        const char *r;
        int i = m->captures - 1;

        while (i >= 0 && m->cap[i].len != OPEN)
                i--;
        if (i < 0)
                luaL_error(m->L, "invalid pattern capture");
        m->cap[i].len = s - m->cap[i].at;
        r = match(m, s, p);
        if (!r)
                m->cap[i].len = OPEN;
        return r;
}

/* %1: the text of a capture again. */
static const char *same(const matcher_t *m, const char *s, char digit)
{
        int i = digit - '1';
        size_t n;

        if (i < 0 || i >= m->captures || m->cap[i].len == OPEN)
                luaL_error(m->L, "invalid capture index");
        if (m->cap[i].len == POSITION)
                return NULL;
        n = (size_t)m->cap[i].len;
        return (size_t)(m->src_end - s) >= n && !memcmp(m->cap[i].at, s, n) ? s + n : NULL;
}

/* %bxy, p at x */
static const char *balance(matcher_t *m, const char *s, const char *p)
{
        int level = 1;

        if (p + 1 >= m->pat_end)
                luaL_error(m->L, "unbalanced pattern");
        if (s >= m->src_end || *s != p[0])
                return NULL;
        while (++s < m->src_end) {
                step(m);
                if (*s == p[1]) {
                        if (!--level)
                                return s + 1;
                } else if (*s == p[0]) {
                        level++;
                }
        }
        return NULL;
}

/* %f[set], p at [ */
static bool frontier(const matcher_t *m, const char *s, const char *p, const char *end)
{
        unsigned char before = s == m->src ? 0 : (unsigned char)s[-1];
        unsigned char here = s < m->src_end ? (unsigned char)*s : 0;

        return !in_set(before, p, end) && in_set(here, p, end);
}

/* Items that are no single character: true, with the end in *s (NULL: no match) and *p behind the item. */
static bool special(matcher_t *m, const char **s, const char **p)
{
        const char *at = *p, *end;

        if (*at != '%' || at + 1 >= m->pat_end)
                return false;
        if (at[1] == 'b') {
                *s = balance(m, *s, at + 2);
                *p = at + 4;
                return true;
        }
        if (at[1] == 'f') {
                at += 2;
                if (at >= m->pat_end || *at != '[')
                        luaL_error(m->L, "missing '[' after '%%f' in pattern");
                end = item_end(m, at);
                if (!frontier(m, *s, at, end))
                        *s = NULL;
                *p = end;
                return true;
        }
        if (isdigit((unsigned char)at[1])) {
                *s = same(m, *s, at[1]);
                *p = at + 2;
                return true;
        }
        return false;
}

static const char *match_here(matcher_t *m, const char *s, const char *p)
{
        while (s && p < m->pat_end) {
                const char *end, *r;

                step(m);
                if (*p == '(')
                        return p + 1 < m->pat_end && p[1] == ')' ? open_capture(m, s, p + 2, POSITION)
                                                                 : open_capture(m, s, p + 1, OPEN);
                if (*p == ')')
                        return close_capture(m, s, p + 1);
                if (*p == '$' && p + 1 == m->pat_end)
                        return s == m->src_end ? s : NULL;
                if (special(m, &s, &p))
                        continue;
                end = item_end(m, p);
                switch (end < m->pat_end ? *end : 0) {
                case '?':
                        if (fits(m, s, p, end) && (r = match(m, s + 1, end + 1)))
                                return r;
                        p = end + 1;
                        break;
                case '+':
                        return fits(m, s, p, end) ? most(m, s + 1, p, end) : NULL;
                case '*':
                        return most(m, s, p, end);
                case '-':
                        return fewest(m, s, p, end);
                default:
                        if (!fits(m, s, p, end))
                                return NULL;
                        s++;
                        p = end;
                }
        }
        return s;
}

static const char *match(matcher_t *m, const char *s, const char *p)
{
        const char *r;

        if (++m->depth > DEPTH)
                luaL_error(m->L, "pattern too complex");
        r = match_here(m, s, p);
        m->depth--;
        return r;
}

/* ---- results ------------------------------------------------------------------------------------ */

static void push_capture(const matcher_t *m, int i, const char *s, const char *e)
{
        if (i >= m->captures) {
                if (i != 0)
                        luaL_error(m->L, "invalid capture index");
                lua_pushlstring(m->L, s, (size_t)(e - s));
        } else if (m->cap[i].len == POSITION) {
                lua_pushinteger(m->L, m->cap[i].at - m->src + 1);
        } else if (m->cap[i].len == OPEN) {
                luaL_error(m->L, "unfinished capture");
        } else {
                lua_pushlstring(m->L, m->cap[i].at, (size_t)m->cap[i].len);
        }
}

/* All captures; the whole match when there is none and `whole`. */
static int push_captures(const matcher_t *m, const char *s, const char *e, bool whole)
{
        int n = !m->captures && whole ? 1 : m->captures;

        luaL_checkstack(m->L, n, "too many captures");
        for (int i = 0; i < n; i++)
                push_capture(m, i, s, e);
        return n;
}

static void begin(matcher_t *m, lua_State *L, const char *s, size_t n, const char *p, size_t np)
{
        m->L = L;
        m->src = s;
        m->src_end = s + n;
        m->pat_end = p + np;
        m->depth = m->captures = 0;
        m->steps = 0;
}

static int find_or_match(lua_State *L, bool find)
{
        size_t n, np;
        const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &np), *at, *e = NULL;
        lua_Number wanted = luaL_optnumber(L, 3, 1);
        double init = wanted < 0 ? wanted + (double)n : wanted - 1;
        bool anchored;
        matcher_t m;

        at = s + (init > 0 ? init < (double)n ? (size_t)init : n : 0);
        if (find && (lua_toboolean(L, 4) || (!memchr(p, 0, np) && !strpbrk(p, SPECIALS)))) {
                const char *found = np ? memmem(at, n - (size_t)(at - s), p, np) : at;

                if (!found) {
                        lua_pushnil(L);
                        return 1;
                }
                lua_pushinteger(L, found - s + 1);
                lua_pushinteger(L, found - s + (ptrdiff_t)np);
                return 2;
        }
        begin(&m, L, s, n, p, np);
        anchored = np && *p == '^';
        for (;; at++) {
                m.captures = 0;
                e = match(&m, at, p + anchored);
                if (e || anchored || at >= m.src_end)
                        break;
        }
        if (!e) {
                lua_pushnil(L);
                return 1;
        }
        if (!find)
                return push_captures(&m, at, e, true);
        lua_pushinteger(L, at - s + 1);
        lua_pushinteger(L, e - s);
        return push_captures(&m, at, e, false) + 2;
}

static int str_find(lua_State *L)
{
        return find_or_match(L, true);
}

static int str_match(lua_State *L)
{
        return find_or_match(L, false);
}

static int gmatch_next(lua_State *L)
{
        size_t n, np;
        const char *s = lua_tolstring(L, lua_upvalueindex(1), &n);
        const char *p = lua_tolstring(L, lua_upvalueindex(2), &np);
        matcher_t m;

        begin(&m, L, s, n, p, np);
        for (const char *at = s + (size_t)lua_tonumber(L, lua_upvalueindex(3)); at <= m.src_end; at++) {
                const char *e;

                m.captures = 0;
                e = match(&m, at, p);
                if (!e)
                        continue;
                lua_pushnumber(L, (lua_Number)((e == at ? e + 1 : e) - s));
                lua_replace(L, lua_upvalueindex(3));
                return push_captures(&m, at, e, true);
        }
        lua_pushnumber(L, (lua_Number)n + 1);
        lua_replace(L, lua_upvalueindex(3));
        return 0;
}

static int str_gmatch(lua_State *L)
{
        luaL_checkstring(L, 1);
        luaL_checkstring(L, 2);
        lua_settop(L, 2);
        lua_pushnumber(L, 0);
        lua_pushcclosure(L, gmatch_next, 3);
        return 1;
}

/* The replacement text at 3, with %0 to %9. */
static void add_text(const matcher_t *m, luaL_Buffer *b, const char *s, const char *e)
{
        size_t n;
        const char *text = lua_tolstring(m->L, 3, &n);

        for (size_t i = 0; i < n; i++) {
                if (text[i] != '%' || ++i >= n) {
                        if (i < n)
                                luaL_addchar(b, text[i]);
                } else if (!isdigit((unsigned char)text[i])) {
                        luaL_addchar(b, text[i]);
                } else if (text[i] == '0') {
                        luaL_addlstring(b, s, (size_t)(e - s));
                } else {
                        push_capture(m, text[i] - '1', s, e);
                        luaL_addvalue(b);
                }
        }
}

static void add_result(const matcher_t *m, luaL_Buffer *b, const char *s, const char *e)
{
        lua_State *L = m->L;
        int n;

        switch (lua_type(L, 3)) {
        case LUA_TFUNCTION:
                lua_pushvalue(L, 3);
                n = push_captures(m, s, e, true);
                lua_call(L, n, 1);
                break;
        case LUA_TTABLE:
                push_capture(m, 0, s, e);
                lua_gettable(L, 3);
                break;
        default:
                add_text(m, b, s, e);
                return;
        }
        if (!lua_toboolean(L, -1)) {
                lua_pop(L, 1);
                lua_pushlstring(L, s, (size_t)(e - s));
        } else if (!lua_isstring(L, -1)) {
                luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
        }
        luaL_addvalue(b);
}

static int str_gsub(lua_State *L)
{
        size_t n, np;
        const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &np);
        int type = lua_type(L, 3), count = 0;
        lua_Number most_times = luaL_optnumber(L, 4, (lua_Number)n + 1);
        bool anchored = np && *p == '^';
        luaL_Buffer b;
        matcher_t m;

        if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TFUNCTION && type != LUA_TTABLE)
                luaL_typerror(L, 3, "string/function/table");
        lc_guard_stack(L); /* the buffer is 8 KiB of it */
        lua_settop(L, 3);
        luaL_buffinit(L, &b);
        begin(&m, L, s, n, p, np);
        while (count < most_times) {
                const char *e;

                m.captures = 0;
                e = match(&m, s, p + anchored);
                if (e) {
                        count++;
                        add_result(&m, &b, s, e);
                }
                if (e && e > s)
                        s = e;
                else if (s < m.src_end)
                        luaL_addchar(&b, *s++);
                else
                        break;
                if (anchored)
                        break;
        }
        luaL_addlstring(&b, s, (size_t)(m.src_end - s));
        luaL_pushresult(&b);
        lua_pushinteger(L, count);
        return 2;
}

void lc_strings_push(lua_State *L)
{
        static const luaL_Reg functions[] = {{"find", str_find},
                                             {"match", str_match},
                                             {"gmatch", str_gmatch},
                                             {"gsub", str_gsub},
                                             {NULL, NULL}};

        lua_newtable(L);
        for (const luaL_Reg *f = functions; f->name; f++) {
                lua_pushcfunction(L, f->func);
                lua_setfield(L, -2, f->name);
        }
        lua_setfield(L, -2, "strings");
}
