/*
 * log_reporter.c - errors.log.enable: a failing operation as one ERROR line, with Java's words.
 *
 * Threads: the task's.   Source: errors.md 5.   Tests: spec/unit/operator_spec.lua
 */
#include "base/alloc.h"
#include "base/log.h"
#include "convert/converter.h"
#include "convert/json.h"
#include "runtime/operator.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct log_reporter {
        lc_reporter_t base;
        bool include_messages;
} log_reporter_t;

static void describe_schema(const lc_schema_t *s, lc_buf_t *out)
{
        if (!s)
                lc_buf_adds(out, "null");
        else if (s->name)
                lc_buf_printf(out, "Schema{%s:%s}", s->name, lc_type_name(s->type));
        else
                lc_buf_printf(out, "Schema{%s}", lc_type_name(s->type));
}

static void describe_value(const lc_value_t *v, const lc_schema_t *schema, lc_buf_t *out)
{
        if (v->type == LC_NULL)
                lc_buf_adds(out, "null");
        else
                lc_value_to_java_string(v, schema, out);
}

/* A JSON node as java.util.Map and its kin print it. */
static void describe_json(const lc_json_t *n, lc_buf_t *out)
{
        bool object = n->type == LC_J_OBJECT;

        switch (n->type) {
        case LC_J_NULL:
                lc_buf_adds(out, "null");
                break;
        case LC_J_TRUE:
                lc_buf_adds(out, "true");
                break;
        case LC_J_FALSE:
                lc_buf_adds(out, "false");
                break;
        case LC_J_NUMBER:
        case LC_J_STRING:
                lc_buf_add(out, n->s, n->len);
                break;
        case LC_J_ARRAY:
        case LC_J_OBJECT:
                lc_buf_addc(out, object ? '{' : '[');
                for (const lc_json_t *c = n->child; c; c = c->next) {
                        if (c != n->child)
                                lc_buf_adds(out, ", ");
                        if (object) {
                                lc_buf_add(out, c->key, c->key_len);
                                lc_buf_addc(out, '=');
                        }
                        describe_json(c, out);
                }
                lc_buf_addc(out, object ? '}' : ']');
                break;
        }
}

static void describe_map(const char *json, size_t len, lc_buf_t *out)
{
        lc_json_t *doc = NULL;

        if (json && !lc_json_parse(json, len, 0, &doc, NULL) && doc)
                describe_json(doc, out);
        else
                lc_buf_adds(out, "null");
        lc_json_free(doc);
}

static void describe_headers(const lc_record_t *r, lc_buf_t *out)
{
        lc_buf_adds(out, "ConnectHeaders(headers=");
        for (uint16_t i = 0; i < r->nheaders; i++) {
                const lc_header_t *h = &r->headers[i];
                lc_buf_printf(out, "%sConnectHeader(key=%s, value=", i ? ", " : "[", h->name);
                describe_value(&h->value, h->schema, out);
                lc_buf_adds(out, ", schema=");
                describe_schema(h->schema, out);
                lc_buf_addc(out, ')');
        }
        lc_buf_adds(out, r->nheaders ? "])" : ")");
}

static void describe_source(const lc_record_t *r, lc_buf_t *out)
{
        const lc_source_partition_t *p = r->u.src.partition;
        lc_buf_t offset = LC_BUF_INIT;

        if (r->u.src.offset.type != LC_NULL)
                lc_record_offset_json(r, &offset, NULL);
        lc_buf_adds(out, "SourceRecord{sourcePartition=");
        describe_map(p ? p->json : NULL, p ? p->len : 0, out);
        lc_buf_adds(out, ", sourceOffset=");
        describe_map(offset.p, offset.len, out);
        lc_buf_free(&offset);
        lc_buf_printf(out, "} ConnectRecord{topic='%s', kafkaPartition=", r->topic);
        if (r->partition < 0)
                lc_buf_adds(out, "null");
        else
                lc_buf_printf(out, "%" PRId32, r->partition);
        lc_buf_adds(out, ", key=");
        describe_value(&r->key, r->key_schema, out);
        lc_buf_adds(out, ", keySchema=");
        describe_schema(r->key_schema, out);
        lc_buf_adds(out, ", value=");
        describe_value(&r->value, r->value_schema, out);
        lc_buf_adds(out, ", valueSchema=");
        describe_schema(r->value_schema, out);
        lc_buf_adds(out, ", timestamp=");
        if (r->timestamp < 0)
                lc_buf_adds(out, "null");
        else
                lc_buf_printf(out, "%" PRId64, r->timestamp);
        lc_buf_adds(out, ", headers=");
        describe_headers(r, out);
        lc_buf_addc(out, '}');
}

void lc_record_describe(const lc_record_t *r, bool sink, lc_buf_t *out)
{
        if (!sink) {
                describe_source(r, out);
                return;
        }
        lc_buf_printf(out, "{topic='%s', partition=%" PRId32 ", offset=%" PRId64, r->u.snk.topic,
                      r->u.snk.partition, r->u.snk.offset);
        if (r->timestamp_type)
                lc_buf_printf(out, ", timestamp=%" PRId64 ", timestampType=%s", r->timestamp,
                              r->timestamp_type == 2 ? "LogAppendTime" : "CreateTime");
        lc_buf_addc(out, '}');
}

static void report(lc_reporter_t *base, const lc_failure_t *f)
{
        log_reporter_t *r = (log_reporter_t *)base;
        char *trace = lc_err_trace(f->err);
        lc_buf_t text = LC_BUF_INIT;

        lc_buf_printf(&text, "Error encountered in task %s-%d. Executing stage '%s' with class '%s'",
                      f->connector, f->task, lc_stage_name(f->stage), f->class_name);
        if (r->include_messages && f->record) {
                lc_buf_adds(&text, f->sink ? ", where consumed record is " : ", where source record is = ");
                lc_record_describe(f->record, f->sink, &text);
        }
        if (lc_buf_ok(&text))
                lc_log(LC_ERROR, "ERRORS", "%s. %s", text.p, trace);
        lc_buf_free(&text);
        free(trace);
}

static void destroy(lc_reporter_t *r)
{
        free(r);
}

lc_reporter_t *lc_log_reporter_new(bool include_messages)
{
        log_reporter_t *r = lc_calloc(1, sizeof(*r));

        r->base.report = report;
        r->base.destroy = destroy;
        r->include_messages = include_messages;
        return &r->base;
}
