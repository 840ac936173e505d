/* arena.c - see arena.h. One owner thread. */
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

/* A batch of one small record should not pin pages until it is acknowledged: begin small, grow fast. */
enum { FIRST_CHUNK = 512, LARGEST_CHUNK = 256 * 1024 };

struct lc_arena_chunk {
        lc_arena_chunk_t *next;
        size_t size; /* of data */
        _Alignas(16) char data[];
};

void lc_arena_init(lc_arena_t *a)
{
        memset(a, 0, sizeof(*a));
}

void lc_arena_free(lc_arena_t *a)
{
        lc_arena_chunk_t *c = a->head, *next;

        for (; c; c = next) {
                next = c->next;
                free(c);
        }
        lc_arena_init(a);
}

void lc_arena_reset(lc_arena_t *a)
{
        lc_arena_chunk_t *keep = a->head;

        if (!keep)
                return;
        a->head = keep->next;
        {
                lc_arena_t rest = *a;
                lc_arena_free(&rest);
        }
        keep->next = NULL;
        a->head = keep;
        a->at = keep->data;
        a->end = keep->data + keep->size;
        a->total = keep->size;
}

static int new_chunk(lc_arena_t *a, size_t least)
{
        size_t size = a->head ? a->head->size * 4 : FIRST_CHUNK;
        lc_arena_chunk_t *c;

        if (size > LARGEST_CHUNK)
                size = LARGEST_CHUNK;
        if (size < least)
                size = least;
        if (size > (size_t)-1 - sizeof(*c))
                return -1;
        c = malloc(sizeof(*c) + size);
        if (!c)
                return -1;
        c->size = size;
        c->next = a->head;
        a->head = c;
        a->at = c->data;
        a->end = c->data + size;
        a->total += size;
        return 0;
}

void *lc_arena_more(lc_arena_t *a, size_t size, size_t align)
{
        char *p;

        if (size > (size_t)-1 / 2 || new_chunk(a, size + align) < 0)
                return NULL;
        p = (char *)(((size_t)a->at + align - 1) & ~(align - 1));
        a->at = p + size;
        return p;
}

void *lc_arena_dup(lc_arena_t *a, const void *data, size_t n)
{
        char *p = lc_arena_alloc(a, n + 1);

        if (!p)
                return NULL;
        if (n)
                memcpy(p, data, n);
        p[n] = '\0';
        return p;
}

char *lc_arena_strdup(lc_arena_t *a, const char *s)
{
        return lc_arena_dup(a, s, strlen(s));
}

char *lc_arena_room(lc_arena_t *a, size_t size)
{
        if (!a->at || size > (size_t)(a->end - a->at))
                if (size > (size_t)-1 / 2 || new_chunk(a, size) < 0)
                        return NULL;
        return a->at;
}

void lc_arena_commit(lc_arena_t *a, size_t used)
{
        a->at += used;
}
