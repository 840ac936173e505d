/* cppcheck.h - for ./dev lint: cppcheck does not follow uthash's own macros. */
#define HASH_ITER(hh, head, el, tmp) for ((el) = (head), (tmp) = (el); (el); (el) = (tmp))
