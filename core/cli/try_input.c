/* try_input.c - see try_input.h. */
#include "cli/try_input.h"
#include "base/alloc.h"
#include "cli/try_output.h"
#include "convert/classes.h"
#include "convert/json_data.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, MOST_RECORDS = 1000 };

/* ---- values ------------------------------------------------------------------------------------- */

static bool is_key(const lc_json_t *node, const char *name)
{
        return node->key_len == strlen(name) && !memcmp(node->key, name, node->key_len);
}

/* A JsonConverter envelope and nothing else: two members, and the schema is one (or null). */
static bool is_envelope(const lc_json_t *doc)
{
        const lc_json_t *schema = NULL, *payload = NULL;

        if (doc->type != LC_J_OBJECT || doc->len != 2)
                return false;
        for (const lc_json_t *m = doc->child; m; m = m->next) {
                if (is_key(m, "schema"))
                        schema = m;
                else if (is_key(m, "payload"))
                        payload = m;
        }
        if (!schema || !payload)
                return false;
        if (schema->type == LC_J_NULL)
                return true;
        if (schema->type != LC_J_OBJECT)
                return false;
        for (const lc_json_t *m = schema->child; m; m = m->next)
                if (is_key(m, "type"))
                        return m->type == LC_J_STRING;
        return false;
}

/* Transforms keep plans per schema, so a run of equal schemas is one object. */
static int read_schema(lc_try_input_t *in, const lc_json_t *node, const lc_schema_t **schema, lc_err_t *err)
{
        lc_buf_t text = LC_BUF_INIT;

        lc_json_write(&text, node);
        if (in->schema && text.len == in->schema_text.len && !memcmp(text.p, in->schema_text.p, text.len)) {
                lc_buf_free(&text);
                *schema = in->schema;
                return 0;
        }
        lc_schema_unref(in->schema);
        in->schema = NULL;
        lc_buf_free(&in->schema_text);
        in->schema_text = text;
        if (lc_json_read_schema(&lc_try_json, node, &in->schema, err))
                return -1;
        *schema = in->schema;
        return 0;
}

/* A JSON document, or an envelope, as schema and value in the batch. */
static int read_data(lc_try_input_t *in, lc_batch_t *b, const lc_json_t *node, const lc_schema_t **schema,
                     lc_value_t *value, lc_err_t *err)
{
        *schema = NULL;
        if (!in->schemaless && is_envelope(node)) {
                const lc_json_t *payload = lc_json_get(node, "payload");
                const lc_json_t *s = lc_json_get(node, "schema");
                if (s->type != LC_J_NULL && read_schema(in, s, schema, err))
                        return -1;
                if (*schema && lc_batch_hold_schema(b, *schema))
                        return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory");
                return lc_json_read_value(&lc_try_json, *schema, payload, &b->arena, value, err);
        }
        return lc_json_read_value(&lc_try_json, NULL, node, &b->arena, value, err);
}

static int parse(lc_try_input_t *in, lc_batch_t *b, const char *text, size_t len, lc_json_t **root,
                 lc_err_t *err)
{
        lc_json_input_t input = {
                .text = text, .len = len, .flags = LC_JSON_BORROW, .nodes = &in->nodes, .texts = &b->arena};

        return lc_json_parse_document(&input, NULL, root, err);
}

static void set_text(const lc_schema_t **schema, lc_value_t *value, const char *s, size_t n)
{
        *schema = &lc_schema_optional_string;
        *value = lc_value_string(s, n);
}

static int set_key(lc_try_input_t *in, lc_batch_t *b, lc_record_t *r, lc_err_t *err)
{
        size_t n;
        const char *text;
        lc_json_t *root;
        lc_err_t ignored = {0};

        if (!in->key)
                return 0;
        n = strlen(in->key);
        text = lc_arena_dup(&b->arena, in->key, n);
        if (in->raw || parse(in, b, text, n, &root, &ignored) || !root)
                set_text(&r->key_schema, &r->key, text, n);
        else
                return read_data(in, b, root, &r->key_schema, &r->key, err);
        return 0;
}

static int set_headers(lc_try_input_t *in, lc_batch_t *b, lc_record_t *r, lc_err_t *err)
{
        if (!in->headers.n)
                return 0;
        if (!in->simple) {
                lc_props_t *none = lc_props_new();
                in->simple = lc_simple_header_converter_class.create(&lc_simple_header_converter_class, none,
                                                                     "header", err);
                lc_props_free(none);
                if (!in->simple)
                        return -1;
        }
        r->headers = lc_arena_alloc(&b->arena, in->headers.n * sizeof(*r->headers));
        if (!r->headers)
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory");
        for (size_t i = 0; i < in->headers.n; i++) {
                const char *eq = strchr(in->headers.v[i], '=');
                lc_header_t *h = &r->headers[i];
                *h = (lc_header_t){
                        .name = lc_arena_dup(&b->arena, in->headers.v[i], (size_t)(eq - in->headers.v[i]))};
                h->bytes = (lc_slice_t){lc_arena_strdup(&b->arena, eq + 1), strlen(eq + 1)};
                if (in->simple->cls->to_connect(in->simple, r->topic, h->name, h->bytes, &b->arena,
                                                &h->schema, &h->value, err) ||
                    (h->schema && lc_batch_hold_schema(b, h->schema)))
                        return -1;
        }
        r->nheaders = (uint16_t)in->headers.n;
        return 0;
}

/* ---- whole records: what --full prints --------------------------------------------------------- */

static int wrong_member(const char *name, const char *want, lc_err_t *err)
{
        return lc_err_set(err, LC_DATA, 0, "--records: '%s' must be %s", name, want);
}

static int read_headers(lc_try_input_t *in, lc_batch_t *b, lc_record_t *r, const lc_json_t *list,
                        lc_err_t *err)
{
        size_t n = 0;

        if (list->type == LC_J_NULL)
                return 0;
        if (list->type != LC_J_ARRAY || list->len > UINT16_MAX)
                return wrong_member("headers", "a list of {\"name\":..,\"value\":..}", err);
        r->headers = lc_arena_alloc(&b->arena, (list->len ? list->len : 1) * sizeof(*r->headers));
        for (const lc_json_t *h = list->child; h && r->headers; h = h->next) {
                const lc_json_t *name = h->type == LC_J_OBJECT ? lc_json_get(h, "name") : NULL;
                const lc_json_t *value = h->type == LC_J_OBJECT ? lc_json_get(h, "value") : NULL;
                lc_header_t *to = &r->headers[n];
                memset(to, 0, sizeof(*to));
                if (!name || name->type != LC_J_STRING || memchr(name->s, 0, name->len))
                        return wrong_member("headers", "a list of {\"name\":..,\"value\":..}", err);
                to->name = lc_arena_dup(&b->arena, name->s, name->len);
                if (value && read_data(in, b, value, &to->schema, &to->value, err))
                        return -1;
                n++;
        }
        r->nheaders = (uint16_t)n;
        return 0;
}

static int read_number(const lc_json_t *m, const char *name, int64_t *out, lc_err_t *err)
{
        bool exact = false;

        if (m->type == LC_J_NULL)
                return 0;
        if (m->type == LC_J_NUMBER && m->integral)
                *out = lc_json_int64(m, &exact);
        return exact && *out >= 0 ? 0 : wrong_member(name, "a whole number or null", err);
}

static int read_record(lc_try_input_t *in, lc_batch_t *b, lc_record_t *r, const lc_json_t *doc, lc_err_t *err)
{
        if (doc->type != LC_J_OBJECT)
                return lc_err_set(err, LC_DATA, 0,
                                  "--records: a line is {\"topic\":..,\"key\":..,\"value\":..,...}");
        for (const lc_json_t *m = doc->child; m; m = m->next) {
                int64_t partition = -1;
                int rc = 0;
                if (is_key(m, "topic")) {
                        if (m->type != LC_J_STRING || !m->len || memchr(m->s, 0, m->len))
                                return wrong_member("topic", "a text", err);
                        r->topic = lc_arena_dup(&b->arena, m->s, m->len);
                } else if (is_key(m, "key")) {
                        rc = read_data(in, b, m, &r->key_schema, &r->key, err);
                } else if (is_key(m, "value")) {
                        rc = read_data(in, b, m, &r->value_schema, &r->value, err);
                } else if (is_key(m, "timestamp")) {
                        rc = read_number(m, "timestamp", &r->timestamp, err);
                } else if (is_key(m, "partition")) {
                        rc = read_number(m, "partition", &partition, err);
                        if (partition > INT32_MAX)
                                return wrong_member("partition", "a whole number or null", err);
                        r->partition = (int32_t)partition;
                } else if (is_key(m, "headers")) {
                        rc = read_headers(in, b, r, m, err);
                } else if (!is_key(m, "offset") && !is_key(m, "source_partition") &&
                           !is_key(m, "source_offset")) {
                        return lc_err_set(err, LC_DATA, 0, "--records: a record has no member '%.*s'",
                                          (int)m->key_len, m->key);
                }
                if (rc)
                        return -1;
        }
        return 0;
}

/* ---- lines -------------------------------------------------------------------------------------- */

static int read_line(lc_try_input_t *in, lc_batch_t *b, lc_record_t *r, const char *line, size_t n,
                     lc_err_t *err)
{
        const char *text = lc_arena_dup(&b->arena, line, n);
        lc_json_t *root;

        if (!text)
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory");
        r->topic = in->topic;
        if (!in->records && (set_key(in, b, r, err) || set_headers(in, b, r, err)))
                return -1;
        if (in->raw) {
                set_text(&r->value_schema, &r->value, text, n);
                return 0;
        }
        if (parse(in, b, text, n, &root, err))
                return -1;
        if (!root)
                return lc_err_set(err, LC_DATA, 0, "no JSON");
        return in->records ? read_record(in, b, r, root, err)
                           : read_data(in, b, root, &r->value_schema, &r->value, err);
}

static bool is_blank(const char *s, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r')
                        return false;
        return true;
}

static void place(lc_try_input_t *in, lc_record_t *r)
{
        if (in->sink) {
                r->partition = r->partition < 0 ? 0 : r->partition;
                r->u.snk.topic = r->topic;
                r->u.snk.partition = r->partition;
                r->u.snk.offset = (int64_t)in->line - 1;
        }
}

/* One line without its end. */
static int take_line(lc_try_input_t *in, lc_batch_t *b, const char *line, size_t n, lc_err_t *err)
{
        lc_record_t *r;
        lc_err_t why;

        in->line++;
        if (in->raw && n && line[n - 1] == '\r')
                n--;
        if (!in->raw && is_blank(line, n))
                return 0;
        r = lc_batch_add(b);
        if (!r)
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory");
        lc_err_clear(&why);
        lc_arena_reset(&in->nodes);
        if (read_line(in, b, r, line, n, &why)) {
                b->n--;
                in->bad(in->arg, in->line, &why);
                return 0;
        }
        place(in, r);
        in->lines[b->n - 1] = in->line;
        return 0;
}

static bool is_ready(int fd)
{
        struct pollfd p = {.fd = fd, .events = POLLIN};

        return poll(&p, 1, 0) != 0; /* an error is read's to tell */
}

/* More bytes into buf: what was given out goes first. 0 with eof set when there are none. */
static int fill(lc_try_input_t *in, lc_err_t *err)
{
        if (in->at) {
                memmove(in->buf.p, in->buf.p + in->at, in->buf.len - in->at);
                in->buf.len -= in->at;
                in->at = 0;
        }
        if (in->buf.len > LC_TRY_LONGEST && !in->skipping) {
                lc_err_t why = {0};
                lc_err_set(&why, LC_DATA, 0, "line longer than %d MiB", (int)LC_TRY_LONGEST >> 20);
                in->bad(in->arg, in->line + 1, &why);
                in->skipping = true;
        }
        if (in->skipping) {
                in->buf.len = 0;
                in->scanned = 0;
        }
        in->waiting = in->no_wait && !is_ready(in->fd);
        if (in->waiting)
                return 0;
        if (lc_buf_reserve(&in->buf, CHUNK))
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory");
        for (;;) {
                ssize_t n;
                n = read(in->fd, in->buf.p + in->buf.len, CHUNK);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return lc_err_set(err, LC_FATAL, errno, "cannot read %s: %s", in->name,
                                          strerror(errno));
                in->eof = n == 0;
                in->buf.len += (size_t)n;
                return 0;
        }
}

/* Complete lines of buf into the batch; at the end of the input the last one, too. */
static int take_lines(lc_try_input_t *in, lc_batch_t *b, lc_err_t *err)
{
        while (in->at < in->buf.len && b->n < MOST_RECORDS) {
                const char *line = in->buf.p + in->at;
                size_t left = in->buf.len - in->at;
                const char *end =
                        left > in->scanned ? memchr(line + in->scanned, '\n', left - in->scanned) : NULL;
                size_t n = end ? (size_t)(end - line) : left;
                if (!end && !in->eof) {
                        in->scanned = left;
                        break;
                }
                in->scanned = 0;
                in->at += n + (end != NULL);
                if (in->skipping) {
                        in->skipping = false;
                        in->line++;
                } else if (take_line(in, b, line, n, err)) {
                        return -1;
                }
        }
        return 0;
}

int lc_try_input_read(lc_try_input_t *in, lc_batch_t **batch, lc_err_t *err)
{
        lc_batch_t *b;

        *batch = NULL;
        if (!in->lines) {
                in->lines = lc_calloc(MOST_RECORDS, sizeof(*in->lines));
                lc_arena_init(&in->nodes);
        }
        b = lc_batch_new(64);
        if (!b)
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory");
        for (;;) {
                if (take_lines(in, b, err))
                        goto fail;
                if (b->n)
                        break;
                if (in->eof && in->at >= in->buf.len) {
                        lc_batch_unref(b);
                        return 0;
                }
                if (!in->eof && fill(in, err))
                        goto fail;
                if (in->waiting) {
                        lc_batch_unref(b);
                        return 0;
                }
        }
        *batch = b;
        return 0;
fail:
        lc_batch_unref(b);
        return -1;
}

void lc_try_input_free(lc_try_input_t *in)
{
        if (in->simple)
                in->simple->cls->destroy(in->simple);
        lc_schema_unref(in->schema);
        lc_buf_free(&in->schema_text);
        lc_buf_free(&in->buf);
        if (in->lines)
                lc_arena_free(&in->nodes);
        free(in->lines);
        lc_strv_free(&in->headers);
}
