/* filters.c - see filters.h. */
#include "rest/filters.h"
#include "base/alloc.h"
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

typedef struct origin {
        char *text;
        regex_t pattern;
        bool compiled;
} origin_t;
struct lc_filters {
        origin_t *origins;
        size_t norigins;
        char *methods;
        lc_strv_t headers; /* "Name: value" */
        lc_strv_t dates;   /* names of setDate and addDate rules */
};

static int bad_rule(lc_err_t *err, const char *text)
{
        return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s", text);
}

/* "set X-Frame-Options: DENY" */
static int add_rule(lc_filters_t *f, const char *rule, lc_err_t *err)
{
        static const char *const actions[] = {"set", "add", "setDate", "addDate"};
        size_t n = strcspn(rule, " \t"), name_len;
        const char *name = rule + n + strspn(rule + n, " \t"), *colon = strchr(name, ':'), *value;
        int action = -1;
        char *text;

        if (!rule[n] || !colon) {
                text = lc_asprintf("Invalid format of header config '%s'. Expected: '[action] [header name]:"
                                   "[header value]'",
                                   rule);
                bad_rule(err, text);
                free(text);
                return -1;
        }
        for (int i = 0; i < 4; i++)
                if (strlen(actions[i]) == n && !strncasecmp(actions[i], rule, n))
                        action = i;
        if (action < 0) {
                text = lc_asprintf(
                        "Invalid header config action: '%.*s'. Valid action(s): set, add, setDate, "
                        "addDate",
                        (int)n, rule);
                bad_rule(err, text);
                free(text);
                return -1;
        }
        name_len = (size_t)(colon - name);
        while (name_len > 0 && isspace((unsigned char)name[name_len - 1]))
                name_len--;
        if (name_len == 0 || memchr(name, ' ', name_len)) {
                text = lc_asprintf("Invalid header name: '%.*s'", (int)name_len, name);
                bad_rule(err, text);
                free(text);
                return -1;
        }
        value = colon + 1 + strspn(colon + 1, " \t");
        text = action < 2 ? lc_asprintf("%.*s: %s", (int)name_len, name, value) : lc_strndup(name, name_len);
        lc_strv_add(action < 2 ? &f->headers : &f->dates, text);
        free(text);
        return 0;
}

lc_filters_t *lc_filters_new(const char *origins, const char *methods, const char *headers, lc_err_t *err)
{
        lc_filters_t *f = lc_calloc(1, sizeof(*f));
        lc_strv_t list = {NULL, 0};

        f->methods = lc_strdup(methods && *methods ? methods : "GET,POST,HEAD");
        if (origins)
                lc_strv_split(&list, origins);
        for (size_t i = 0; i < list.n; i++) {
                origin_t *o;
                char *full;
                if (!*list.v[i])
                        continue;
                f->origins = lc_realloc(f->origins, (f->norigins + 1) * sizeof(*f->origins));
                o = &f->origins[f->norigins++];
                o->text = lc_strdup(list.v[i]);
                full = lc_asprintf("^(%s)$", list.v[i]);
                o->compiled = regcomp(&o->pattern, full, REG_EXTENDED | REG_NOSUB) == 0;
                free(full);
        }
        lc_strv_free(&list);
        if (headers && *headers)
                lc_strv_split(&list, headers);
        for (size_t i = 0; i < list.n; i++)
                if (add_rule(f, list.v[i], err)) {
                        lc_strv_free(&list);
                        lc_filters_free(f);
                        return NULL;
                }
        lc_strv_free(&list);
        return f;
}

void lc_filters_free(lc_filters_t *f)
{
        if (!f)
                return;
        for (size_t i = 0; i < f->norigins; i++) {
                free(f->origins[i].text);
                if (f->origins[i].compiled)
                        regfree(&f->origins[i].pattern);
        }
        free(f->origins);
        free(f->methods);
        lc_strv_free(&f->headers);
        lc_strv_free(&f->dates);
        free(f);
}

static bool allowed(const lc_filters_t *f, const char *origin)
{
        for (size_t i = 0; i < f->norigins; i++) {
                const origin_t *o = &f->origins[i];
                if (!strcmp(o->text, "*") || !strcasecmp(o->text, origin) ||
                    (o->compiled && regexec(&o->pattern, origin, 0, NULL, 0) == 0))
                        return true;
        }
        return false;
}

void lc_filters_apply(const lc_filters_t *f, const lc_rest_request_t *in, lc_rest_answer_t *out)
{
        if (f->norigins) {
                lc_rest_answer_header(out, "Vary", "Origin");
                if (in->origin && allowed(f, in->origin)) {
                        lc_rest_answer_header(out, "Access-Control-Allow-Origin", in->origin);
                        if (in->preflight && !strcmp(in->method, "OPTIONS")) {
                                lc_rest_answer_header(out, "Access-Control-Allow-Methods", f->methods);
                                lc_rest_answer_header(out, "Access-Control-Allow-Headers", "Content-Type");
                                lc_rest_answer_header(out, "Access-Control-Max-Age", "60");
                        }
                }
        }
        for (size_t i = 0; i < f->headers.n; i++)
                lc_strv_add(&out->headers, f->headers.v[i]);
        for (size_t i = 0; i < f->dates.n; i++) {
                char date[64];
                time_t now = time(NULL);
                struct tm tm;
                gmtime_r(&now, &tm);
                strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
                lc_rest_answer_header(out, f->dates.v[i], date);
        }
}
