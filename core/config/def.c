/*
 * def.c - parsing and checking after Java's ConfigDef: parseType, validators, messages; the answer of
 * validation.
 *
 * Threads: any; rows are read-only.  Ownership: see def.h.  Tests: spec/unit/config_spec.lua
 */
#include "config/def.h"
#include "config/plugin.h"
#include "base/alloc.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

const char *lc_config_type_name(lc_config_type_t t)
{
        static const char *const names[] = {"BOOLEAN", "STRING", "INT",   "SHORT",   "LONG",
                                            "DOUBLE",  "LIST",   "CLASS", "PASSWORD"};
        return names[t];
}

static char *joined(const char *text, const char *separator)
{
        lc_strv_t items = {NULL, 0};
        lc_buf_t b = LC_BUF_SURE;

        lc_strv_split(&items, text);
        for (size_t i = 0; i < items.n; i++) {
                lc_buf_adds(&b, i ? separator : "");
                lc_buf_adds(&b, items.v[i]);
        }
        lc_strv_free(&items);
        return b.p ? lc_buf_take(&b, NULL) : lc_strdup("");
}

/* Integer.parseInt and its kin: an optional sign and digits, nothing else. */
static char *parse_integer(const char *s, int64_t min, int64_t max)
{
        const char *digits = s + (*s == '+' || *s == '-');
        char *end;
        long long v;

        if (!*digits || strspn(digits, "0123456789") != strlen(digits))
                return NULL;
        errno = 0;
        v = strtoll(s, &end, 10);
        if (errno || v < min || v > max)
                return NULL;
        return lc_asprintf("%lld", v);
}

static char *parse_double(const char *s)
{
        char *end, buf[40];
        double v;

        if (!*s || strspn(s, "+-.0123456789eE") != strlen(s))
                return NULL;
        errno = 0;
        v = strtod(s, &end);
        if (*end || end == s)
                return NULL;
        for (int digits = 1; digits <= 17; digits++) { /* the shortest text that reads back the same */
                snprintf(buf, sizeof(buf), "%.*g", digits, v);
                if (strtod(buf, NULL) == v)
                        break;
        }
        return lc_asprintf("%s%s", buf, strpbrk(buf, ".ein") ? "" : ".0");
}

int lc_config_parse_type(lc_config_type_t type, const char *raw, char **out, lc_buf_t *reason)
{
        char *s;

        *out = NULL;
        if (!raw)
                return 0;
        s = lc_strtrim(raw);
        switch (type) {
        case LC_CFG_BOOLEAN:
                if (!strcasecmp(s, "true"))
                        *out = lc_strdup("true");
                else if (!strcasecmp(s, "false"))
                        *out = lc_strdup("false");
                else
                        lc_buf_adds(reason, "Expected value to be either true or false");
                break;
        case LC_CFG_INT:
                *out = parse_integer(s, INT32_MIN, INT32_MAX);
                break;
        case LC_CFG_SHORT:
                *out = parse_integer(s, INT16_MIN, INT16_MAX);
                break;
        case LC_CFG_LONG:
                *out = parse_integer(s, INT64_MIN, INT64_MAX);
                break;
        case LC_CFG_DOUBLE:
                *out = parse_double(s);
                break;
        case LC_CFG_LIST:
                *out = joined(s, ",");
                break;
        case LC_CFG_STRING:
        case LC_CFG_CLASS:
        case LC_CFG_PASSWORD:
                *out = s;
                return 0;
        }
        free(s);
        if (*out)
                return 0;
        if (type != LC_CFG_BOOLEAN)
                lc_buf_printf(reason, "Not a number of type %s", lc_config_type_name(type));
        return -1;
}

void lc_config_value_text(lc_config_type_t type, const char *value, lc_buf_t *out)
{
        if (!value) {
                lc_buf_adds(out, "null");
        } else if (type == LC_CFG_PASSWORD) {
                lc_buf_adds(out, "[hidden]");
        } else if (type == LC_CFG_LIST) {
                char *list = joined(value, ", ");

                lc_buf_printf(out, "[%s]", list);
                free(list);
        } else {
                lc_buf_adds(out, value);
        }
}

void lc_config_invalid(lc_buf_t *out, lc_config_type_t type, const char *value, const char *name,
                       const char *reason)
{
        lc_buf_adds(out, "Invalid value ");
        lc_config_value_text(type, value, out);
        lc_buf_printf(out, " for configuration %s: %s", name, reason ? reason : "");
}

/* ---- checks ---- */

static void number(lc_buf_t *out, const lc_config_row_t *row, double v)
{
        if (row->type == LC_CFG_DOUBLE) {
                char *s = lc_asprintf("%g", v);
                lc_buf_printf(out, "%s%s", s, strchr(s, '.') ? "" : ".0");
                free(s);
        } else {
                lc_buf_printf(out, "%lld", (long long)v);
        }
}

static bool range(const lc_config_row_t *row, const char *value, lc_buf_t *reason, bool upper)
{
        double v;

        if (!value) {
                lc_buf_adds(reason, "Value must be non-null");
                return false;
        }
        v = strtod(value, NULL);
        if (v < row->min) {
                lc_buf_adds(reason, "Value must be at least ");
                number(reason, row, row->min);
                return false;
        }
        if (upper && v > row->max) {
                lc_buf_adds(reason, "Value must be no more than ");
                number(reason, row, row->max);
                return false;
        }
        return true;
}

bool lc_check_range(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return range(row, value, reason, true);
}

bool lc_check_at_least(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return range(row, value, reason, false);
}

static bool one_of(const lc_config_row_t *row, const char *value, lc_buf_t *reason, bool ci)
{
        for (int i = 0; value && row->one_of[i]; i++)
                if (!(ci ? strcasecmp : strcmp)(value, row->one_of[i]))
                        return true;
        lc_buf_printf(reason, "String must be one of%s: ", ci ? " (case insensitive)" : "");
        for (int i = 0; row->one_of[i]; i++)
                lc_buf_printf(reason, "%s%s", i ? ", " : "", row->one_of[i]);
        return false;
}

bool lc_check_one_of(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return one_of(row, value, reason, false);
}

bool lc_check_one_of_ci(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return one_of(row, value, reason, true);
}

bool lc_check_non_empty(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        (void)row;
        if (!value || *value)
                return true;
        lc_buf_adds(reason, "String must be non-empty");
        return false;
}

static bool list_ok(const lc_config_row_t *row, const char *value, lc_buf_t *message, bool empty_ok)
{
        lc_strv_t items = {NULL, 0};
        const char *problem = NULL;

        lc_strv_split(&items, value);
        if (!items.n && !empty_ok)
                problem = "must not be empty. Valid values include: any non-empty value";
        if (!problem && lc_strv_unique(&items))
                problem = "values must not be duplicated.";
        for (size_t i = 0; !problem && i < items.n; i++)
                if (!*items.v[i])
                        problem = "values must not be empty.";
        lc_strv_free(&items);
        if (problem)
                lc_buf_printf(message, "Configuration '%s' %s", row->name, problem);
        return !problem;
}

static bool list_null(const lc_config_row_t *row, lc_buf_t *message)
{
        lc_buf_printf(message, "Configuration '%s' values must not be null.", row->name);
        return false;
}

bool lc_check_list(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return value ? list_ok(row, value, reason, true) : list_null(row, reason);
}

bool lc_check_list_non_empty(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return value ? list_ok(row, value, reason, false) : list_null(row, reason);
}

bool lc_check_list_or_null(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return !value || list_ok(row, value, reason, false);
}

bool lc_check_aliases(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        lc_strv_t items = {NULL, 0};
        bool twice = false;

        (void)row;
        if (!value) {
                lc_buf_adds(reason, "entry must be non null");
                return false;
        }
        lc_strv_split(&items, value);
        for (size_t i = 0; i < items.n; i++)
                for (size_t j = 0; j < i; j++)
                        twice |= !strcmp(items.v[i], items.v[j]);
        lc_strv_free(&items);
        if (twice)
                lc_buf_adds(reason, "Duplicate alias provided.");
        return !twice;
}

bool lc_config_check(const lc_config_row_t *row, const char *value, lc_buf_t *message)
{
        lc_buf_t reason = LC_BUF_SURE;
        bool ok = !row->check || row->check(row, value, &reason);

        if (!ok && row->whole)
                lc_buf_adds(message, reason.p ? reason.p : "");
        else if (!ok)
                lc_config_invalid(message, row->type, value, row->name, reason.p);
        lc_buf_free(&reason);
        return ok;
}

int lc_config_parse(const lc_config_row_t *row, const char *full_name, const lc_props_t *props, char **out,
                    lc_strv_t *errors)
{
        lc_buf_t text = LC_BUF_SURE, reason = LC_BUF_SURE;
        int rc = 0;

        *out = NULL;
        if (props && lc_props_has(props, full_name)) {
                const char *raw = lc_props_get(props, full_name);

                if (lc_config_parse_type(row->type, raw, out, &reason)) {
                        lc_config_invalid(&text, LC_CFG_STRING, raw, full_name, reason.p);
                        lc_strv_add(errors, text.p);
                        rc = -1;
                }
        } else if (row->required) {
                lc_buf_printf(&text, "Missing required configuration \"%s\" which has no default value.",
                              full_name);
                lc_strv_add(errors, text.p);
                rc = -1;
        } else {
                *out = lc_strdup(row->def);
        }
        lc_buf_clear(&text);
        if (!lc_config_check(row, *out, &text)) { /* after a bad type too, with null: as Java */
                lc_strv_add(errors, text.p);
                rc = -1;
        }
        lc_buf_free(&text);
        lc_buf_free(&reason);
        return rc;
}

/* ---- answers ---- */

lc_config_infos_t *lc_config_infos_new(const char *name)
{
        lc_config_infos_t *infos = lc_calloc(1, sizeof(*infos));

        infos->name = lc_strdup(name);
        return infos;
}

lc_config_value_t *lc_config_infos_add(lc_config_infos_t *infos, const lc_config_row_t *row, const char *name)
{
        lc_config_value_t *v;

        if (infos->n == infos->cap) {
                infos->cap = infos->cap ? infos->cap * 2 : 32;
                infos->values = lc_realloc(infos->values, infos->cap * sizeof(*infos->values));
        }
        v = &infos->values[infos->n++];
        memset(v, 0, sizeof(*v));
        v->row = row;
        v->name = lc_strdup(name);
        v->order = INT_MIN;
        v->visible = true;
        return v;
}

lc_config_value_t *lc_config_infos_find(lc_config_infos_t *infos, const char *name)
{
        for (size_t i = 0; i < infos->n; i++)
                if (!strcmp(infos->values[i].name, name))
                        return &infos->values[i];
        return NULL;
}

void lc_config_infos_free(lc_config_infos_t *infos)
{
        if (!infos)
                return;
        for (size_t i = 0; i < infos->n; i++) {
                lc_config_value_t *v = &infos->values[i];

                free(v->name);
                free(v->group);
                free(v->display);
                free(v->def);
                free(v->value);
                lc_strv_free(&v->errors);
                lc_strv_free(&v->recommended);
        }
        free(infos->values);
        lc_plugins_unref(infos->plugins);
        lc_strv_free(&infos->groups);
        free(infos->name);
        free(infos);
}

char *lc_config_infos_rejection(const lc_config_infos_t *infos)
{
        lc_buf_t b = LC_BUF_SURE;

        if (!infos->error_count)
                return NULL;
        lc_buf_printf(&b, "Connector configuration is invalid and contains the following %d error(s):",
                      infos->error_count);
        for (size_t i = 0; i < infos->n; i++)
                for (size_t j = 0; j < infos->values[i].errors.n; j++)
                        lc_buf_printf(&b, "\n%s", infos->values[i].errors.v[j]);
        lc_buf_adds(&b, "\nYou can also find the above list of errors at the endpoint "
                        "`/connector-plugins/{connectorType}/config/validate`");
        return b.p ? lc_buf_take(&b, NULL) : NULL;
}
