/* entries.c - see entries.h. The caller's thread. Spec: spec/unit/plugins_spec.lua, reload_spec.lua. */
#include "script/entries.h"
#include "base/alloc.h"
#include "base/log.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 16 };

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

/* path: the Lua file. folder: NULL for a single file. */
static void add(lc_entries_t *out, const char *path, const char *folder, const char *root, bool standard,
                lc_plugin_type_t guess)
{
        if (lc_entries_at(out, path)) /* a folder that plugin.path names twice */
                return;
        out->v = lc_realloc(out->v, (out->n + 1) * sizeof(*out->v));
        out->v[out->n++] = (lc_entry_t){.path = lc_strdup(path),
                                        .folder = lc_strdup(folder),
                                        .root = lc_strdup(root),
                                        .standard = standard,
                                        .guess = guess};
}

static void add_folder(lc_entries_t *out, const char *folder, const char *root, bool standard,
                       lc_plugin_type_t guess)
{
        char *path = lc_asprintf("%s/init.lua", folder);

        add(out, path, folder, root, standard, guess);
        free(path);
}

static void add_file(lc_entries_t *out, const char *path, const char *name, bool standard,
                     lc_plugin_type_t guess)
{
        char *root = lc_strndup(name, strlen(name) - 4);

        add(out, path, NULL, root, standard, guess);
        free(root);
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

static void warn_of_java(const char *path, bool say)
{
        if (say)
                lc_log(LC_WARN, "PLUGIN", "plugin.path: %s is Java, plugins here are Lua: skipped", path);
}

/* Entries NAME.lua and NAME/init.lua of a folder. */
static void find_in(lc_entries_t *out, const char *folder, bool standard, lc_plugin_type_t guess, bool say)
{
        lc_strv_t names = {NULL, 0};

        if (names_in(folder, &names) < 0) {
                if (!standard && say)
                        lc_log(LC_WARN, "PLUGIN", "plugin.path: cannot read folder %s: %s", folder,
                               strerror(errno));
                return;
        }
        for (size_t i = 0; i < names.n; i++) {
                char *path = lc_asprintf("%s/%s", folder, names.v[i]),
                     *init = lc_asprintf("%s/init.lua", path);

                if (is_file(init)) {
                        add_folder(out, path, names.v[i], standard, guess);
                } else if (ends_with(names.v[i], ".lua") && is_file(path)) {
                        add_file(out, path, names.v[i], standard, guess);
                } else if (ends_with(names.v[i], ".jar") || ends_with(names.v[i], ".zip")) {
                        warn_of_java(path, say);
                } else if (!standard && say) {
                        warn_of_entry(path);
                }
                free(path);
                free(init);
        }
        lc_strv_free(&names);
}

static void find_element(lc_entries_t *out, const char *element, bool say)
{
        char *path = lc_strdup(element), *init;
        size_t n = strlen(path);

        while (n > 1 && path[n - 1] == '/')
                path[--n] = '\0';
        init = lc_asprintf("%s/init.lua", path);
        if (is_file(init)) /* the plugin itself instead of the folder around it */
                add_folder(out, path, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, false,
                           LC_PLUGIN_SOURCE);
        else if (is_dir(path))
                find_in(out, path, false, LC_PLUGIN_SOURCE, say);
        else if (ends_with(path, ".lua") && is_file(path))
                add_file(out, path, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, false,
                         LC_PLUGIN_SOURCE);
        else if (ends_with(path, ".jar") || ends_with(path, ".zip"))
                warn_of_java(path, say);
        else if (say)
                lc_log(LC_WARN, "PLUGIN", "plugin.path: there is no folder %s: skipped", path);
        free(init);
        free(path);
}

void lc_entries_find(lc_entries_t *out, const char *home, const lc_strv_t *plugin_path, bool say)
{
        static const struct {
                const char *folder;
                lc_plugin_type_t guess;
        } standard[] = {{"connectors", LC_PLUGIN_SOURCE},
                        {"lua/transforms", LC_PLUGIN_TRANSFORMATION},
                        {"lua/predicates", LC_PLUGIN_PREDICATE}};

        for (size_t i = 0; i < sizeof(standard) / sizeof(*standard); i++) {
                char *folder = lc_asprintf("%s/%s", home, standard[i].folder);
                find_in(out, folder, true, standard[i].guess, say);
                free(folder);
        }
        for (size_t i = 0; plugin_path && i < plugin_path->n; i++)
                if (plugin_path->v[i][0])
                        find_element(out, plugin_path->v[i], say);
}

void lc_entries_add(lc_entries_t *out, const lc_entry_t *e)
{
        add(out, e->path, e->folder, e->root, e->standard, e->guess);
        out->v[out->n - 1].print = e->print;
}

void lc_entries_free(lc_entries_t *e)
{
        for (size_t i = 0; i < e->n; i++) {
                free(e->v[i].path);
                free(e->v[i].folder);
                free(e->v[i].root);
        }
        free(e->v);
        *e = (lc_entries_t){NULL, 0};
}

const lc_entry_t *lc_entries_at(const lc_entries_t *e, const char *path)
{
        for (size_t i = 0; i < e->n; i++)
                if (!strcmp(e->v[i].path, path))
                        return &e->v[i];
        return NULL;
}

/* ---- what is in them ---------------------------------------------------------------------------- */

static void files_below(const char *folder, int depth, lc_strv_t *out)
{
        lc_strv_t names = {NULL, 0};

        if (depth > DEEPEST || names_in(folder, &names) < 0)
                return;
        for (size_t i = 0; i < names.n; i++) {
                char *path = lc_asprintf("%s/%s", folder, names.v[i]);
                if (is_dir(path)) {
                        if (depth || strcmp(names.v[i], "spec") != 0)
                                files_below(path, depth + 1, out);
                } else if (ends_with(names.v[i], ".lua") && is_file(path)) {
                        lc_strv_add(out, path);
                }
                free(path);
        }
        lc_strv_free(&names);
}

void lc_entry_files(const char *folder, lc_strv_t *out)
{
        files_below(folder, 0, out);
}

/* FNV-1a; only equality matters. */
static uint64_t mix(uint64_t h, const void *p, size_t n)
{
        const unsigned char *s = p;

        for (size_t i = 0; i < n; i++)
                h = (h ^ s[i]) * 1099511628211u;
        return h;
}

static uint64_t mix_file(uint64_t h, const char *path)
{
        char part[16384];
        ssize_t n;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        h = mix(h, path, strlen(path) + 1);
        if (fd < 0)
                return mix(h, "?", 1);
        while ((n = read(fd, part, sizeof(part))) > 0 || (n < 0 && errno == EINTR))
                if (n > 0)
                        h = mix(h, part, (size_t)n);
        close(fd);
        return mix(h, "", 1);
}

uint64_t lc_entry_print(const lc_entry_t *e)
{
        uint64_t h = 14695981039346656037u;
        lc_strv_t files = {NULL, 0};

        if (!e->folder)
                return mix_file(h, e->path);
        lc_entry_files(e->folder, &files);
        for (size_t i = 0; i < files.n; i++)
                h = mix_file(h, files.v[i]);
        lc_strv_free(&files);
        return h;
}
