/*
 * plugins.c - finds plugins on disk, loads each once in a state of its own and keeps what it declares.
 *
 * Threads:   one; the set is immutable afterwards (its bytecode table has its own lock).
 * Ownership: the set owns everything; rows of C converters are static.
 * Tests:     spec/unit/plugins_spec.lua
 */
#include "script/declaration.h"
#include "base/alloc.h"
#include "base/log.h"
#include "convert/converter.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char VERSION[] = "4.3.1"; /* of standard plugins: Kafka Connect's, which they stand for */

static void add(lc_plugins_t *set, lc_plugin_t *p)
{
        set->v = lc_realloc(set->v, (set->n + 1) * sizeof(*set->v));
        set->v[set->n++] = p;
}

static bool is_file(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_dir(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool ends_with(const char *s, const char *tail)
{
        size_t n = strlen(s), t = strlen(tail);

        return n > t && !strcmp(s + n - t, tail);
}

/* Names in a folder, sorted, hidden ones left out. -1 with errno. */
static int names_in(const char *folder, lc_strv_t *out)
{
        DIR *d = opendir(folder);
        struct dirent *e;

        if (!d)
                return -1;
        while ((e = readdir(d)))
                if (e->d_name[0] != '.')
                        lc_strv_add(out, e->d_name);
        closedir(d);
        lc_strv_sort(out);
        return 0;
}

static void add_broken(lc_plugins_t *set, const char *path, const char *root, const char *standard,
                       lc_plugin_type_t type, const lc_err_t *err)
{
        lc_plugin_t *p = lc_calloc(1, sizeof(*p));

        p->type = type;
        p->class_name = lc_strdup(root);
        p->version = lc_strdup("undefined");
        p->location = lc_strdup(standard ? standard : path);
        p->error = lc_strdup(err->msg[0] ? err->msg : "cannot be loaded");
        lc_log(LC_ERROR, "PLUGIN", "Plugin %s cannot be loaded: %s", path, p->error);
        add(set, p);
}

/* path: the Lua file. folder: NULL for a single file. */
static void load_entry(lc_plugins_t *set, const char *path, const char *folder, const char *root,
                       bool standard, lc_plugin_type_t guess)
{
        lc_declarations_t found = {.set = set->impl,
                                   .path = path,
                                   .folder = folder,
                                   .root = root,
                                   .location = standard ? "standard"
                                               : folder ? folder
                                                        : path,
                                   .version = standard ? VERSION : NULL};
        lc_err_t err = {0};

        if (lc_declarations_load(&found, &err) < 0) {
                add_broken(set, path, root, standard ? "standard" : NULL, guess, &err);
        } else {
                for (size_t i = 0; i < found.n; i++) {
                        lc_log(LC_DEBUG, "PLUGIN", "Added plugin '%s' (%s, version %s) from %s",
                               found.v[i]->class_name, lc_plugin_type_name(found.v[i]->type),
                               found.v[i]->version, path);
                        add(set, found.v[i]);
                        found.v[i] = NULL;
                }
        }
        lc_declarations_free(&found);
}

static void load_folder(lc_plugins_t *set, const char *folder, const char *root, bool standard,
                        lc_plugin_type_t guess)
{
        char *path = lc_asprintf("%s/init.lua", folder);

        load_entry(set, path, folder, root, standard, guess);
        free(path);
}

/* Says why an entry that looks like a plugin is none; of others (notes.txt) nothing. */
static void warn_of_entry(const char *path)
{
        struct stat st;

        if (stat(path, &st) < 0)
                lc_log(LC_WARN, "PLUGIN", "plugin.path: cannot read %s: %s%s: skipped", path, strerror(errno),
                       lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? " (a symbolic link)" : "");
        else if (S_ISDIR(st.st_mode))
                lc_log(LC_WARN, "PLUGIN", "plugin.path: folder %s has no init.lua: skipped", path);
        else if (ends_with(path, ".lua"))
                lc_log(LC_WARN, "PLUGIN", "plugin.path: %s is not a regular file: skipped", path);
}

/* Entries NAME.lua and NAME/init.lua of a folder. */
static void scan_folder(lc_plugins_t *set, const char *folder, bool standard, lc_plugin_type_t guess)
{
        lc_strv_t names = {NULL, 0};

        if (names_in(folder, &names) < 0) {
                if (!standard)
                        lc_log(LC_WARN, "PLUGIN", "plugin.path: cannot read folder %s: %s", folder,
                               strerror(errno));
                return;
        }
        for (size_t i = 0; i < names.n; i++) {
                char *path = lc_asprintf("%s/%s", folder, names.v[i]),
                     *init = lc_asprintf("%s/init.lua", path);

                if (is_file(init)) {
                        load_folder(set, path, names.v[i], standard, guess);
                } else if (ends_with(names.v[i], ".lua") && is_file(path)) {
                        char *root = lc_strndup(names.v[i], strlen(names.v[i]) - 4);
                        load_entry(set, path, NULL, root, standard, guess);
                        free(root);
                } else if (ends_with(names.v[i], ".jar") || ends_with(names.v[i], ".zip")) {
                        lc_log(LC_WARN, "PLUGIN", "plugin.path: %s is Java, plugins here are Lua: skipped",
                               path);
                } else if (!standard) {
                        warn_of_entry(path);
                }
                free(path);
                free(init);
        }
        lc_strv_free(&names);
}

static void scan_element(lc_plugins_t *set, const char *element)
{
        char *path = lc_strdup(element), *init;
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                path[--n] = '\0';
        init = lc_asprintf("%s/init.lua", path);
        if (is_file(init)) /* the plugin itself instead of the folder around it */
                load_folder(set, path, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, false,
                            LC_PLUGIN_SOURCE);
        else if (is_dir(path))
                scan_folder(set, path, false, LC_PLUGIN_SOURCE);
        else if (ends_with(path, ".jar") || ends_with(path, ".zip"))
                lc_log(LC_WARN, "PLUGIN", "plugin.path: %s is Java, plugins here are Lua: skipped", path);
        else
                lc_log(LC_WARN, "PLUGIN", "plugin.path: there is no folder %s: skipped", path);
        free(init);
        free(path);
}

static void add_converter(lc_plugins_t *set, const lc_converter_class_t *cls, lc_plugin_type_t type)
{
        lc_plugin_t *p = lc_calloc(1, sizeof(*p));

        p->type = type;
        p->class_name = lc_strdup(cls->class_name);
        p->version = lc_strdup(VERSION);
        p->location = lc_strdup("standard");
        p->rows = cls->rows;
        p->nrows = cls->nrows;
        lc_plugin_add_aliases(p);
        /* a class that is both has one set of aliases */
        if (type == LC_PLUGIN_HEADER_CONVERTER && cls->converter) {
                lc_plugin_t as = {.type = LC_PLUGIN_CONVERTER, .class_name = p->class_name};
                lc_plugin_add_aliases(&as);
                for (size_t i = 0; i < as.aliases.n; i++)
                        if (!lc_strv_has(&p->aliases, as.aliases.v[i]))
                                lc_strv_add(&p->aliases, as.aliases.v[i]);
                lc_strv_free(&as.aliases);
        }
        add(set, p);
}

static int by_type_and_class(const void *a, const void *b)
{
        const lc_plugin_t *x = *(lc_plugin_t *const *)a, *y = *(lc_plugin_t *const *)b;

        return x->type != y->type ? (int)x->type - (int)y->type : strcmp(x->class_name, y->class_name);
}

lc_plugins_t *lc_plugins_scan(const char *home, const lc_strv_t *plugin_path, lc_err_t *err)
{
        lc_plugins_t *set = lc_calloc(1, sizeof(*set));
        lc_plugin_set_t *impl = lc_calloc(1, sizeof(*impl));
        static const struct {
                const char *folder;
                lc_plugin_type_t guess;
        } standard[] = {{"connectors", LC_PLUGIN_SOURCE},
                        {"lua/transforms", LC_PLUGIN_TRANSFORMATION},
                        {"lua/predicates", LC_PLUGIN_PREDICATE}};

        set->impl = impl;
        impl->home = lc_strdup(home);
        impl->code = lc_code_new();
        /* our own Lua must load; afterwards only plugins can be broken */
        impl->scan = lc_state_new(impl->code, impl->home, NULL, "scan", NULL, true, err);
        if (!impl->scan) {
                lc_plugins_free(set);
                return NULL;
        }
        for (size_t i = 0; i < sizeof(standard) / sizeof(*standard); i++) {
                char *folder = lc_asprintf("%s/%s", home, standard[i].folder);
                scan_folder(set, folder, true, standard[i].guess);
                free(folder);
        }
        lc_state_free(impl->scan);
        impl->scan = NULL;
        for (size_t i = 0; plugin_path && i < plugin_path->n; i++)
                if (plugin_path->v[i][0])
                        scan_element(set, plugin_path->v[i]);
        for (const lc_converter_class_t *const *c = lc_converter_classes; *c; c++) {
                if ((*c)->converter)
                        add_converter(set, *c, LC_PLUGIN_CONVERTER);
                if ((*c)->header_converter)
                        add_converter(set, *c, LC_PLUGIN_HEADER_CONVERTER);
        }
        if (set->n)
                qsort(set->v, set->n, sizeof(*set->v), by_type_and_class);
        return set;
}

void lc_plugins_free(lc_plugins_t *set)
{
        lc_plugin_set_t *impl;

        if (!set)
                return;
        impl = set->impl;
        for (size_t i = 0; i < set->n; i++)
                lc_plugin_free(set->v[i]);
        free(set->v);
        lc_code_free(impl->code);
        free(impl->home);
        free(impl);
        free(set);
}
