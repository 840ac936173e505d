/*
 * offset_json.c - lc_record_offset_json() of data/record.h, here because it needs the JSON writer.
 * The task's thread. Spec: spec/unit/record_spec.lua
 */
#include "convert/json_data.h"
#include "data/record.h"
#include <inttypes.h>
#include <string.h>

int lc_record_offset_json(const lc_record_t *r, lc_buf_t *out, lc_err_t *err)
{
        static const lc_json_options_t options = {.replace_null_with_default = true};
        const lc_value_t *v = &r->u.src.offset;

        if (v->type == LC_INT64) {
                const char *field = r->batch->offset_field ? r->batch->offset_field : "position";

                lc_buf_addc(out, '{');
                lc_json_write_string(out, field, strlen(field));
                lc_buf_printf(out, ":%" PRId64 "}", v->u.i);
        } else if (lc_json_write_value(&options, NULL, v, out, err) < 0) {
                return -1;
        }
        return lc_buf_ok(out) ? 0
                              : lc_err_set(err, LC_FATAL, 0, "Out of memory while writing a source offset");
}
