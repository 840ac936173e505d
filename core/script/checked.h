/*
 * checked.h - Lua text with a test of the guard's flag at every loop, function and goto. Internal to script/.
 *
 * `do`, `repeat` and a function's parameters are followed by, and `goto NAME` is preceded by
 *     if T[1]then T[2]()end U[1]=U[1]+1;
 * on the same line, so that line numbers stay. T is the flag's table, U another table: the assignment keeps
 * LuaJIT from reading T[1] once before the loop, as it might be the same slot. The names of T and U are bytes that
 * nobody writes.
 * A test costs 0.1 to 0.5 ns where the code is compiled (a loop that only adds: 1.03 -> 1.16 ns a turn, with a
 * call in it 1.01 -> 2.08 ns) and 10 to 15 ns where it is interpreted (4.1 -> 16.5, 12 -> 41 ns). The Redact of
 * docs/authoring.md has three a record: nothing that can be told from noise in 1.4 us when compiled, 48 ns of
 * 2.2 us when interpreted. Measured by ./dev bench checked.
 * Threads: any. Tests:     spec/unit/stuck_spec.lua
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
