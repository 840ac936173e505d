/*
 * version_range.c - see version_range.h. Versions are compared number by number, a qualifier ("-rc1",
 * "-SNAPSHOT") comes before the plain version, as Maven has it for the usual ones.
 *
 * Threads: any.  Tests: spec/unit/config_spec.lua
 */
#include "config/version_range.h"
#include "base/alloc.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int lc_version_compare(const char *a, const char *b)
{
        for (;;) {
                char *ea, *eb;
                bool na = isdigit((unsigned char)*a), nb = isdigit((unsigned char)*b);

                if (na || nb) {
                        unsigned long x = na ? strtoul(a, &ea, 10) : 0, y = nb ? strtoul(b, &eb, 10) : 0;

                        if (x != y)
                                return x < y ? -1 : 1;
                        a = na ? ea : a;
                        b = nb ? eb : b;
                } else {
                        size_t la = strcspn(a, ".-"), lb = strcspn(b, ".-");
                        int c;

                        if (!la || !lb) {
                                if (!la && !lb && !*a && !*b)
                                        return 0;
                                if (la != lb)
                                        return la ? -1 : 1; /* a qualifier is older */
                        }
                        c = strncasecmp(a, b, la < lb ? la : lb);
                        if (c || la != lb)
                                return c ? c : la < lb ? -1 : 1;
                        a += la;
                        b += lb;
                }
                if (!*a && !*b)
                        return 0;
                a += *a == '.' || *a == '-';
                b += *b == '.' || *b == '-';
        }
}

static char *piece(const char *from, const char *to)
{
        while (from < to && isspace((unsigned char)*from))
                from++;
        while (to > from && isspace((unsigned char)to[-1]))
                to--;
        return lc_strndup(from, (size_t)(to - from));
}

static int bad(lc_err_t *err, const char *what, const char *spec)
{
        return lc_err_set_cls(err, LC_FATAL, 0,
                              "org.apache.maven.artifact.versioning.InvalidVersionSpecificationException",
                              "%s: %s", what, spec);
}

/* One "[lo,hi)" at *at. Returns 1 when the version is inside, 0 not, -1 malformed. */
static int restriction(const char *spec, const char **at, const char *version, char **upper, lc_buf_t *text,
                       lc_err_t *err)
{
        const char *open = *at, *close = open + 1 + strcspn(open + 1, ")]"), *comma;
        char *lo = NULL, *hi = NULL;
        int rc = -1;

        if (!*close)
                return bad(err, "Unbounded range", spec);
        comma = memchr(open, ',', (size_t)(close - open));
        if (!comma) {
                if (*open == '(' || *close == ')')
                        return bad(err, "Single version must be surrounded by []", spec);
                lo = piece(open + 1, close);
                hi = lc_strdup(lo);
        } else {
                lo = piece(open + 1, comma);
                hi = piece(comma + 1, close);
                if (*lo && *hi) {
                        int c = lc_version_compare(hi, lo);

                        if (c < 0 || (c == 0 && (*open == '(' || *close == ')'))) {
                                bad(err, "Range defies version ordering", spec);
                                goto done;
                        }
                }
        }
        if (*upper && (!**upper || !*lo || lc_version_compare(lo, *upper) < 0)) {
                bad(err, "Ranges overlap", spec);
                goto done;
        }
        if (text)
                lc_buf_printf(text, "%s%c%s,%s%c", text->len ? "," : "", *open, lo, hi, *close);
        rc = 1;
        if (*lo) {
                int c = lc_version_compare(version, lo);
                rc &= c > 0 || (c == 0 && *open == '[');
        }
        if (*hi) {
                int c = lc_version_compare(version, hi);
                rc &= c < 0 || (c == 0 && *close == ']');
        }
        free(*upper);
        *upper = hi;
        hi = NULL;
        *at = close + 1;
done:
        free(lo);
        free(hi);
        return rc;
}

int lc_version_in_range(const char *range, const char *version, lc_buf_t *text, lc_err_t *err)
{
        char *spec, *upper = NULL;
        const char *at;
        int inside = 0;

        if (!range || !strcmp(range, "latest"))
                return 1;
        spec = piece(range, range + strlen(range));
        if (*spec != '[' && *spec != '(') {
                char *exact = lc_asprintf("[%s]", spec);

                free(spec);
                spec = exact;
        }
        for (at = spec; *at == '[' || *at == '(';) {
                int rc = restriction(spec, &at, version, &upper, text, err);

                if (rc < 0) {
                        inside = -1;
                        break;
                }
                inside |= rc;
                if (*at == ',' && (at[1] == '[' || at[1] == '('))
                        at++;
        }
        if (inside >= 0 && *at)
                inside = bad(err, "Only fully-qualified sets allowed in multiple set scenario", spec);
        free(upper);
        free(spec);
        return inside;
}
