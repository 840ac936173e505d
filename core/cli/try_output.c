/* try_output.c - see try_output.h: records as JSON lines. */
#include "cli/try_output.h"
#include "convert/json_data.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Values as they are: null where there is a default stays null, whatever a converter would make of it. */
const lc_json_options_t lc_try_json = {.replace_null_with_default = false};

void lc_try_output_free(lc_try_output_t *o)
{
        lc_buf_free(&o->buf);
}

static int add_data(lc_try_output_t *o, const lc_schema_t *schema, const lc_value_t *value, lc_err_t *err)
{
        if (!o->schemas)
                return lc_json_write_value(&lc_try_json, schema, value, &o->buf, err);
        lc_buf_adds(&o->buf, "{\"schema\":");
        if (lc_json_write_schema(&lc_try_json, schema, &o->buf, err))
                return -1;
        lc_buf_adds(&o->buf, ",\"payload\":");
        if (lc_json_write_value(&lc_try_json, schema, value, &o->buf, err))
                return -1;
        lc_buf_addc(&o->buf, '}');
        return 0;
}

static void add_number(lc_buf_t *out, int64_t n)
{
        if (n < 0)
                lc_buf_adds(out, "null");
        else
                lc_buf_printf(out, "%" PRId64, n);
}

static int add_full(lc_try_output_t *o, const lc_record_t *r, lc_err_t *err)
{
        lc_buf_t *out = &o->buf;

        lc_buf_adds(out, "{\"topic\":");
        lc_json_write_string(out, r->topic, strlen(r->topic));
        lc_buf_adds(out, ",\"partition\":");
        add_number(out, r->partition);
        lc_buf_adds(out, ",\"key\":");
        if (add_data(o, r->key_schema, &r->key, err))
                return -1;
        lc_buf_adds(out, ",\"value\":");
        if (add_data(o, r->value_schema, &r->value, err))
                return -1;
        lc_buf_adds(out, ",\"headers\":[");
        for (int i = 0; i < r->nheaders; i++) {
                const lc_header_t *h = &r->headers[i];
                lc_buf_adds(out, i ? ",{\"name\":" : "{\"name\":");
                lc_json_write_string(out, h->name, strlen(h->name));
                lc_buf_adds(out, ",\"value\":");
                if (add_data(o, h->schema, &h->value, err))
                        return -1;
                lc_buf_addc(out, '}');
        }
        lc_buf_adds(out, "],\"timestamp\":");
        add_number(out, r->timestamp);
        if (o->source && r->u.src.partition) {
                lc_buf_printf(out, ",\"source_partition\":%s,\"source_offset\":", r->u.src.partition->json);
                if (r->u.src.offset.type == LC_NULL)
                        lc_buf_adds(out, "null");
                else if (lc_record_offset_json(r, out, err))
                        return -1;
        }
        lc_buf_addc(out, '}');
        return 0;
}

int lc_try_output_record(lc_try_output_t *o, const lc_record_t *r, lc_err_t *err)
{
        size_t before = o->buf.len;
        int rc = o->full ? add_full(o, r, err) : add_data(o, r->value_schema, &r->value, err);

        lc_buf_addc(&o->buf, '\n');
        if (!rc && !lc_buf_ok(&o->buf))
                rc = lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory");
        if (rc && o->buf.p) {
                o->buf.len = before;
                o->buf.p[before] = '\0';
        }
        return rc;
}

int lc_try_output_flush(lc_try_output_t *o)
{
        for (size_t at = 0; at < o->buf.len;) {
                ssize_t n = write(1, o->buf.p + at, o->buf.len - at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        if (errno != EPIPE && !o->failed) {
                                o->failed = true;
                                fprintf(stderr, "luaconnect: cannot write to stdout: %s\n", strerror(errno));
                        }
                        return -1;
                }
                at += (size_t)n;
        }
        if (o->buf.cap > 4 << 20)
                lc_buf_free(&o->buf);
        lc_buf_clear(&o->buf);
        return 0;
}
