/*
 * json_converter.c - org.apache.kafka.connect.json.JsonConverter (reference converters 3).
 *
 * The hot paths are one schema for record after record: the envelope's text is kept by schema pointer when
 * writing, and by its bytes when reading, so that only the payload is written or read.
 *
 * Threads:   an instance belongs to one task.
 * Ownership: output lies in the caller's arena. Schemas read are held by the cache; those pushed out of
 *            it stay for another RETIRED schemas.
 * Tests:     spec/golden/converters_spec.lua; bench/convert_bench.lua
 */
#include "base/alloc.h"
#include "config/def.h"
#include "convert/classes.h"
#include "convert/json_data.h"
#include "convert/text.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
        RETIRED = 4096,
        WRITE_SLOTS = 64,
        FEW_PREFIXES = 16,
        MAX_PREFIX = 64 * 1024,
        KEPT_BUFFER = 1024 * 1024
};

typedef struct written { /* envelope text of a schema: {"schema":{...},"payload": */
        const lc_schema_t *schema;
        char *text;
        size_t len;
} written_t;

typedef struct seen { /* a schema read, by its compact JSON */
        const lc_schema_t *schema;
        char *text;
        size_t len;
        uint32_t hash;
        uint64_t used;
} seen_t;

typedef struct prefix { /* envelope bytes as some producer writes them, up to the payload */
        char *text;
        size_t len;
        const lc_schema_t *schema; /* held by `seen` or retired */
} prefix_t;

typedef struct json_converter {
        lc_converter_t base;
        lc_json_options_t options;
        bool schemas;
        int cache_size;
        const lc_schema_t *fixed; /* schema.content */
        written_t last, slots[WRITE_SLOTS];
        seen_t *cache;
        int ncache;
        uint64_t clock;
        prefix_t prefixes[FEW_PREFIXES];
        int nprefixes, next_prefix;
        const lc_schema_t **retired; /* RETIRED of them, NULL: none yet */
        int next_retired;
        lc_buf_t buf;     /* what is being written */
        lc_arena_t nodes; /* the document being read */
} json_converter_t;

#define NEEDS_ENVELOPE                                                                                       \
        "JsonConverter with schemas.enable requires \"schema\" and \"payload\" fields and may not contain "  \
        "additional "                                                                                        \
        "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your "        \
        "converter "                                                                                         \
        "configuration."

static int no_memory(lc_err_t *err)
{
        return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory while converting a record");
}

/* ---- writing ---- */

static void drop_written(written_t *w)
{
        lc_schema_unref(w->schema);
        free(w->text);
        memset(w, 0, sizeof(*w));
}

/* Moves the schema's envelope into cv->last; what was there goes to its slot. */
static int find_written(json_converter_t *cv, const lc_schema_t *schema, lc_err_t *err)
{
        written_t *slot = &cv->slots[((size_t)schema >> 6) % WRITE_SLOTS], hold;

        if (cv->last.schema) {
                written_t *old = &cv->slots[((size_t)cv->last.schema >> 6) % WRITE_SLOTS];

                hold = *old;
                *old = cv->last;
                memset(&cv->last, 0, sizeof(cv->last));
                if (hold.schema == schema) { /* both belong to one slot: swapped */
                        cv->last = hold;
                        return 0;
                }
                drop_written(&hold);
        }
        if (slot->schema == schema) {
                cv->last = *slot;
                memset(slot, 0, sizeof(*slot));
                return 0;
        }
        lc_buf_clear(&cv->buf);
        lc_buf_adds(&cv->buf, "{\"schema\":");
        if (lc_json_write_schema(&cv->options, schema, &cv->buf, err) < 0)
                return -1;
        lc_buf_adds(&cv->buf, ",\"payload\":");
        if (!lc_buf_ok(&cv->buf) || !(cv->last.text = malloc(cv->buf.len + 1)))
                return no_memory(err);
        memcpy(cv->last.text, cv->buf.p, cv->buf.len + 1);
        cv->last.len = cv->buf.len;
        cv->last.schema = lc_schema_ref(schema);
        return 0;
}

/* `before` + quoted string + `after` straight into the arena. */
static int write_string(lc_arena_t *arena, const char *before, size_t nbefore, const lc_value_t *v,
                        bool close, lc_slice_t *out, lc_err_t *err)
{
        size_t room =
                v->len <= 4096 ? lc_json_escaped_max(v->len) : lc_json_escaped_size(v->u.s, v->len) + 16;
        char *to = lc_arena_room(arena, nbefore + room + 4), *at;

        if (!to)
                return no_memory(err);
        memcpy(to, before, nbefore);
        at = to + nbefore;
        *at++ = '"';
        at = lc_json_escape(at, v->u.s, v->len);
        *at++ = '"';
        if (close)
                *at++ = '}';
        out->p = to;
        out->len = (size_t)(at - to);
        lc_arena_commit(arena, out->len);
        return 0;
}

static const char no_schema[] = "{\"schema\":null,\"payload\":";

static int from_connect(lc_converter_t *base, const char *topic, const char *header,
                        const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                        lc_slice_t *out, lc_err_t *err)
{
        json_converter_t *cv = (json_converter_t *)base;
        const char *before = "";
        size_t nbefore = 0;
        char *copy;

        (void)topic;
        (void)header;
        if (!schema && value->type == LC_NULL) {
                *out = (lc_slice_t){NULL, 0};
                return 0;
        }
        if (cv->schemas && schema) {
                if (schema != cv->last.schema && find_written(cv, schema, err) < 0)
                        return -1;
                before = cv->last.text;
                nbefore = cv->last.len;
        } else if (cv->schemas) {
                before = no_schema;
                nbefore = sizeof(no_schema) - 1;
        }
        if (value->type == LC_STRING && (!schema || (schema->type == LC_STRING && !schema->logical)))
                return write_string(arena, before, nbefore, value, cv->schemas, out, err);
        lc_buf_clear(&cv->buf);
        lc_buf_add(&cv->buf, before, nbefore);
        if (lc_json_write_value(&cv->options, schema, value, &cv->buf, err) < 0)
                return -1;
        if (cv->schemas)
                lc_buf_addc(&cv->buf, '}');
        if (!lc_buf_ok(&cv->buf) || !(copy = lc_arena_room(arena, cv->buf.len))) {
                lc_buf_free(&cv->buf);
                return no_memory(err);
        }
        memcpy(copy, cv->buf.p, cv->buf.len);
        lc_arena_commit(arena, cv->buf.len);
        *out = (lc_slice_t){copy, cv->buf.len};
        if (cv->buf.cap > KEPT_BUFFER) /* one huge record must not stay for ever */
                lc_buf_free(&cv->buf);
        return 0;
}

/* ---- reading ---- */

/* Keep a schema that left the cache for a while: values of the current batch may still point to it. */
static void retire(json_converter_t *cv, const lc_schema_t *s)
{
        const lc_schema_t *old;

        if (!cv->retired) /* most converters never need it: one per task and side, 32 KiB */
                cv->retired = lc_calloc(RETIRED, sizeof(*cv->retired));
        old = cv->retired[cv->next_retired];
        for (int i = 0; old && i < cv->nprefixes; i++)
                if (cv->prefixes[i].schema == old) { /* must not outlive it */
                        free(cv->prefixes[i].text);
                        cv->prefixes[i--] = cv->prefixes[--cv->nprefixes];
                }
        if (cv->next_prefix >= cv->nprefixes)
                cv->next_prefix = 0;
        lc_schema_unref(old);
        cv->retired[cv->next_retired] = s;
        cv->next_retired = (cv->next_retired + 1) % RETIRED;
}

static uint32_t hash_text(const char *s, size_t n)
{
        uint32_t h = 2166136261u;

        for (size_t i = 0; i < n; i++)
                h = (h ^ (unsigned char)s[i]) * 16777619u;
        return h;
}

static int keep_seen(json_converter_t *cv, const lc_schema_t *schema, uint32_t hash, lc_err_t *err)
{
        seen_t *at;
        char *text;

        if (cv->cache_size <= 0) {
                retire(cv, schema);
                return 0;
        }
        text = malloc(cv->buf.len + 1);
        if (!text) {
                lc_schema_unref(schema);
                return no_memory(err);
        }
        memcpy(text, cv->buf.p, cv->buf.len);
        if (cv->ncache < cv->cache_size) {
                if ((cv->ncache & (cv->ncache - 1)) == 0)
                        cv->cache = lc_realloc(cv->cache,
                                               (size_t)(cv->ncache ? cv->ncache * 2 : 1) * sizeof(*at));
                at = &cv->cache[cv->ncache++];
        } else {
                at = &cv->cache[0];
                for (int i = 1; i < cv->ncache; i++)
                        if (cv->cache[i].used < at->used)
                                at = &cv->cache[i];
                free(at->text);
                retire(cv, at->schema);
        }
        *at = (seen_t){schema, text, cv->buf.len, hash, ++cv->clock};
        return 0;
}

/* The schema of a JSON node, from the cache if it was read before. */
static int find_schema(json_converter_t *cv, const lc_json_t *node, const lc_schema_t **out, lc_err_t *err)
{
        uint32_t hash;

        *out = NULL;
        if (node->type == LC_J_NULL)
                return 0;
        lc_buf_clear(&cv->buf);
        lc_json_write(&cv->buf, node);
        if (!lc_buf_ok(&cv->buf)) {
                lc_buf_free(&cv->buf);
                return no_memory(err);
        }
        hash = hash_text(cv->buf.p, cv->buf.len);
        for (int i = 0; i < cv->ncache; i++) {
                seen_t *s = &cv->cache[i];

                if (s->hash == hash && s->len == cv->buf.len && !memcmp(s->text, cv->buf.p, s->len)) {
                        s->used = ++cv->clock;
                        *out = s->schema;
                        return 0;
                }
        }
        if (lc_json_read_schema(&cv->options, node, out, err) < 0)
                return -1;
        return keep_seen(cv, *out, hash, err);
}

static int bad_json(lc_err_t *err, const char *outer)
{
        if (err && err->kind == LC_DATA) {
                char cause[sizeof(err->msg)];

                memcpy(cause, err->msg, sizeof(cause));
                lc_err_wrap(err, LC_CLS_SERIALIZATION, "%s: %s", err->cls, cause);
                lc_err_wrap(err, LC_CLS_DATA, "%s", outer);
        }
        return -1;
}

#define BAD_BYTES "Converting byte[] to Kafka Connect data failed due to serialization error: "

/* Remember the bytes before the payload when the document is {"schema":S,"payload":P in this order. */
static void keep_prefix(json_converter_t *cv, lc_slice_t in, const lc_json_t *root, const lc_schema_t *schema)
{
        const lc_json_t *payload = root->child->next;
        size_t len = (size_t)((uintptr_t)payload->at - (uintptr_t)in.p); /* huge if decoded from UTF-16 */
        prefix_t *p;
        char *text;

        if (!schema || memcmp(root->child->key, "schema", 6) != 0 || len > in.len || len > MAX_PREFIX ||
            !(text = malloc(len)))
                return;
        memcpy(text, in.p, len);
        if (cv->nprefixes < FEW_PREFIXES) {
                p = &cv->prefixes[cv->nprefixes++];
        } else {
                p = &cv->prefixes[cv->next_prefix];
                cv->next_prefix = (cv->next_prefix + 1) % FEW_PREFIXES;
                free(p->text);
        }
        *p = (prefix_t){text, len, schema};
}

/* A whole string payload without escapes: a slice of the input. */
static bool plain_string(const char *p, const char *end, lc_value_t *value)
{
        const char *from = ++p;
        bool high = false;

        p = lc_json_scan(p, end, &high);
        if (end - p < 2 || *p != '"' || p[1] != '}' || (high && !lc_utf8_valid(from, (size_t)(p - from))))
                return false;
        *value = lc_value_string(from, (size_t)(p - from));
        return true;
}

/* 1 when the envelope was one of those known, 0 to try the long way (which also finds the errors), -1 error.
 */
static int known_envelope(json_converter_t *cv, lc_slice_t in, lc_arena_t *arena, const lc_schema_t **schema,
                          lc_value_t *value, lc_err_t *err)
{
        const char *end = in.p + in.len, *at;
        lc_json_input_t json;
        lc_json_t payload;

        for (int i = 0; i < cv->nprefixes; i++) {
                prefix_t p = cv->prefixes[i];

                if (in.len < p.len + 2 || memcmp(in.p, p.text, p.len) != 0)
                        continue;
                if (i > 0) { /* most recent first */
                        cv->prefixes[i] = cv->prefixes[0];
                        cv->prefixes[0] = p;
                }
                at = in.p + p.len;
                *schema = p.schema;
                if (*at == '"' && p.schema->type == LC_STRING && !p.schema->logical &&
                    plain_string(at, end, value))
                        return 1;
                json = (lc_json_input_t){at, in.len - p.len, LC_JSON_LENIENT | LC_JSON_BORROW, &cv->nodes,
                                         arena};
                if (lc_json_parse_member(&json, &payload, &at, NULL) < 0 || at >= end || *at != '}')
                        return 0;
                return lc_json_read_value(&cv->options, p.schema, &payload, arena, value, err) < 0 ? -1 : 1;
        }
        return 0;
}

static int read_document(json_converter_t *cv, lc_slice_t in, lc_arena_t *arena, const lc_schema_t **schema,
                         lc_value_t *value, lc_err_t *err)
{
        lc_json_input_t json = {in.p, in.len, LC_JSON_LENIENT | LC_JSON_BORROW, &cv->nodes, arena};
        lc_json_t space, *root, missing = {.type = LC_J_MISSING};
        const lc_json_t *s, *payload;

        if (lc_json_parse_document(&json, &space, &root, err) < 0)
                return bad_json(err, BAD_BYTES);
        if (!cv->schemas) {
                if (!root)
                        return 0;
                return lc_json_read_value(&cv->options, NULL, root, arena, value, err);
        }
        if (cv->fixed) {
                *schema = cv->fixed;
                return lc_json_read_value(&cv->options, cv->fixed, root ? root : &missing, arena, value, err);
        }
        if (!root || root->type != LC_J_OBJECT || root->len != 2 || !(s = lc_json_get(root, "schema")) ||
            !(payload = lc_json_get(root, "payload")))
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, NEEDS_ENVELOPE);
        if (find_schema(cv, s, schema, err) < 0)
                return -1;
        keep_prefix(cv, in, root, *schema);
        return lc_json_read_value(&cv->options, *schema, payload, arena, value, err);
}

static int to_connect(lc_converter_t *base, const char *topic, const char *header, lc_slice_t in,
                      lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err)
{
        json_converter_t *cv = (json_converter_t *)base;
        int rc = 0;

        (void)topic;
        (void)header;
        *schema = NULL;
        *value = lc_value_null();
        if (!in.p)
                return 0;
        if (cv->nprefixes)
                rc = known_envelope(cv, in, arena, schema, value, err);
        if (rc == 0) {
                *schema = NULL;
                *value = lc_value_null();
                rc = read_document(cv, in, arena, schema, value, err);
        }
        if (cv->nodes.at)
                lc_arena_reset(&cv->nodes);
        return rc < 0 ? -1 : 0;
}

/* ---- instances ---- */

static void destroy(lc_converter_t *base)
{
        json_converter_t *cv = (json_converter_t *)base;

        drop_written(&cv->last);
        for (int i = 0; i < WRITE_SLOTS; i++)
                drop_written(&cv->slots[i]);
        for (int i = 0; i < cv->nprefixes; i++)
                free(cv->prefixes[i].text);
        for (int i = 0; i < cv->ncache; i++) {
                lc_schema_unref(cv->cache[i].schema);
                free(cv->cache[i].text);
        }
        for (int i = 0; cv->retired && i < RETIRED; i++)
                lc_schema_unref(cv->retired[i]);
        free(cv->retired);
        lc_schema_unref(cv->fixed);
        free(cv->cache);
        lc_buf_free(&cv->buf);
        lc_arena_free(&cv->nodes);
        free(cv);
}

#define BAD_CONTENT "Failed to parse schema in converter config due to serialization error: "

/* schema.content: read at once, also when schemas.enable=false. */
static int read_content(json_converter_t *cv, const char *text, lc_err_t *err)
{
        lc_json_t *doc;
        int rc;

        if (lc_json_parse(text, strlen(text), LC_JSON_LENIENT, &doc, err) < 0)
                return bad_json(err, BAD_CONTENT);
        if (!doc)
                return 0;
        rc = lc_json_read_schema(&cv->options, doc, &cv->fixed, err);
        lc_json_free(doc);
        return rc;
}

static lc_converter_t *create(const lc_converter_class_t *cls, const lc_props_t *config, const char *role,
                              lc_err_t *err)
{
        json_converter_t *cv = lc_calloc(1, sizeof(*cv));
        lc_props_t *values = lc_converter_config(cls, config, err);
        const char *content;
        int rc;

        cv->base.cls = cls;
        lc_arena_init(&cv->nodes);
        if (!values) {
                destroy(&cv->base);
                return NULL;
        }
        cv->schemas = !strcmp(lc_props_get_or(values, "schemas.enable", "true"), "true");
        cv->cache_size = atoi(lc_props_get_or(values, "schemas.cache.size", "1000"));
        cv->options.numeric_decimal =
                !strcasecmp(lc_props_get_or(values, "decimal.format", "BASE64"), "NUMERIC");
        cv->options.replace_null_with_default =
                !strcmp(lc_props_get_or(values, "replace.null.with.default", "true"), "true");
        cv->options.hash_order = role && !strcmp(role, "key");
        content = lc_props_get(values, "schema.content");
        rc = content && *content ? read_content(cv, content, err) : 0;
        lc_props_free(values);
        if (rc < 0) {
                if (err)
                        err->kind = LC_FATAL;
                destroy(&cv->base);
                return NULL;
        }
        return &cv->base;
}

static const char *const decimal_formats[] = {"NUMERIC", "BASE64", NULL};

static const lc_config_row_t rows[] = {
        LC_CONVERTER_TYPE_ROW,
        {.name = "schemas.enable",
         .type = LC_CFG_BOOLEAN,
         .def = "true",
         .importance = LC_HIGH,
         .group = "Schemas",
         .order = 0,
         .width = LC_WIDTH_MEDIUM,
         .display = "Enable Schemas",
         .doc = "Include schemas within each of the serialized values and keys."},
        {.name = "schemas.cache.size",
         .type = LC_CFG_INT,
         .def = "1000",
         .importance = LC_HIGH,
         .group = "Schemas",
         .order = 1,
         .width = LC_WIDTH_MEDIUM,
         .display = "Schema Cache Size",
         .doc = "The maximum number of schemas that can be cached in this converter instance."},
        {.name = "schema.content",
         .type = LC_CFG_STRING,
         .importance = LC_HIGH,
         .group = "Schemas",
         .order = 2,
         .width = LC_WIDTH_MEDIUM,
         .display = "Schema Content",
         .doc = "When set, this is used as the schema for all messages, and the schemas within each of the "
                "message "
                "will be ignored.Otherwise, the schema will be included in the content of each message. This "
                "configuration applies only 'schemas.enable' is true, and it exclusively affects the sink "
                "connector."},
        {.name = "decimal.format",
         .type = LC_CFG_STRING,
         .def = "BASE64",
         .importance = LC_LOW,
         .group = "Serialization",
         .order = 0,
         .width = LC_WIDTH_MEDIUM,
         .display = "Decimal Format",
         .check = lc_check_one_of_ci,
         .one_of = decimal_formats,
         .doc = "Controls which format this converter will serialize decimals in. This value is case "
                "insensitive and "
                "can be either 'BASE64' (default) or 'NUMERIC'"},
        {.name = "replace.null.with.default",
         .type = LC_CFG_BOOLEAN,
         .def = "true",
         .importance = LC_LOW,
         .group = "Serialization",
         .order = 1,
         .width = LC_WIDTH_MEDIUM,
         .display = "Replace null with default",
         .doc = "Whether to replace fields that have a default value and that are null to the default value. "
                "When set "
                "to true, the default value is used, otherwise null is used."},
};

const lc_converter_class_t lc_json_converter_class = {
        .class_name = "org.apache.kafka.connect.json.JsonConverter",
        .converter = true,
        .header_converter = true,
        .create = create,
        .destroy = destroy,
        .from_connect = from_connect,
        .to_connect = to_connect,
        .rows = rows,
        .nrows = sizeof(rows) / sizeof(rows[0]),
};
