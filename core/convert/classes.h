/*
 * classes.h - the C converters, and what their create functions share.
 *
 * Threads:   the tables are read-only.
 * Tests:     spec/golden/converters_spec.lua
 */
#ifndef LC_CONVERT_CLASSES_H
#define LC_CONVERT_CLASSES_H
#include "config/def.h"
#include "convert/converter.h"

extern const lc_converter_class_t lc_boolean_converter_class, lc_byte_array_converter_class,
        lc_double_converter_class, lc_float_converter_class, lc_integer_converter_class,
        lc_long_converter_class, lc_short_converter_class, lc_json_converter_class,
        lc_simple_header_converter_class, lc_string_converter_class;

#define LC_CONVERTER_TYPE_ROW                                                                                \
        {                                                                                                    \
                .name = "converter.type", .type = LC_CFG_STRING, .required = true, .importance = LC_LOW,     \
                .order = -1, .doc = "How this converter will be used.", .check = lc_check_one_of,            \
                .one_of = lc_converter_types                                                                 \
        }
extern const char *const lc_converter_types[]; /* "key", "value", "header", NULL */

/* Values of the class's rows, converter.type left out (the runtime gives the role). NULL with a
 * ConfigException. */
lc_props_t *lc_converter_config(const lc_converter_class_t *cls, const lc_props_t *config, lc_err_t *err);

#endif
