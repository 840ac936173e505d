/*
 * providers.c - see providers.h: FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider.
 *
 * Threads: any.  Tests: spec/unit/config_spec.lua
 */
#include "config/providers.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/strv.h"
#include "config/properties.h"
#include "config/topic_regex.h"
#include "convert/java_regex.h"
#include <stdlib.h>
#include <sys/stat.h>

typedef enum { FROM_FILE, FROM_DIRECTORY, FROM_ENVIRONMENT } kind_t;

typedef struct provider {
        char *name;
        kind_t kind;
        bool limited;      /* allowed.paths is set */
        lc_strv_t allowed; /* normalized */
        char *pattern;     /* allowlist.pattern; NULL: all */
} provider_t;

struct lc_providers {
        provider_t *v;
        size_t n;
};

/* Path.normalize(): "." and ".." removed, no link is followed. */
static char *normalized(const char *path)
{
        lc_strv_t parts = {NULL, 0};
        lc_buf_t b = LC_BUF_SURE;
        bool absolute = *path == '/';

        while (*path) {
                size_t n = strcspn(path, "/");
                char *part = lc_strndup(path, n);

                if (n == 2 && !strcmp(part, "..")) {
                        if (parts.n && strcmp(parts.v[parts.n - 1], ".."))
                                free(parts.v[--parts.n]);
                        else if (!absolute)
                                lc_strv_add(&parts, part);
                } else if (n && strcmp(part, ".")) {
                        lc_strv_add(&parts, part);
                }
                free(part);
                path += n + (path[n] == '/');
        }
        for (size_t i = 0; i < parts.n; i++)
                lc_buf_printf(&b, "%s%s", i || absolute ? "/" : "", parts.v[i]);
        if (!parts.n)
                lc_buf_adds(&b, absolute ? "/" : "");
        lc_strv_free(&parts);
        return b.p ? lc_buf_take(&b, NULL) : lc_strdup("");
}

static int set_allowed(provider_t *p, const char *list, lc_err_t *err)
{
        p->limited = list && *list;
        while (p->limited) {
                size_t n = strcspn(list, ","); /* items are not trimmed, as in Java */
                char *item = lc_strndup(list, n), *path = normalized(item);
                struct stat st;
                int rc = 0;

                free(item);
                if (*path != '/')
                        rc = lc_err_set_cls(err, LC_FATAL, 500, LC_CLS_CONFIG, "Path %s is not absolute",
                                            path);
                else if (stat(path, &st))
                        rc = lc_err_set_cls(err, LC_FATAL, 500, LC_CLS_CONFIG, "Path %s does not exist",
                                            path);
                else
                        lc_strv_add(&p->allowed, path);
                free(path);
                if (rc || !list[n])
                        return rc;
                list += n + 1;
        }
        return 0;
}

static bool path_allowed(const provider_t *p, const char *path)
{
        char *clean;
        bool ok = !p->limited;

        if (ok)
                return true;
        clean = normalized(path);
        for (size_t i = 0; i < p->allowed.n && !ok; i++) {
                size_t n = strlen(p->allowed.v[i]);

                ok = !strncmp(clean, p->allowed.v[i], n) &&
                     (!clean[n] || clean[n] == '/' || (n && p->allowed.v[i][n - 1] == '/'));
        }
        free(clean);
        if (!ok)
                lc_log(LC_WARN, "CONFIG", "The path %s is not allowed to be accessed", path);
        return ok;
}

static bool class_kind(const char *name, kind_t *kind)
{
        static const struct {
                const char *name;
                kind_t kind;
        } known[] = {
                {"File", FROM_FILE},
                {"Directory", FROM_DIRECTORY},
                {"EnvVar", FROM_ENVIRONMENT},
        };
        static const char package[] = "org.apache.kafka.common.config.provider.", suffix[] = "ConfigProvider";
        bool full = !strncmp(name, package, sizeof(package) - 1);

        if (full)
                name += sizeof(package) - 1;
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
                size_t n = strlen(known[i].name);

                *kind = known[i].kind;
                if (!strncmp(name, known[i].name, n) && (!strcmp(name + n, suffix) || (!full && !name[n])))
                        return true;
        }
        return false;
}

static int add_provider(lc_providers_t *set, const lc_props_t *worker, const char *name, lc_err_t *err)
{
        char *class_key = lc_asprintf("config.providers.%s.class", name);
        char *prefix = lc_asprintf("config.providers.%s.param.", name);
        const char *class_name = lc_props_get(worker, class_key);
        lc_props_t *params = lc_props_prefixed(worker, prefix);
        kind_t kind;
        int rc = 0;

        if (!class_name)
                goto done; /* as in Java: variables of such a provider stay text */
        if (!class_kind(class_name, &kind)) {
                rc = lc_err_set_cls(err, LC_FATAL, 500, LC_CLS_CONFIG,
                                    "Invalid value %s for configuration %s: Could not load config provider "
                                    "class or one of its dependencies",
                                    class_name, class_key);
                goto done;
        }
        set->v = lc_realloc(set->v, (set->n + 1) * sizeof(*set->v));
        provider_t *p = &set->v[set->n++];
        memset(p, 0, sizeof(*p));
        p->name = lc_strdup(name);
        p->kind = kind;
        if (kind == FROM_ENVIRONMENT) {
                p->pattern = lc_strdup(lc_props_get(params, "allowlist.pattern"));
                if (p->pattern && lc_java_regex_check(p->pattern, err)) {
                        lc_err_wrap(err, LC_CLS_CONFIG, "Pattern syntax error in %sallowlist.pattern",
                                    prefix);
                        rc = -1;
                }
        } else {
                rc = set_allowed(p, lc_props_get(params, "allowed.paths"), err);
        }
done:
        free(class_key);
        free(prefix);
        lc_props_free(params);
        return rc;
}

lc_providers_t *lc_providers_new(const lc_props_t *worker, lc_err_t *err)
{
        lc_providers_t *set = lc_calloc(1, sizeof(*set));
        lc_strv_t names = {NULL, 0};
        const char *list = lc_props_get(worker, "config.providers");

        lc_strv_split(&names, list ? list : "");
        for (size_t i = 0; i < names.n; i++) {
                if (add_provider(set, worker, names.v[i], err)) {
                        lc_providers_free(set);
                        set = NULL;
                        break;
                }
        }
        lc_strv_free(&names);
        return set;
}

void lc_providers_free(lc_providers_t *set)
{
        if (!set)
                return;
        for (size_t i = 0; i < set->n; i++) {
                free(set->v[i].name);
                free(set->v[i].pattern);
                lc_strv_free(&set->v[i].allowed);
        }
        free(set->v);
        free(set);
}

/* ---- look-ups: 1 found (*value malloc'ed), 0 not, -1 error ---- */

static int from_file(const provider_t *p, const char *path, const char *key, char **value, lc_err_t *err)
{
        lc_props_t *props = NULL;
        lc_err_t why = {0};
        size_t len;
        char *text;
        int rc = 0;

        if (!*path || !path_allowed(p, path))
                return 0;
        text = lc_file_read(path, &len, &why);
        if (!text || lc_properties_parse_utf8(text, len, &props, &why)) {
                lc_log(LC_ERROR, "CONFIG", "Could not read properties from file %s: %s", path, why.msg);
                rc = lc_err_set_cls(err, LC_FATAL, 500, LC_CLS_CONFIG,
                                    "Could not read properties from file %s", path);
        } else if (lc_props_get(props, key)) {
                *value = lc_strdup(lc_props_get(props, key));
                rc = 1;
        }
        free(text);
        lc_props_free(props);
        return rc;
}

static int from_directory(const provider_t *p, const char *path, const char *key, char **value, lc_err_t *err)
{
        lc_err_t why = {0};
        struct stat st;
        size_t len = 0;
        char *file;
        int rc = 0;

        if (!*path || !path_allowed(p, path))
                return 0;
        if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
                lc_log(LC_WARN, "CONFIG", "The path %s is not a directory", path);
                return 0;
        }
        if (!*key || strchr(key, '/')) /* Java lists the folder: a key is a name in it */
                return 0;
        file = lc_asprintf("%s/%s", path, key);
        if (!stat(file, &st) && S_ISREG(st.st_mode)) {
                *value = lc_file_read(file, &len, &why);
                rc = 1;
                if (!*value || memchr(*value, '\0', len)) {
                        lc_log(LC_ERROR, "CONFIG", "Could not read file %s for property %s: %s", file, key,
                               *value ? "it holds a NUL byte" : why.msg);
                        rc = lc_err_set_cls(err, LC_FATAL, 500, LC_CLS_CONFIG,
                                            "Could not read file %s for property %s", file, key);
                        free(*value);
                        *value = NULL;
                }
        }
        free(file);
        return rc;
}

static int from_environment(const provider_t *p, const char *path, const char *key, char **value,
                            lc_err_t *err)
{
        const char *v;

        if (*path)
                return lc_err_set_cls(err, LC_FATAL, 500, LC_CLS_CONFIG,
                                      "Path is not supported for EnvVarConfigProvider, invalid value '%s'",
                                      path);
        v = getenv(key);
        if (!v || (p->pattern && !lc_topic_regex_matches(p->pattern, key)))
                return 0;
        *value = lc_strdup(v);
        return 1;
}

static int look_up(const lc_providers_t *set, const char *provider, const char *path, const char *key,
                   char **value, lc_err_t *err)
{
        for (size_t i = 0; i < set->n; i++) {
                const provider_t *p = &set->v[i];

                if (strcmp(p->name, provider))
                        continue;
                switch (p->kind) {
                case FROM_FILE:
                        return from_file(p, path, key, value, err);
                case FROM_DIRECTORY:
                        return from_directory(p, path, key, value, err);
                case FROM_ENVIRONMENT:
                        return from_environment(p, path, key, value, err);
                }
        }
        return 0;
}

/* The next ${...:...} at or behind `from`: [*begin, *end) with its braces; false: none. */
static bool next_variable(const char *from, const char **begin, const char **end)
{
        for (const char *p = strstr(from, "${"); p; p = strstr(p + 1, "${")) {
                const char *colon = p + 2 + strcspn(p + 2, ":}"), *close = strchr(p, '}');

                if (!close)
                        return false;
                if (*colon == ':') {
                        *begin = p;
                        *end = close + 1;
                        return true;
                }
        }
        return false;
}

bool lc_has_variable(const char *text)
{
        const char *b, *e;
        return text && next_variable(text, &b, &e);
}

/* Appends `text` with its variables replaced. */
static int resolve_value(const lc_providers_t *set, const char *text, lc_buf_t *out, lc_err_t *err)
{
        const char *begin, *end;

        while (next_variable(text, &begin, &end)) {
                const char *name = begin + 2, *close = end - 1;
                const char *first = memchr(name, ':', (size_t)(close - name));
                const char *second = memchr(first + 1, ':', (size_t)(close - first - 1));
                char *provider = lc_strndup(name, (size_t)(first - name));
                char *path = second ? lc_strndup(first + 1, (size_t)(second - first - 1)) : lc_strdup("");
                const char *key_at = second ? second + 1 : first + 1;
                char *key = lc_strndup(key_at, (size_t)(close - key_at)), *value = NULL;
                int rc = look_up(set, provider, path, key, &value, err);

                lc_buf_add(out, text, (size_t)(begin - text));
                if (rc > 0)
                        lc_buf_adds(out, value);
                else
                        lc_buf_add(out, begin, (size_t)(end - begin));
                free(provider);
                free(path);
                free(key);
                free(value);
                if (rc < 0)
                        return -1;
                text = end;
        }
        lc_buf_adds(out, text);
        return 0;
}

lc_props_t *lc_providers_resolve(const lc_providers_t *set, const lc_props_t *raw, lc_err_t *err)
{
        lc_props_t *out = lc_props_copy(raw);
        lc_buf_t b = LC_BUF_SURE;

        for (size_t i = 0; set->n && i < lc_props_count(raw); i++) {
                const char *v = lc_props_value(raw, i);

                if (!lc_has_variable(v))
                        continue;
                lc_buf_clear(&b);
                if (resolve_value(set, v, &b, err)) {
                        lc_props_free(out);
                        out = NULL;
                        break;
                }
                lc_props_set(out, lc_props_key(raw, i), b.p);
        }
        lc_buf_free(&b);
        return out;
}
