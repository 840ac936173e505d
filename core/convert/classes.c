/*
 * classes.c - the table of converters written in C, and their configuration. Any thread, read-only.
 * Spec: spec/golden/converters_spec.lua
 */
#include "convert/classes.h"
#include <stdlib.h>
#include <string.h>

const char *const lc_converter_types[] = {"key", "value", "header", NULL};

const lc_converter_class_t *const lc_converter_classes[] = {
        &lc_boolean_converter_class,
        &lc_byte_array_converter_class,
        &lc_double_converter_class,
        &lc_float_converter_class,
        &lc_integer_converter_class,
        &lc_long_converter_class,
        &lc_short_converter_class,
        &lc_json_converter_class,
        &lc_simple_header_converter_class,
        &lc_string_converter_class,
        NULL,
};

/* "Json" for JsonConverter, "Simple" for SimpleHeaderConverter. */
static bool pruned(const char *simple, const char *name)
{
        static const char *const suffixes[] = {"HeaderConverter", "Converter"};
        size_t n = strlen(name), all = strlen(simple);

        for (size_t i = 0; i < 2; i++) {
                size_t cut = strlen(suffixes[i]);

                if (all > cut && !strcmp(simple + all - cut, suffixes[i]))
                        return n == all - cut && !memcmp(simple, name, n);
        }
        return false;
}

const lc_converter_class_t *lc_converter_class_find(const char *name)
{
        for (size_t i = 0; lc_converter_classes[i]; i++) {
                const char *full = lc_converter_classes[i]->class_name, *simple = strrchr(full, '.') + 1;

                if (!strcmp(full, name) || !strcmp(simple, name) || pruned(simple, name))
                        return lc_converter_classes[i];
        }
        return NULL;
}

lc_props_t *lc_converter_config(const lc_converter_class_t *cls, const lc_props_t *config, lc_err_t *err)
{
        lc_props_t *empty = config ? NULL : lc_props_new(), *out = lc_props_new();
        lc_strv_t errors = {NULL, 0};

        for (int i = 0; i < cls->nrows && !errors.n; i++) {
                const lc_config_row_t *row = &cls->rows[i];
                char *value = NULL;

                if (!strcmp(row->name, "converter.type"))
                        continue;
                if (lc_config_parse(row, row->name, config ? config : empty, &value, &errors) == 0)
                        lc_props_set(out, row->name, value);
                free(value);
        }
        if (errors.n) {
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s", errors.v[0]);
                lc_props_free(out);
                out = NULL;
        }
        lc_strv_free(&errors);
        lc_props_free(empty);
        return out;
}
