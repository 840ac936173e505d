/* strv.c - see strv.h. */
#include "base/strv.h"
#include "base/alloc.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Its room is the next power of two: enough when items went, too. */
static void add_owned(lc_strv_t *s, char *item)
{
        if (!(s->n & (s->n - 1)))
                s->v = lc_realloc(s->v, (s->n ? s->n * 2 : 1) * sizeof(*s->v));
        s->v[s->n++] = item;
}

void lc_strv_add(lc_strv_t *s, const char *item)
{
        add_owned(s, lc_strdup(item));
}

bool lc_strv_has(const lc_strv_t *s, const char *item)
{
        for (size_t i = 0; i < s->n; i++)
                if (!strcmp(s->v[i], item))
                        return true;
        return false;
}

static int by_bytes(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void lc_strv_sort(lc_strv_t *s)
{
        if (s->n)
                qsort(s->v, s->n, sizeof(*s->v), by_bytes);
}

static int by_text_then_place(const void *a, const void *b)
{
        char *const *x = *(char *const *const *)a, *const *y = *(char *const *const *)b;
        int order = strcmp(*x, *y);

        return order ? order : (x > y) - (x < y);
}

size_t lc_strv_unique(lc_strv_t *s)
{
        size_t kept = 0, gone = 0;
        char ***places, *first = NULL;

        if (s->n < 2)
                return 0;
        places = lc_malloc(s->n * sizeof(*places));
        for (size_t i = 0; i < s->n; i++)
                places[i] = &s->v[i];
        qsort(places, s->n, sizeof(*places), by_text_then_place);
        for (size_t i = 0; i < s->n; i++) {
                if (first && !strcmp(first, *places[i])) {
                        free(*places[i]);
                        *places[i] = NULL;
                        gone++;
                } else {
                        first = *places[i];
                }
        }
        free(places);
        for (size_t i = 0; i < s->n; i++)
                if (s->v[i])
                        s->v[kept++] = s->v[i];
        s->n = kept;
        return gone;
}

void lc_strv_free(lc_strv_t *s)
{
        for (size_t i = 0; i < s->n; i++)
                free(s->v[i]);
        free(s->v);
        s->v = NULL;
        s->n = 0;
}

void lc_strv_split(lc_strv_t *s, const char *text)
{
        const char *end = text + strlen(text);

        while (text < end && isspace((unsigned char)*text))
                text++;
        while (end > text && isspace((unsigned char)end[-1]))
                end--;
        if (text == end)
                return;
        for (;;) {
                const char *comma = memchr(text, ',', (size_t)(end - text));
                const char *stop = comma ? comma : end, *cut = stop;

                while (cut > text && isspace((unsigned char)cut[-1]))
                        cut--;
                add_owned(s, lc_strndup(text, (size_t)(cut - text)));
                if (!comma)
                        return;
                text = comma + 1;
                while (text < end && isspace((unsigned char)*text))
                        text++;
        }
}
