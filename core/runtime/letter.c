/* letter.c - see letter.h. The task's thread only. */
#include "runtime/letter.h"
#include "base/alloc.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "__connect.errors."
enum { CONTEXT = 12 }; /* headers at most: Java's ten, and a source's two */

/* ---- bytes of a source's record ----------------------------------------------------------------- */

static lc_converter_t *make(const char *cls, const char *role, lc_err_t *err)
{
        const lc_converter_class_t *c = lc_converter_class_find(cls);
        lc_props_t *config = lc_props_new();
        lc_converter_t *cv = c->create(c, config, role, err);

        lc_props_free(config);
        return cv;
}

lc_letter_writer_t *lc_letter_writer_new(lc_err_t *err)
{
        lc_letter_writer_t *w = lc_calloc(1, sizeof(*w));

        if (!(w->key = make("org.apache.kafka.connect.json.JsonConverter", "key", err)) ||
            !(w->value = make("org.apache.kafka.connect.json.JsonConverter", "value", err)) ||
            !(w->header = make("org.apache.kafka.connect.storage.SimpleHeaderConverter", "header", err))) {
                lc_letter_writer_free(w);
                return NULL;
        }
        return w;
}

static void destroy(lc_converter_t *cv)
{
        if (cv)
                cv->cls->destroy(cv);
}

void lc_letter_writer_free(lc_letter_writer_t *w)
{
        if (!w)
                return;
        destroy(w->key);
        destroy(w->value);
        destroy(w->header);
        free(w);
}

static int to_bytes(lc_converter_t *cv, const lc_record_t *from, const char *header,
                    const lc_schema_t *schema, const lc_value_t *v, lc_arena_t *arena, lc_slice_t *out)
{
        lc_buf_t text = LC_BUF_INIT;
        lc_err_t ignored;

        lc_err_clear(&ignored);
        if (!schema && v->type == LC_NULL) {
                *out = (lc_slice_t){NULL, 0};
                return 0;
        }
        if (!cv->cls->from_connect(cv, from->topic, header, schema, v, arena, out, &ignored))
                return 0;
        if (!lc_value_to_java_string(v, schema, &text) && lc_buf_ok(&text)) {
                out->len = text.len;
                out->p = lc_arena_dup(arena, text.p ? text.p : "", text.len);
        } else {
                out->p = NULL;
        }
        lc_buf_free(&text);
        return out->p ? 0 : -1;
}

static int copy(lc_arena_t *arena, const lc_slice_t *from, lc_slice_t *to)
{
        to->len = from->len;
        to->p = from->p ? lc_arena_dup(arena, from->p, from->len) : NULL;
        return from->p && !to->p ? -1 : 0;
}

/* ---- headers ------------------------------------------------------------------------------------- */

static lc_header_t *add(lc_record_t *r, const char *name, const char *text)
{
        lc_header_t *h = &r->headers[r->nheaders++];

        memset(h, 0, sizeof(*h));
        h->name = name;
        h->bytes.len = text ? strlen(text) : 0;
        h->bytes.p = text ? lc_arena_dup(&r->batch->arena, text, h->bytes.len) : NULL;
        return text && !h->bytes.p ? NULL : h;
}

static lc_header_t *add_number(lc_record_t *r, const char *name, int64_t n)
{
        char text[24];

        snprintf(text, sizeof(text), "%" PRId64, n);
        return add(r, name, text);
}

static int add_origin(lc_record_t *r, const lc_letter_t *x, const lc_failure_t *f)
{
        lc_buf_t offset = LC_BUF_INIT;
        int rc;

        if (f->sink)
                return add(r, PREFIX "topic", x->topic) && add_number(r, PREFIX "partition", x->partition) &&
                                       add_number(r, PREFIX "offset", x->offset)
                               ? 0
                               : -1;
        if (f->record->u.src.offset.type != LC_NULL)
                lc_record_offset_json(f->record, &offset, NULL);
        rc = add(r, PREFIX "topic", f->record->topic) &&
                             add(r, PREFIX "source.partition",
                                 f->record->u.src.partition ? f->record->u.src.partition->json : NULL) &&
                             add(r, PREFIX "source.offset", offset.len ? offset.p : NULL)
                     ? 0
                     : -1;
        lc_buf_free(&offset);
        return rc;
}

/* In Java's order, behind the record's own: an own one of the same name stays. */
static int add_context(lc_record_t *r, const lc_letter_t *x, const lc_failure_t *f)
{
        const char *cls = f->err->cls ? f->err->cls : LC_CLS_CONNECT;
        char *trace;
        int rc;

        if (add_origin(r, x, f) || !add(r, PREFIX "connector.name", f->connector) ||
            !add_number(r, PREFIX "task.id", f->task) || !add(r, PREFIX "stage", lc_stage_name(f->stage)) ||
            !add(r, PREFIX "class.name", f->class_name) || !add(r, PREFIX "exception.class.name", cls) ||
            !add(r, PREFIX "exception.message", f->err->msg[0] ? f->err->msg : NULL))
                return -1;
        trace = lc_err_trace(f->err);
        rc = add(r, PREFIX "exception.stacktrace", trace) ? 0 : -1;
        free(trace);
        return rc;
}

static int add_headers(lc_record_t *r, lc_letter_t *x, const lc_letter_writer_t *w, const lc_failure_t *f,
                       bool context)
{
        const lc_record_t *from = f->record;
        lc_arena_t *arena = &r->batch->arena;
        size_t room = from->nheaders + (size_t)(context ? CONTEXT : 0);

        if (!room)
                return 0;
        r->headers = lc_arena_alloc(arena, room * sizeof(*r->headers));
        if (!r->headers)
                return -1;
        for (uint16_t i = 0; i < from->nheaders; i++) {
                const lc_header_t *h = &from->headers[i];
                lc_header_t *to = &r->headers[i];

                memset(to, 0, sizeof(*to));
                to->name = lc_arena_strdup(arena, h->name);
                if (!to->name ||
                    (w ? to_bytes(w->header, from, h->name, h->schema, &h->value, arena, &to->bytes)
                       : copy(arena, &h->bytes, &to->bytes)))
                        return -1;
        }
        r->nheaders = from->nheaders;
        /* a record with as many headers as there can be keeps them */
        x->context = context && room <= UINT16_MAX;
        return x->context ? add_context(r, x, f) : 0;
}

/* ---- letters ------------------------------------------------------------------------------------- */

static int fill(lc_letter_t *x, const char *topic, bool headers, const lc_letter_writer_t *w,
                const lc_failure_t *f)
{
        const lc_record_t *from = f->record;
        lc_record_t *r = lc_batch_add(x->b);
        lc_arena_t *arena = &x->b->arena;

        if (!r)
                return -1;
        r->topic = topic;
        r->timestamp = from->timestamp;
        if (f->sink) {
                x->topic = lc_arena_strdup(arena, from->u.snk.topic);
                x->partition = from->u.snk.partition;
                x->offset = from->u.snk.offset;
                if (!x->topic)
                        return -1;
        }
        if (w ? to_bytes(w->key, from, NULL, from->key_schema, &from->key, arena, &r->key_bytes) ||
                            to_bytes(w->value, from, NULL, from->value_schema, &from->value, arena,
                                     &r->value_bytes)
              : copy(arena, &from->key_bytes, &r->key_bytes) ||
                            copy(arena, &from->value_bytes, &r->value_bytes))
                return -1;
        return add_headers(r, x, w, f, headers);
}

lc_letter_t *lc_letter_new(const char *topic, bool headers, const lc_letter_writer_t *w,
                           const lc_failure_t *f)
{
        lc_letter_t *x = lc_calloc(1, sizeof(*x));

        x->b = lc_batch_new(1);
        x->of = f->record->batch;
        x->stage = f->stage;
        x->offset = -1;
        if (!x->b || fill(x, topic, headers, w, f)) {
                lc_letter_free(x);
                return NULL;
        }
        x->b->on_free_arg = x; /* nothing is called: only to find the way back from a report */
        return x;
}

void lc_letter_free(lc_letter_t *x)
{
        lc_batch_unref(x->b);
        free(x);
}

lc_letter_t *lc_letter_of(const lc_batch_t *b)
{
        return b->on_free_arg;
}

bool lc_letter_shorten(lc_letter_t *x)
{
        lc_record_t *r = &x->b->records[0];

        if (x->shortened || !x->context ||
            strcmp(r->headers[r->nheaders - 1].name, PREFIX "exception.stacktrace") != 0)
                return false;
        x->shortened = true;
        r->nheaders--;
        return true;
}

void lc_letter_describe(const lc_letter_t *x, lc_err_t *err)
{
        size_t used = strlen(err->detail);

        if (x->topic)
                snprintf(err->detail + used, sizeof(err->detail) - used,
                         "\tat topic %.249s, partition %" PRId32 ", offset %" PRId64 "\n", x->topic,
                         x->partition, x->offset);
}
