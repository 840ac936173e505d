/* traceback.c - see traceback.h. */
#include "script/traceback.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum { FIRST = 12, LAST = 10 }; /* levels shown of a deep stack, as in Lua */

/* The number of levels: lua_getstack takes as long as the level is deep, so few questions. */
static int depth(lua_State *L)
{
        lua_Debug ar;
        int low = 0, high = 1; /* low: there is such a level, or none at all; high: there is not */

        while (lua_getstack(L, high, &ar)) {
                low = high;
                high *= 2;
        }
        while (low + 1 < high) {
                int middle = low + (high - low) / 2;
                if (lua_getstack(L, middle, &ar))
                        low = middle;
                else
                        high = middle;
        }
        return high;
}

static bool add(char *out, size_t size, size_t *len, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* One line, or false and nothing. */
static bool add(char *out, size_t size, size_t *len, const char *fmt, ...)
{
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(out + *len, size - *len, fmt, ap);
        va_end(ap);
        if (n < 0 || (size_t)n >= size - *len) {
                out[*len] = '\0';
                return false;
        }
        *len += (size_t)n;
        return true;
}

static bool add_level(const lua_Debug *ar, char *out, size_t size, size_t *len)
{
        char where[sizeof(ar->short_src) + 16];

        if (ar->currentline > 0)
                snprintf(where, sizeof(where), "%s:%d", ar->short_src, ar->currentline);
        else
                snprintf(where, sizeof(where), "%s", ar->short_src);
        if (*ar->namewhat)
                return add(out, size, len, "\t%s: in function '%s'\n", where, ar->name ? ar->name : "?");
        if (*ar->what == 'm')
                return add(out, size, len, "\t%s: in main chunk\n", where);
        if (*ar->what == 'C')
                return add(out, size, len, "\t%s: in ?\n", where);
        return add(out, size, len, "\t%s: in function <%s:%d>\n", where, ar->short_src, ar->linedefined);
}

void lc_traceback(lua_State *L, int level, char *out, size_t size)
{
        lua_Debug ar;
        size_t len = 0;
        int n = depth(L), skip_to = n - LAST;

        out[0] = '\0';
        if (!add(out, size, &len, "stack traceback:\n"))
                return;
        for (int first = level; lua_getstack(L, level, &ar); level++) {
                if (level == first + FIRST && skip_to > level) {
                        if (!add(out, size, &len, "\t...\n"))
                                return;
                        level = skip_to - 1;
                        continue;
                }
                lua_getinfo(L, "Snl", &ar);
                if (!add_level(&ar, out, size, &len))
                        return;
        }
}
