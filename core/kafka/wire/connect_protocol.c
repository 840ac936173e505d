/* connect_protocol.c - see connect_protocol.h. */
#include "kafka/wire/connect_protocol.h"
#include "base/alloc.h"
#include "kafka/wire/buffer.h"
#include <stdlib.h>

enum { LARGEST_WORK = 64 << 20 }; /* bytes of memory for the work of one assignment */

static const char *const names[] = {"default", "compatible", "sessioned"};

int16_t lc_connect_protocol_version(const char *name)
{
        for (int16_t i = 0; name && i < 3; i++)
                if (!strcmp(names[i], name))
                        return i;
        return -1;
}

const char *lc_connect_protocol_name(int16_t version)
{
        return version >= 0 && version < 3 ? names[version] : "unknown";
}

/* One element a connector; lc_work_t is sorted, so the instance (-1) comes before its tasks. */
static void put_work(lc_buf_t *out, const lc_work_t *w)
{
        size_t groups = 0, i, j;

        for (i = 0; i < w->n; i++)
                groups += i == 0 || strcmp(w->v[i].connector, w->v[i - 1].connector) != 0;
        lc_wire_put_i32(out, (int32_t)groups);
        for (i = 0; i < w->n; i = j) {
                for (j = i; j < w->n && !strcmp(w->v[j].connector, w->v[i].connector); j++)
                        ;
                lc_wire_put_str(out, w->v[i].connector);
                lc_wire_put_i32(out, (int32_t)(j - i));
                for (size_t k = i; k < j; k++)
                        lc_wire_put_i32(out, w->v[k].task);
        }
}

typedef struct item {
        const char *name;
        int32_t task;
} item_t;

static int by_name_and_task(const void *a, const void *b)
{
        const item_t *x = a, *y = b;
        int c = strcmp(x->name, y->name);

        return c ? c : (x->task > y->task) - (x->task < y->task);
}

/* Elements may come in any order, any number of times, and a long name stands there once for all its tasks:
 * time and memory are bounded whatever the bytes say. */
static void get_work(lc_wire_reader_t *r, lc_work_t *w)
{
        size_t left = LARGEST_WORK, nitems = 0, cap = 0;
        item_t *items = NULL;
        char **known;
        int32_t n;

        if (!lc_wire_left(r))
                return; /* a missing trailing field */
        n = lc_wire_count(r, 6);
        known = lc_calloc(n > 0 ? (size_t)n : 1, sizeof(*known));
        for (int32_t i = 0; i < n && !r->bad; i++) {
                size_t each;
                int32_t tasks;

                known[i] = lc_wire_str(r);
                tasks = lc_wire_count(r, 4);
                each = known[i] ? strlen(known[i]) + 2 * sizeof(item_t) : LARGEST_WORK;
                if (tasks > 0 && (size_t)tasks > left / each)
                        r->bad = true;
                if (!known[i] || r->bad) {
                        r->bad = true;
                        break;
                }
                for (int32_t k = 0; k < tasks; k++) {
                        if (nitems == cap) {
                                cap = cap ? 2 * cap : 16;
                                items = lc_realloc(items, cap * sizeof(*items));
                        }
                        items[nitems++] = (item_t){known[i], lc_wire_i32(r)};
                }
                if (tasks > 0)
                        left -= (size_t)tasks * each;
        }
        if (!r->bad && nitems) {
                qsort(items, nitems, sizeof(*items), by_name_and_task);
                for (size_t i = 0; i < nitems; i++) /* in order, so each one is added at the end */
                        lc_work_add(w, items[i].name, items[i].task);
        }
        for (int32_t i = 0; i < n; i++)
                free(known[i]);
        free(known);
        free(items);
}

int lc_connect_assignment_encode(lc_buf_t *out, int16_t version, const lc_assignment_t *a)
{
        lc_wire_put_i16(out, version);
        lc_wire_put_i16(out, a->error);
        lc_wire_put_str(out, a->leader ? a->leader : "");
        lc_wire_put_str(out, a->leader_url ? a->leader_url : "");
        lc_wire_put_i64(out, a->config_offset);
        put_work(out, &a->assigned);
        if (version >= 1) {
                put_work(out, &a->revoked);
                lc_wire_put_i32(out, a->delay_ms);
        }
        return lc_buf_ok(out) ? 0 : -1;
}

int lc_connect_assignment_decode(const void *data, size_t n, lc_assignment_t *out, lc_err_t *err)
{
        lc_wire_reader_t r;

        memset(out, 0, sizeof(*out));
        lc_wire_reader_init(&r, data, n);
        out->protocol = lc_wire_i16(&r);
        if (!r.bad && out->protocol < 0) {
                int16_t v = out->protocol;
                memset(out, 0, sizeof(*out));
                return lc_err_set(err, LC_DATA, 0, "Unsupported assignment version: %d", v);
        }
        out->error = lc_wire_i16(&r);
        out->leader = lc_wire_str(&r);
        out->leader_url = lc_wire_str(&r);
        out->config_offset = lc_wire_i64(&r);
        get_work(&r, &out->assigned);
        if (out->protocol >= 1) {
                get_work(&r, &out->revoked);
                if (lc_wire_left(&r))
                        out->delay_ms = lc_wire_i32(&r);
        }
        if (r.bad || !out->leader || !out->leader_url) {
                lc_assignment_clear(out);
                return lc_err_set(err, LC_DATA, 0, "Malformed Connect assignment of %zu bytes", n);
        }
        return 0;
}

int lc_connect_metadata_encode(lc_buf_t *out, int16_t version, const char *url, int64_t config_offset,
                               const lc_assignment_t *allocation)
{
        lc_wire_put_i16(out, version);
        lc_wire_put_str(out, url);
        lc_wire_put_i64(out, config_offset);
        if (version >= 1 && !allocation) {
                lc_wire_put_bytes(out, NULL, 0);
        } else if (version >= 1) {
                lc_buf_t inner = LC_BUF_INIT;

                if (lc_connect_assignment_encode(&inner, version, allocation) < 0)
                        out->oom = true;
                else
                        lc_wire_put_bytes(out, inner.p, inner.len);
                lc_buf_free(&inner);
        }
        return lc_buf_ok(out) ? 0 : -1;
}

void lc_connect_metadata_clear(lc_connect_metadata_t *m)
{
        free(m->url);
        lc_assignment_clear(&m->allocation);
        memset(m, 0, sizeof(*m));
}

int lc_connect_metadata_decode(const void *data, size_t n, lc_connect_metadata_t *out, lc_err_t *err)
{
        lc_wire_reader_t r, inner = {NULL, NULL, false};

        memset(out, 0, sizeof(*out));
        lc_wire_reader_init(&r, data, n);
        out->version = lc_wire_i16(&r);
        if (!r.bad && out->version < 0) {
                int16_t v = out->version;
                memset(out, 0, sizeof(*out));
                return lc_err_set(err, LC_DATA, 0, "Unsupported subscription version: %d", v);
        }
        out->url = lc_wire_str(&r);
        out->config_offset = lc_wire_i64(&r);
        if (out->version >= 1 && lc_wire_left(&r))
                inner = lc_wire_bytes(&r);
        if (r.bad || !out->url) {
                lc_connect_metadata_clear(out);
                return lc_err_set(err, LC_DATA, 0, "Malformed Connect member metadata of %zu bytes", n);
        }
        if (inner.p && lc_wire_left(&inner)) {
                if (lc_connect_assignment_decode(inner.p, lc_wire_left(&inner), &out->allocation, err) < 0) {
                        lc_connect_metadata_clear(out);
                        return -1;
                }
                out->has_allocation = true;
        }
        return 0;
}
