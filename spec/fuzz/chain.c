/*
 * chain.c - fuzz target: random chains of the standard transforms and predicates over random records. The bytes
 * choose classes, settings, schemas and values; what comes out is validated and written by JsonConverter.
 */
#include "fuzz.h"
#include "convert/converter.h"
#include "data/decimal.h"
#include "data/schema_builder.h"
#include "data/validate.h"
#include "script/script.h"
#include <math.h>

enum { DEEP = 3, STAGES = 4, RECORDS = 3 };
#define PICK(f, list) (list)[fuzz_byte(f) % (sizeof(list) / sizeof(*(list)))]

static lc_plugins_t *plugins;
static lc_converter_t *json[2]; /* without and with schemas */

typedef struct gen {
        fuzz_t f;
        lc_arena_t *a;
} gen_t;

static const char *const names[] = {"id", "name", "a", "b", "a.b", "ts", "", "x`y", "\xc3\xa4", "topic"};
static const char *const classes[] = {
        "Cast$Key", "Cast$Value", "DropHeaders", "ExtractField$Key", "ExtractField$Value", "Filter",
        "Flatten$Key", "Flatten$Value", "HeaderFrom$Key", "HeaderFrom$Value", "HoistField$Key",
        "HoistField$Value", "InsertField$Key", "InsertField$Value", "InsertHeader", "MaskField$Key",
        "MaskField$Value", "RegexRouter", "ReplaceField$Key", "ReplaceField$Value", "SetSchemaMetadata$Key",
        "SetSchemaMetadata$Value", "TimestampConverter$Key", "TimestampConverter$Value", "TimestampRouter",
        "ValueToKey"};
/* Every setting of the classes: those a class does not know are ignored. */
static const char *const settings[] = {
        "spec", "headers", "field", "fields", "field.syntax.version", "delimiter", "operation",
        "replace.null.with.default", "topic.field", "partition.field", "offset.field", "timestamp.field",
        "static.field", "static.value", "header", "value.literal", "replacement", "regex", "exclude",
        "include", "renames", "schema.name", "schema.version", "target.type", "format", "unix.precision",
        "topic.format", "timestamp.format", "predicate", "negate"};
static const char *const texts[] = {
        "id", "name", "a", "b", "a,b", "id,name,ts", "a.b", "", ".", "V1", "V2", "move", "copy", "true",
        "false", "int8", "id:int8", "id:string,ts:int64", "a:float32,name:boolean", "string", "a:b",
        "id:name,name:id", "ts", "7", "-1", "unix", "Date", "Time", "Timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSS",
        "nanoseconds", "seconds", "microseconds", "(.*)", "$1-x", "t", "${topic}-${timestamp}", "p", "*", "x!",
        "y?", "1.5", "`a.b`.c", "[1,2]", "{\"k\":1}"};

static lc_props_t *config(fuzz_t *f)
{
        static const char *const aliases[] = {"t0", "t1", "t2", "t3"};
        static const char *const predicates[] = {"HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"};
        /* one that a class needs, so that most chains begin */
        static const char *const needed[][2] = {
                {"spec", "id:string"},    {"headers", "h"}, {"field", "id"},         {"fields", "id"},
                {"operation", "copy"},    {"header", "h"},  {"value.literal", "1"},  {"regex", "(.*)"},
                {"replacement", "$1"},    {"target.type", "string"}, {"format", "yyyy"}};
        lc_props_t *p = lc_props_new();
        int n = fuzz_byte(f) % STAGES + 1;
        lc_buf_t list = LC_BUF_INIT;

        for (int i = 0; i < n; i++) {
                const char *cls = PICK(f, classes);
                char *key = lc_asprintf("transforms.%s.type", aliases[i]);
                uint8_t bits = fuzz_byte(f);
                lc_buf_printf(&list, "%s%s", i ? "," : "", aliases[i]);
                lc_props_set(p, key, cls);
                free(key);
                for (size_t k = 0; k < sizeof(needed) / sizeof(*needed); k++) {
                        /* MaskField's replacement is another thing than RegexRouter's */
                        if (!strcmp(needed[k][0], "replacement") && strcmp(cls, "RegexRouter") != 0)
                                continue;
                        key = lc_asprintf("transforms.%s.%s", aliases[i], needed[k][0]);
                        lc_props_set(p, key, needed[k][1]);
                        free(key);
                }
                if (bits & 8) {
                        key = lc_asprintf("transforms.%s.predicate", aliases[i]);
                        lc_props_set(p, key, "p");
                        free(key);
                }
                for (int k = bits & 7; k > 0; k--) {
                        uint8_t text;
                        char *value;
                        key = lc_asprintf("transforms.%s.%s", aliases[i], PICK(f, settings));
                        text = fuzz_byte(f);
                        value = text < 250 ? lc_strdup(texts[text % (sizeof(texts) / sizeof(*texts))])
                                           : fuzz_text(f, 40);
                        lc_props_set(p, key, value);
                        free(value);
                        free(key);
                }
        }
        lc_props_set(p, "transforms", list.p);
        lc_props_set(p, "predicates", "p");
        lc_props_set(p, "predicates.p.type", PICK(f, predicates));
        lc_props_set(p, "predicates.p.name", "h");
        lc_props_set(p, "predicates.p.pattern", "t.*");
        lc_buf_free(&list);
        return p;
}

static const char *put(gen_t *g, const char *s, size_t n)
{
        const char *copy = lc_arena_dup(g->a, s, n);

        fuzz_check(copy != NULL, "out of memory");
        return copy;
}

static lc_value_t *items(gen_t *g, uint32_t n)
{
        lc_value_t *v = lc_arena_alloc(g->a, (n + 1) * sizeof(*v));

        fuzz_check(v != NULL, "out of memory");
        memset(v, 0, (n + 1) * sizeof(*v));
        return v;
}

static lc_value_t text_or_bytes(gen_t *g, lc_type_t type)
{
        size_t n;
        char *s = fuzz_bytes(&g->f, 40, &n);
        lc_value_t v = {.type = (uint8_t)type, .len = (uint32_t)n, .u.s = put(g, s, n)};

        free(s);
        return v;
}

static int64_t number(gen_t *g)
{
        static const int64_t edges[] = {0,          1,         -1,        127,       128,      -129,
                                        32768,      INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1LL << 53,
                                        86400000LL, 1483425001864LL};
        uint8_t c = fuzz_byte(&g->f);

        return c < 200 ? edges[c % (sizeof(edges) / sizeof(*edges))] : (int64_t)fuzz_int(&g->f, 8);
}

static lc_value_t scalar(gen_t *g, lc_type_t type, int32_t scale)
{
        lc_value_t v = {.type = (uint8_t)type};
        uint64_t bits;

        switch (type) {
        case LC_INT8:
                v.u.i = (int8_t)number(g);
                break;
        case LC_INT16:
                v.u.i = (int16_t)number(g);
                break;
        case LC_INT32:
                v.u.i = (int32_t)number(g);
                break;
        case LC_INT64:
        case LC_TIMESTAMP:
                v.u.i = number(g);
                break;
        case LC_DATE:
                v.u.i = (int64_t)(int32_t)number(g) * 86400000;
                break;
        case LC_TIME:
                v.u.i = (int64_t)((uint64_t)number(g) % 86400000);
                break;
        case LC_BOOLEAN:
                v.u.i = fuzz_byte(&g->f) & 1;
                break;
        case LC_FLOAT32:
                bits = fuzz_int(&g->f, 4);
                memcpy(&v.u.f32, &(uint32_t){(uint32_t)bits}, 4);
                if (isnan(v.u.f32)) /* there is one (data/value.h) */
                        v.u.f32 = NAN;
                break;
        case LC_FLOAT64:
                bits = fuzz_int(&g->f, 8);
                memcpy(&v.u.f, &bits, 8);
                if (isnan(v.u.f))
                        v.u.f = NAN;
                break;
        case LC_DECIMAL:
                v = text_or_bytes(g, LC_BYTES);
                v = lc_value_decimal(lc_decimal_from_bytes(g->a, v.u.s, v.len, scale));
                break;
        case LC_STRING:
        case LC_BYTES:
                v = text_or_bytes(g, type);
                break;
        default:
                v.type = LC_NULL;
        }
        return v;
}

static const lc_schema_t *schema_of(gen_t *g, int deep);

static void decorate(gen_t *g, lc_schema_builder_t *b, lc_type_t type)
{
        uint8_t bits = fuzz_byte(&g->f);

        lc_schema_builder_optional(b, bits & 1);
        if (bits & 2)
                lc_schema_builder_name(b, PICK(&g->f, names));
        if (bits & 4)
                lc_schema_builder_version(b, (int)number(g));
        if (bits & 8)
                lc_schema_builder_param(b, PICK(&g->f, names), PICK(&g->f, names));
        if (bits & 16)
                lc_schema_builder_doc(b, PICK(&g->f, names));
        if ((bits & 96) == 96 && type < LC_ARRAY) {
                lc_err_t err = {0};
                lc_value_t v = scalar(g, type, 0);
                lc_schema_builder_default(b, &v, &err);
        }
}

static const lc_schema_t *schema_of(gen_t *g, int deep)
{
        static const lc_type_t types[] = {LC_STRUCT,  LC_STRUCT, LC_ARRAY,   LC_MAP,     LC_INT8,
                                          LC_INT16,   LC_INT32,  LC_INT64,   LC_FLOAT32, LC_FLOAT64,
                                          LC_BOOLEAN, LC_STRING, LC_BYTES,   LC_DECIMAL, LC_DATE,
                                          LC_TIME,    LC_TIMESTAMP};
        lc_type_t type = PICK(&g->f, types);
        lc_schema_builder_t *b;
        lc_err_t err = {0};

        if (deep == 0 && type >= LC_ARRAY && type <= LC_STRUCT)
                type = LC_INT64;
        if (type >= LC_DECIMAL) {
                uint8_t bits = fuzz_byte(&g->f);
                return lc_schema_logical(type, bits >> 4, bits & 1);
        }
        b = lc_schema_builder_new(type);
        if (type == LC_STRUCT) {
                for (int n = fuzz_byte(&g->f) % 5; n > 0; n--) {
                        const char *name = PICK(&g->f, names);
                        const lc_schema_t *s = schema_of(g, deep - 1);
                        lc_schema_builder_field(b, name, s, &err); /* may be there already */
                        lc_schema_unref(s);
                }
        } else if (type == LC_ARRAY || type == LC_MAP) {
                const lc_schema_t *s = schema_of(g, deep - 1);
                lc_schema_builder_elem(b, s);
                lc_schema_unref(s);
                if (type == LC_MAP) {
                        s = schema_of(g, 0);
                        lc_schema_builder_key(b, s);
                        lc_schema_unref(s);
                }
        }
        decorate(g, b, type);
        return lc_schema_builder_finish(b);
}

static lc_value_t value_of(gen_t *g, const lc_schema_t *s)
{
        lc_value_t v = {.type = (uint8_t)(s->logical ? s->logical : s->type)};
        uint8_t bits = fuzz_byte(&g->f);

        if ((s->optional || s->has_default) && !(bits & 7))
                return lc_value_null();
        switch (v.type) {
        case LC_ARRAY:
        case LC_MAP:
                v.len = bits >> 4 & 3;
                v.u.items = items(g, 2 * v.len);
                for (uint32_t i = 0; i < v.len; i++) {
                        if (v.type == LC_ARRAY) {
                                v.u.items[i] = value_of(g, s->elem);
                                continue;
                        }
                        v.u.items[2 * i] = value_of(g, s->key);
                        v.u.items[2 * i + 1] = value_of(g, s->elem);
                }
                return v;
        case LC_STRUCT:
                v.u.st = lc_arena_alloc(g->a, sizeof(*v.u.st));
                *v.u.st = (lc_struct_value_t){.schema = s, .fields = items(g, s->nfields)};
                for (uint32_t i = 0; i < s->nfields; i++)
                        v.u.st->fields[i] = value_of(g, s->fields[i].schema);
                return v;
        default:
                return scalar(g, (lc_type_t)v.type, s->scale);
        }
}

static lc_value_t free_value(gen_t *g, int deep)
{
        static const lc_type_t types[] = {LC_MAP,   LC_MAP,    LC_ARRAY,   LC_NULL,  LC_INT64,
                                          LC_INT8,  LC_STRING, LC_FLOAT64, LC_BYTES, LC_BOOLEAN,
                                          LC_INT32, LC_DECIMAL, LC_TIMESTAMP};
        lc_value_t v = {.type = (uint8_t)PICK(&g->f, types)};

        if (v.type != LC_ARRAY && v.type != LC_MAP)
                return scalar(g, (lc_type_t)v.type, 2);
        v.len = deep > 0 ? fuzz_byte(&g->f) & 3 : 0;
        v.u.items = items(g, 2 * v.len);
        for (uint32_t i = 0; i < v.len; i++) {
                if (v.type == LC_MAP) {
                        uint8_t odd = fuzz_byte(&g->f);
                        const char *name = names[odd % (sizeof(names) / sizeof(*names))];
                        v.u.items[2 * i] =
                                odd > 240 ? free_value(g, deep - 1) : lc_value_string(name, strlen(name));
                        v.u.items[2 * i + 1] = free_value(g, deep - 1);
                } else {
                        v.u.items[i] = free_value(g, deep - 1);
                }
        }
        return v;
}

static const lc_schema_t *side(gen_t *g, lc_batch_t *batch, lc_value_t *v)
{
        uint8_t bits = fuzz_byte(&g->f);
        const lc_schema_t *s = bits & 1 ? schema_of(g, DEEP) : NULL;

        if (s) {
                lc_batch_hold_schema(batch, s);
                *v = value_of(g, s);
                lc_schema_unref(s);
        } else {
                *v = bits & 2 ? free_value(g, DEEP) : lc_value_null();
        }
        return s;
}

/* Where a record came from: another half of the union for a source than for a sink. */
static void place(gen_t *g, lc_batch_t *batch, lc_record_t *r, bool source)
{
        lc_source_partition_t *partition;

        if (!source) {
                r->u.snk.topic = r->topic;
                r->u.snk.offset = number(g);
                return;
        }
        r->u.src.offset = fuzz_byte(&g->f) & 1 ? lc_value_int64(number(g)) : free_value(g, 1);
        if (r->u.src.offset.type != LC_MAP && r->u.src.offset.type != LC_INT64)
                r->u.src.offset = lc_value_null();
        if (!(fuzz_byte(&g->f) & 1))
                return;
        partition = lc_source_partition_new("{\"filename\":\"f\"}", 16);
        lc_batch_hold_partition(batch, partition);
        lc_source_partition_unref(partition);
        r->u.src.partition = partition;
}

static lc_batch_t *batch_of(gen_t *g, bool source)
{
        lc_batch_t *batch = lc_batch_new(RECORDS);
        int n = fuzz_byte(&g->f) % RECORDS + 1;

        g->a = &batch->arena;
        batch->offset_field = "position";
        for (int i = 0; i < n; i++) {
                lc_record_t *r = lc_batch_add(batch);
                uint8_t bits = fuzz_byte(&g->f);
                r->topic = bits & 1 ? "t" : "other";
                r->timestamp = bits & 2 ? number(g) : -1;
                place(g, batch, r, source);
                r->key_schema = side(g, batch, &r->key);
                r->value_schema = side(g, batch, &r->value);
                r->nheaders = bits >> 4 & 3;
                r->headers = lc_arena_alloc(g->a, 4 * sizeof(*r->headers));
                memset(r->headers, 0, 4 * sizeof(*r->headers));
                for (int h = 0; h < r->nheaders; h++) {
                        r->headers[h].name = h & 1 ? "a" : "h";
                        r->headers[h].schema = side(g, batch, &r->headers[h].value);
                }
        }
        return batch;
}

static void look(lc_arena_t *a, const lc_schema_t *s, const lc_value_t *v)
{
        lc_buf_t text = LC_BUF_INIT;
        lc_err_t err = {0};
        lc_slice_t out;

        if (s)
                lc_validate_value(s, v, &err);
        lc_value_to_java_string(v, s, &text);
        lc_buf_free(&text);
        for (int i = 0; i < 2; i++) {
                lc_err_clear(&err);
                if (json[i]->cls->from_connect(json[i], "t", NULL, s, v, a, &out, &err) < 0)
                        fuzz_check(err.kind == LC_DATA && err.msg[0], "a bad value without a data error");
        }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        lc_err_t err = {0};
        char *home;

        (void)argc, (void)argv;
        lc_log_set_level(NULL, "OFF");
        home = lc_home_find(&err);
        fuzz_check(home != NULL, err.msg);
        plugins = lc_plugins_scan(home, NULL, &err);
        fuzz_check(plugins != NULL, err.msg);
        free(home);
        for (int i = 0; i < 2; i++) {
                const lc_converter_class_t *cls = lc_converter_class_find("JsonConverter");
                lc_props_t *p = lc_props_new();
                lc_props_set(p, "schemas.enable", i ? "true" : "false");
                json[i] = cls->create(cls, p, "value", &err);
                fuzz_check(json[i] != NULL, err.msg);
                lc_props_free(p);
        }
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        gen_t g = {.f = {data, n}};
        bool source = fuzz_byte(&g.f) & 1;
        lc_props_t *p = config(&g.f);
        lc_batch_t *batch = batch_of(&g, source);
        lc_script_host_t host = {.connector = "fuzz"};
        lc_err_t err = {0};
        lc_script_chain_t *chain = lc_script_chain_new(plugins, p, source, &host, &err);
        uint32_t from = 0, at;
        size_t stage;

        if (!chain)
                fuzz_check(err.msg[0] || err.cls, "no chain and no error");
        while (chain && from < batch->n) {
                lc_err_clear(&err);
                if (lc_script_chain_run(chain, batch, from, 0, batch->n, &at, &stage, &err) == 0)
                        break;
                fuzz_check(at >= from && at < batch->n && stage < lc_script_chain_stages(chain) && err.kind,
                           "a failure without a place");
                /* what a transform of ours raises has a class; else it is a mistake in it */
                if (err.kind != LC_DATA) {
                        fprintf(stderr, "%s: %s\n%s\n", lc_script_chain_class(chain, stage), err.msg, err.detail);
                        fuzz_check(false, "a record broke a standard transform");
                }
                batch->records[at].state = LC_REC_DROPPED;
                from = at + 1;
        }
        for (uint32_t i = 0; chain && i < batch->n; i++) {
                lc_record_t *r = &batch->records[i];
                if (r->state != LC_REC_NEW)
                        continue;
                look(&batch->arena, r->key_schema, &r->key);
                look(&batch->arena, r->value_schema, &r->value);
                for (int h = 0; h < r->nheaders; h++)
                        look(&batch->arena, r->headers[h].schema, &r->headers[h].value);
        }
        lc_script_chain_free(chain);
        lc_batch_unref(batch);
        lc_props_free(p);
        return 0;
}
