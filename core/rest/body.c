/* body.c - see body.h. */
#include "rest/body.h"
#include "base/alloc.h"
#include "convert/json.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_CLASS "org.apache.kafka.connect.runtime.rest.entities.CreateConnectorRequest"
#define MAP_TYPE "java.util.LinkedHashMap<java.lang.String,java.lang.String>"

static int fail(lc_err_t *err, const char *text)
{
        return lc_err_set(err, LC_DATA, 500, "%s", text);
}

/* What Jackson says of a value of the wrong shape. `as` is the type it should become; beans and maps
 * made from one scalar need a constructor that takes it. */
static int mismatch(const lc_json_t *v, const char *as, bool constructed, lc_err_t *err)
{
        static const char *const shape[] = {
                [LC_J_NULL] = "Null value (token `JsonToken.VALUE_NULL`)",
                [LC_J_TRUE] = "Boolean value (token `JsonToken.VALUE_TRUE`)",
                [LC_J_FALSE] = "Boolean value (token `JsonToken.VALUE_FALSE`)",
                [LC_J_NUMBER] = "Integer value (token `JsonToken.VALUE_NUMBER_INT`)",
                [LC_J_STRING] = "String value (token `JsonToken.VALUE_STRING`)",
                [LC_J_ARRAY] = "Array value (token `JsonToken.START_ARRAY`)",
                [LC_J_OBJECT] = "Object value (token `JsonToken.START_OBJECT`)"
        };
        const char *what = shape[v->type];

        if (v->type == LC_J_NUMBER && !v->integral)
                what = "Floating-point value (token `JsonToken.VALUE_NUMBER_FLOAT`)";
        if (v->type == LC_J_STRING || (constructed && v->type <= LC_J_NUMBER)) {
                const char *type = constructed ? as : "java.util.LinkedHashMap";
                const char *argument = v->type == LC_J_STRING ? "String" : v->type != LC_J_NUMBER
                        ? "boolean/Boolean" : v->integral ? "int/Int" : "double/Double";
                const char *kind = v->type == LC_J_STRING ? "String value ('%.*s')"
                                 : v->type == LC_J_NUMBER ? "Number value (%.*s)" : "boolean value (%.*s)";
                char value[256];
                if (v->type == LC_J_STRING || v->type == LC_J_NUMBER)
                        snprintf(value, sizeof(value), kind, (int)(v->len < 200 ? v->len : 200), v->s);
                else
                        snprintf(value, sizeof(value), kind, 5, v->type == LC_J_TRUE ? "true" : "false");
                return lc_err_set(err, LC_DATA, 500, "Cannot construct instance of `%s` (although at least "
                                  "one Creator exists): no %s-argument constructor/factory method to "
                                  "deserialize from %s", type, argument, value);
        }
        return lc_err_set(err, LC_DATA, 500, "Cannot deserialize value of type `%s` from %s", as, what);
}

/* A scalar as the string Java makes of it: its literal text. *out NULL for null. */
static int scalar(const lc_json_t *v, char **out, lc_err_t *err)
{
        *out = NULL;
        switch (v->type) {
        case LC_J_NULL:
                return 0;
        case LC_J_TRUE:
        case LC_J_FALSE:
                *out = lc_strdup(v->type == LC_J_TRUE ? "true" : "false");
                return 0;
        case LC_J_NUMBER:
        case LC_J_STRING:
                if (memchr(v->s, 0, v->len))
                        return lc_err_set(err, LC_DATA, 400, "A string with a NUL character is not supported");
                *out = lc_strndup(v->s, v->len);
                return 0;
        default:
                return mismatch(v, "java.lang.String", false, err);
        }
}

static int config_map(const lc_json_t *v, lc_props_t **config, lc_err_t *err)
{
        lc_props_t *p;

        if (v->type != LC_J_OBJECT)
                return mismatch(v, MAP_TYPE, false, err);
        p = lc_props_new();
        for (const lc_json_t *c = v->child; c; c = c->next) {
                char *value = NULL;
                if (memchr(c->key, 0, c->key_len)) {
                        lc_err_set(err, LC_DATA, 400, "A key with a NUL character is not supported");
                        lc_props_free(p);
                        return -1;
                }
                if (scalar(c, &value, err)) {
                        lc_props_free(p);
                        return -1;
                }
                lc_props_set(p, c->key, value);
                free(value);
        }
        *config = p;
        return 0;
}

/* Jackson says what the first document was bound to, which the parser cannot know. */
static void name_bound_type(lc_err_t *err, const char *bound)
{
        static const char before[] = "found after value:";
        char *at = strstr(err->msg, before), *text;

        if (strncmp(err->msg, "Trailing token", 14) || !at)
                return;
        text = lc_asprintf("%.*sfound after value (bound as `%s`):%s", (int)(at - err->msg), err->msg, bound,
                           at + sizeof(before) - 1);
        snprintf(err->msg, sizeof(err->msg), "%s", text);
        free(text);
}

/* A byte order mark is skipped, as Jackson does. *doc NULL: empty body or null. */
static int parse(const char *body, size_t len, bool lenient, const char *bound, lc_json_t **doc, lc_err_t *err)
{
        *doc = NULL;
        if (len >= 3 && !memcmp(body, "\xEF\xBB\xBF", 3)) {
                body += 3;
                len -= 3;
        }
        if (len == 0)
                return 0;
        if (lc_json_parse(body, len, lenient ? LC_JSON_LENIENT : 0, doc, err)) {
                if (err) {
                        err->code = 500;
                        name_bound_type(err, bound);
                }
                return -1;
        }
        if (*doc && (*doc)->type == LC_J_NULL) {
                lc_json_free(*doc);
                *doc = NULL;
        }
        return 0;
}

int lc_body_config(const char *body, size_t len, lc_props_t **config, lc_err_t *err)
{
        lc_json_t *doc;
        int rc;

        *config = NULL;
        if (parse(body, len, false, "java.util.Map", &doc, err))
                return -1;
        if (!doc)
                return 0;
        rc = config_map(doc, config, err);
        lc_json_free(doc);
        return rc;
}

/* String.trim(): everything up to and including the blank. */
static char *trimmed(const char *s)
{
        size_t n;

        while (*s && (unsigned char)*s <= ' ')
                s++;
        n = strlen(s);
        while (n > 0 && (unsigned char)s[n - 1] <= ' ')
                n--;
        return lc_strndup(s, n);
}

static int initial_state(const lc_json_t *v, lc_target_state_t *out, lc_err_t *err)
{
        char *text;
        int rc = 0;

        if (v->type == LC_J_ARRAY || v->type == LC_J_OBJECT)
                return mismatch(v, REQUEST_CLASS "$InitialState", false, err);
        if (scalar(v, &text, err))
                return -1;
        if (!text)
                return 0;
        for (char *c = text; *c; c++)
                *c = (char)toupper((unsigned char)*c);
        if (!strcmp(text, "RUNNING"))
                *out = LC_TARGET_STARTED;
        else if (!strcmp(text, "PAUSED"))
                *out = LC_TARGET_PAUSED;
        else if (!strcmp(text, "STOPPED"))
                *out = LC_TARGET_STOPPED;
        else
                rc = lc_err_set(err, LC_DATA, 500, "Cannot construct instance of `" REQUEST_CLASS
                                "$InitialState`, problem: No enum constant " REQUEST_CLASS
                                ".InitialState.%s", text);
        free(text);
        return rc;
}

int lc_body_create(const char *body, size_t len, bool lenient, lc_create_body_t *out, lc_err_t *err)
{
        lc_json_t *doc;
        char *name = NULL;
        int rc = -1;

        memset(out, 0, sizeof(*out));
        out->initial_state = LC_TARGET_NONE;
        if (parse(body, len, lenient, REQUEST_CLASS, &doc, err))
                return -1;
        if (!doc)
                return fail(err, "Cannot invoke \"" REQUEST_CLASS ".name()\" because \"createRequest\" is null");
        if (doc->type != LC_J_OBJECT) {
                mismatch(doc, REQUEST_CLASS, true, err);
                goto done;
        }
        for (const lc_json_t *c = doc->child; c; c = c->next) {
                if (!strcmp(c->key, "name")) {
                        free(name);
                        if (scalar(c, &name, err))
                                goto done;
                } else if (!strcmp(c->key, "config")) {
                        lc_props_free(out->config);
                        out->config = NULL;
                        if (c->type != LC_J_NULL && config_map(c, &out->config, err))
                                goto done;
                } else if (!strcmp(c->key, "initial_state")) {
                        out->initial_state = LC_TARGET_NONE;
                        if (initial_state(c, &out->initial_state, err))
                                goto done;
                } else if (!lenient) {
                        lc_err_set(err, LC_DATA, 500, "Unrecognized field \"%s\" (class " REQUEST_CLASS
                                   "), not marked as ignorable (3 known properties: \"config\", \"name\", "
                                   "\"initial_state\")", c->key);
                        goto done;
                }
        }
        out->name = trimmed(name ? name : "");
        rc = 0;
done:
        free(name);
        lc_json_free(doc);
        if (rc)
                lc_create_body_free(out);
        return rc;
}

void lc_create_body_free(lc_create_body_t *b)
{
        free(b->name);
        lc_props_free(b->config);
        memset(b, 0, sizeof(*b));
}

int lc_body_task_configs(const char *body, size_t len, lc_err_t *err)
{
        lc_json_t *doc;
        int rc = 0;

        if (parse(body, len, false, "java.util.List", &doc, err))
                return -1;
        if (!doc)
                return 0;
        if (doc->type != LC_J_ARRAY)
                rc = mismatch(doc, "java.util.ArrayList<java.util.Map<java.lang.String,java.lang.String>>",
                              false, err);
        for (const lc_json_t *c = rc ? NULL : doc->child; c && !rc; c = c->next) {
                lc_props_t *p = NULL;
                rc = config_map(c, &p, err);
                lc_props_free(p);
        }
        lc_json_free(doc);
        return rc;
}
