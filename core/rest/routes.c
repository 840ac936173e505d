/* routes.c - see routes.h. */
#include "rest/routes.h"
#include "base/alloc.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A decimal Java int, as Integer.parseInt takes it. */
static bool parse_int(const char *s, int *out)
{
        char *end;
        long v;

        if (!*s || (*s != '-' && *s != '+' && (*s < '0' || *s > '9')))
                return false;
        errno = 0;
        v = strtol(s, &end, 10);
        if (*end || errno || end == s || v < INT_MIN || v > INT_MAX)
                return false;
        *out = (int)v;
        return true;
}

static void free_params(lc_match_t *m)
{
        for (int i = 0; i < LC_ROUTE_MAX_PARAMS; i++) {
                free(m->params[i]);
                m->params[i] = NULL;
        }
}

/* Segment by segment: a literal is compared, {x} takes what is there. One trailing slash is no segment. */
static bool path_matches(const char *pattern, const char *path, lc_match_t *m, bool *bad_number)
{
        int count = 0;

        *bad_number = false;
        free_params(m);
        for (;;) {
                size_t want, have, matrix;
                while (*pattern == '/')
                        pattern++;
                if (*path == '/')
                        path++;
                want = strcspn(pattern, "/");
                have = strcspn(path, "/");
                matrix = strcspn(path, ";");
                if (want == 0)
                        return have == 0 && path[have] == 0;
                if (matrix > have)
                        matrix = have;
                if (*pattern == '{') {
                        lc_buf_t value = LC_BUF_SURE;
                        if (matrix == 0)
                                return false;
                        lc_http_decode(path, matrix, false, &value);
                        if (pattern[1] == '#') {
                                if (!parse_int(value.p, &m->number))
                                        *bad_number = true;
                                lc_buf_free(&value);
                        } else {
                                lc_assert(count < LC_ROUTE_MAX_PARAMS);
                                m->params[count++] = lc_buf_take(&value, NULL);
                        }
                } else {
                        lc_buf_t value = LC_BUF_SURE;
                        bool same;
                        lc_http_decode(path, matrix, false, &value);
                        same = value.len == want && !memcmp(value.p, pattern, want);
                        lc_buf_free(&value);
                        if (!same)
                                return false;
                }
                pattern += want;
                path += have;
        }
}

static void allow(lc_buf_t *out, const char *method)
{
        if (out->len)
                lc_buf_adds(out, ", ");
        lc_buf_adds(out, method);
}

void lc_route_match(const char *method, const char *path, bool admin, lc_match_t *m)
{
        size_t n;
        const lc_route_t *routes = lc_routes(&n), *found = NULL;
        bool head = !strcmp(method, "HEAD"), bad_number = false;
        const char *known = NULL;

        memset(m, 0, sizeof(*m));
        for (size_t i = 0; i < n; i++) {
                const lc_route_t *r = &routes[i];
                bool bad;
                if ((r->flags & LC_ROUTE_ADMIN) && !admin)
                        continue;
                if (known ? strcmp(known, r->path) != 0 : !path_matches(r->path, path, m, &bad))
                        continue;
                if (!known) {
                        known = r->path;
                        bad_number = bad;
                }
                if (!strcmp(r->method, "GET"))
                        allow(&m->allow, "HEAD");
                allow(&m->allow, r->method);
                if (!strcmp(r->method, head ? "GET" : method))
                        found = r;
        }
        if (!known) {
                free_params(m);
                m->status = 404;
                return;
        }
        allow(&m->allow, "OPTIONS");
        if (!strcmp(method, "OPTIONS")) {
                m->options = true;
        } else if (!found) {
                m->status = 405;
        } else if (bad_number) {
                m->status = 404;
                m->typed = true;
        } else {
                m->route = found;
        }
}

void lc_match_free(lc_match_t *m)
{
        free_params(m);
        lc_buf_free(&m->allow);
        m->route = NULL;
}
