/*
 * checked.h - Lua text with a test of the guard's flag at every loop, function and goto. Internal to script/.
 *
 * `do`, `repeat` and a function's parameters are followed by, and `goto NAME` is preceded by
 *     if T[1]then T[2]()end U[1]=U[1]+1;
 * on the same line, so that line numbers stay. T is the flag's table, U another table: the assignment keeps
 * LuaJIT from reading T[1] once before the loop, as it might be the same slot. It costs about 1 ns
 * a turn in compiled loops, 15 ns in interpreted ones. The names of T and U are bytes that nobody writes.
 * Threads: any. Tests:     spec/unit/checked_spec.lua
 */
#ifndef LC_SCRIPT_CHECKED_H
#define LC_SCRIPT_CHECKED_H
#include "base/buf.h"
#include <stdbool.h>

#define LC_CHECKED_FLAG                                                                                      \
        "\xff"                                                                                               \
        "t"
#define LC_CHECKED_OTHER                                                                                     \
        "\xff"                                                                                               \
        "u"

/* How the names are found and what is tested. A function may have 60 upvalues and 200 locals: text that is at
 * its limit takes the names from its globals. */
typedef enum { LC_CHECKED_LOCALS, LC_CHECKED_GLOBALS, LC_CHECKED_NO_GOTO, LC_CHECKED_WAYS } lc_checked_way_t;
/* text must be Lua that compiles. */
void lc_checked_text(const char *text, size_t n, lc_checked_way_t way, lc_buf_t *out);

#endif
