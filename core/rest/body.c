/* body.c - see body.h. */
#include "rest/body.h"
#include "base/alloc.h"
#include "convert/json.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_CLASS "org.apache.kafka.connect.runtime.rest.entities.CreateConnectorRequest"
#define MAP_TYPE      "java.util.LinkedHashMap<java.lang.String,java.lang.String>"

/* One body being bound: where it starts, and the way to the value that could not be. */
typedef struct binding {
        const char *text;
        size_t len;
        char chain[512]; /* "java.util.LinkedHashMap[\"x\"]" */
} binding_t;

/* Jackson's "at [Source ...": line and column of a place in the text, both from 1. */
static int located(const binding_t *b, const char *at, lc_err_t *err)
{
        const char *start = b->text;
        size_t used;
        int line = 1;

        if (!err)
                return -1;
        for (const char *s = b->text; s < at; s++)
                if (*s == '\n' || (*s == '\r' && s[1] != '\n')) {
                        line++;
                        start = s + 1;
                }
        used = strlen(err->msg);
        snprintf(err->msg + used, sizeof(err->msg) - used,
                 "\n at [Source: REDACTED (`StreamReadFeature."
                 "INCLUDE_SOURCE_IN_LOCATION` disabled); line: %d, column: %d]",
                 line, (int)(at - start) + 1);
        return -1;
}

/* The value was that of `key` in an object bound to `cls`. */
static int through(binding_t *b, const char *cls, const char *key)
{
        char inner[sizeof(b->chain)];

        memcpy(inner, b->chain, sizeof(inner));
        snprintf(b->chain, sizeof(b->chain), "%s[\"%.200s\"]%s%s", cls, key, *inner ? "->" : "", inner);
        return -1;
}

/* The end of a failed binding. */
static int unbound(const binding_t *b, lc_err_t *err)
{
        size_t used = err ? strlen(err->msg) : 0;

        if (err && *b->chain)
                snprintf(err->msg + used, sizeof(err->msg) - used, " (through reference chain: %s)",
                         b->chain);
        return -1;
}

/* What Jackson says of a value of the wrong shape. `as` is the type it should become; beans and maps
 * made from one scalar need a constructor that takes it. */
static int mismatch(const binding_t *b, const lc_json_t *v, const char *as, bool constructed, lc_err_t *err)
{
        static const char *const shape[] = {[LC_J_NULL] = "Null value (token `JsonToken.VALUE_NULL`)",
                                            [LC_J_TRUE] = "Boolean value (token `JsonToken.VALUE_TRUE`)",
                                            [LC_J_FALSE] = "Boolean value (token `JsonToken.VALUE_FALSE`)",
                                            [LC_J_NUMBER] =
                                                    "Integer value (token `JsonToken.VALUE_NUMBER_INT`)",
                                            [LC_J_STRING] = "String value (token `JsonToken.VALUE_STRING`)",
                                            [LC_J_ARRAY] = "Array value (token `JsonToken.START_ARRAY`)",
                                            [LC_J_OBJECT] = "Object value (token `JsonToken.START_OBJECT`)"};
        const char *what = shape[v->type];

        if (v->type == LC_J_NUMBER && !v->integral)
                what = "Floating-point value (token `JsonToken.VALUE_NUMBER_FLOAT`)";
        if (v->type == LC_J_STRING || (constructed && v->type <= LC_J_NUMBER)) {
                const char *type = constructed ? as : "java.util.LinkedHashMap";
                const char *argument = v->type == LC_J_STRING   ? "String"
                                       : v->type != LC_J_NUMBER ? "boolean/Boolean"
                                       : v->integral            ? "int/Int"
                                                                : "double/Double";
                const char *kind = v->type == LC_J_STRING   ? "String value ('%.*s')"
                                   : v->type == LC_J_NUMBER ? "Number value (%.*s)"
                                                            : "boolean value (%.*s)";
                char value[256];
                if (v->type == LC_J_STRING || v->type == LC_J_NUMBER)
                        snprintf(value, sizeof(value), kind, (int)(v->len < 200 ? v->len : 200), v->s);
                else
                        snprintf(value, sizeof(value), kind, 5, v->type == LC_J_TRUE ? "true" : "false");
                lc_err_set(err, LC_DATA, 500,
                           "Cannot construct instance of `%s` (although at least one Creator "
                           "exists): no %s-argument constructor/factory method to deserialize from %s",
                           type, argument, value);
        } else {
                lc_err_set(err, LC_DATA, 500, "Cannot deserialize value of type `%s` from %s", as, what);
        }
        return located(b, v->at, err);
}

/* A scalar as the string Java makes of it: its literal text. *out NULL for null. */
static int scalar(const binding_t *b, const lc_json_t *v, char **out, lc_err_t *err)
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
                        return lc_err_set(err, LC_DATA, 400,
                                          "A string with a NUL character is not supported");
                *out = lc_strndup(v->s, v->len);
                return 0;
        default:
                return mismatch(b, v, "java.lang.String", false, err);
        }
}

static int config_map(binding_t *b, const lc_json_t *v, lc_props_t **config, lc_err_t *err)
{
        lc_props_t *p;

        if (v->type != LC_J_OBJECT)
                return mismatch(b, v, MAP_TYPE, false, err);
        p = lc_props_new();
        for (const lc_json_t *c = v->child; c; c = c->next) {
                char *value = NULL;
                if (memchr(c->key, 0, c->key_len)) {
                        lc_err_set(err, LC_DATA, 400, "A key with a NUL character is not supported");
                        lc_props_free(p);
                        return -1;
                }
                if (scalar(b, c, &value, err)) {
                        lc_props_free(p);
                        return through(b, "java.util.LinkedHashMap", c->key);
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
static int parse(binding_t *b, const char *body, size_t len, bool lenient, const char *bound, lc_json_t **doc,
                 lc_err_t *err)
{
        *doc = NULL;
        memset(b, 0, sizeof(*b));
        if (len >= 3 && !memcmp(body, "\xEF\xBB\xBF", 3)) {
                body += 3;
                len -= 3;
        }
        b->text = body;
        b->len = len;
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
        binding_t b;
        lc_json_t *doc;
        int rc;

        *config = NULL;
        if (parse(&b, body, len, false, "java.util.Map", &doc, err))
                return -1;
        if (!doc)
                return 0;
        rc = config_map(&b, doc, config, err);
        if (rc)
                unbound(&b, err);
        lc_json_free(doc);
        return rc;
}

static int initial_state(const binding_t *b, const lc_json_t *v, lc_target_state_t *out, lc_err_t *err)
{
        char *text;
        int rc = 0;

        if (v->type == LC_J_ARRAY || v->type == LC_J_OBJECT)
                return mismatch(b, v, REQUEST_CLASS "$InitialState", false, err);
        if (scalar(b, v, &text, err))
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
                rc = lc_err_set(err, LC_DATA, 500,
                                "Cannot construct instance of `" REQUEST_CLASS
                                "$InitialState`, problem: No enum constant " REQUEST_CLASS ".InitialState.%s",
                                text);
        free(text);
        return rc ? located(b, v->at, err) : 0;
}

/* An unknown property is only complained about when the whole object was read. */
static int unrecognized(binding_t *b, const char *key, lc_err_t *err)
{
        const char *end = b->text + b->len;

        lc_err_set(err, LC_DATA, 500,
                   "Unrecognized field \"%s\" (class " REQUEST_CLASS "), not marked as ignorable "
                   "(3 known properties: \"config\", \"name\", \"initial_state\")",
                   key);
        while (end > b->text && end[-1] != '}')
                end--;
        located(b, end, err);
        return through(b, REQUEST_CLASS, key);
}

/* What was read last counts, as everywhere in JSON. */
static int create_property(binding_t *b, const lc_json_t *v, lc_create_body_t *out, lc_err_t *err)
{
        int rc = 0;

        if (!strcmp(v->key, "name")) {
                free(out->name);
                rc = scalar(b, v, &out->name, err);
        } else if (!strcmp(v->key, "config")) {
                lc_props_free(out->config);
                out->config = NULL;
                if (v->type != LC_J_NULL)
                        rc = config_map(b, v, &out->config, err);
        } else {
                out->initial_state = LC_TARGET_NONE;
                rc = initial_state(b, v, &out->initial_state, err);
        }
        return rc ? through(b, REQUEST_CLASS, v->key) : 0;
}

int lc_body_create(const char *body, size_t len, bool lenient, lc_create_body_t *out, lc_err_t *err)
{
        const char *unknown = NULL;
        binding_t b;
        lc_json_t *doc;
        char *name;
        int rc = 0;

        memset(out, 0, sizeof(*out));
        out->initial_state = LC_TARGET_NONE;
        if (parse(&b, body, len, lenient, REQUEST_CLASS, &doc, err))
                return -1;
        if (!doc)
                return lc_err_set(err, LC_DATA, 500,
                                  "Cannot invoke \"" REQUEST_CLASS ".name()\" because "
                                  "\"createRequest\" is null");
        if (doc->type != LC_J_OBJECT)
                rc = mismatch(&b, doc, REQUEST_CLASS, true, err);
        for (const lc_json_t *c = rc ? NULL : doc->child; c && !rc; c = c->next) {
                if (!strcmp(c->key, "name") || !strcmp(c->key, "config") || !strcmp(c->key, "initial_state"))
                        rc = create_property(&b, c, out, err);
                else if (!unknown)
                        unknown = c->key;
        }
        if (!rc && unknown && !lenient)
                rc = unrecognized(&b, unknown, err);
        if (rc) {
                unbound(&b, err);
                lc_create_body_free(out);
        } else {
                name = out->name;
                out->name = lc_strtrim(name ? name : "");
                free(name);
        }
        lc_json_free(doc);
        return rc;
}

void lc_create_body_free(lc_create_body_t *b)
{
        free(b->name);
        lc_props_free(b->config);
        memset(b, 0, sizeof(*b));
}

int lc_body_task_configs(const char *body, size_t len, lc_props_t ***tasks, int *ntasks, lc_err_t *err)
{
        lc_props_t **list = NULL;
        binding_t b;
        lc_json_t *doc;
        int rc = 0, n = 0;

        if (parse(&b, body, len, false, "java.util.List", &doc, err))
                return -1;
        if (!doc) /* never an empty list: that would take the tasks away */
                return lc_err_set(
                        err, LC_FATAL, 500,
                        b.len ? "Cannot invoke \"java.util.List.isEmpty()\" because \"configs\" is null"
                              : "No content to map due to end-of-input");
        if (doc->type != LC_J_ARRAY)
                rc = mismatch(&b, doc,
                              "java.util.ArrayList<java.util.Map<java.lang.String,java.lang.String>>", false,
                              err);
        if (!rc && doc->len)
                list = lc_calloc(doc->len, sizeof(lc_props_t *));
        for (const lc_json_t *c = rc ? NULL : doc->child; c && !rc; c = c->next) {
                rc = config_map(&b, c, &list[n], err);
                n += !rc;
        }
        if (rc)
                unbound(&b, err);
        lc_json_free(doc);
        if (!rc && tasks) {
                *tasks = list;
                *ntasks = n;
                return 0;
        }
        for (int i = 0; i < n; i++)
                lc_props_free(list[i]);
        free(list);
        return rc;
}
