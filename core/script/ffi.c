/* ffi.c - see ffi.h. The script's thread. Spec: spec/unit/connect_lua_spec.lua. */
#include "script/ffi.h"
#include "convert/json.h"
#include "file/line_reader.h"
#include <string.h>

uint32_t lc_ffi_abi(void)
{
        return LC_FFI_ABI;
}

size_t lc_ffi_sizeof(const char *type)
{
        static const struct {
                const char *name;
                size_t size;
        } sizes[] = {
                {"lc_err_t", sizeof(lc_err_t)},
                {"lc_buf_t", sizeof(lc_buf_t)},
                {"lc_value_t", sizeof(lc_value_t)},
                {"lc_decimal_t", sizeof(lc_decimal_t)},
                {"lc_schema_t", sizeof(lc_schema_t)},
                {"lc_header_t", sizeof(lc_header_t)},
                {"lc_record_t", sizeof(lc_record_t)},
                {"lc_batch_t", sizeof(lc_batch_t)},
                {"lc_source_partition_t", sizeof(lc_source_partition_t)},
                {"lc_json_t", sizeof(lc_json_t)},
                {"lc_line_reader_conf_t", sizeof(lc_line_reader_conf_t)},
                {"lc_ffi_exchange_t", sizeof(lc_ffi_exchange_t)},
                {"lc_lua_batch_t", sizeof(lc_lua_batch_t)},
        };

        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
                if (!strcmp(sizes[i].name, type))
                        return sizes[i].size;
        return 0;
}

static uint64_t bytes_of(const lc_batch_t *b)
{
        uint64_t bytes = b->arena.total + (uint64_t)b->cap * sizeof(lc_record_t);

        for (uint32_t i = 0; i < b->n; i++) /* consumed bytes live in librdkafka's messages */
                bytes += b->records[i].key_bytes.len + b->records[i].value_bytes.len;
        return bytes;
}

void lc_ffi_batch_borrow(lc_lua_batch_t *h, lc_batch_t *b)
{
        lc_batch_ref(b);
        h->b = b;
}

void lc_ffi_batch_view(lc_lua_batch_t *h, lc_ffi_exchange_t *x)
{
        if (h->viewed)
                return;
        h->viewed = true;
        h->bytes = bytes_of(h->b);
        x->pinned += h->bytes;
}

void lc_ffi_batch_drop(lc_lua_batch_t *h, lc_ffi_exchange_t *x)
{
        if (!h->b)
                return;
        if (h->viewed)
                x->pinned -= h->bytes;
        lc_batch_unref(h->b);
        h->b = NULL;
}
