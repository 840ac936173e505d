/*
 * plugin.c - fuzz target: a random Lua file as a plugin. It is loaded within the load phase's limits or refused
 * with a text; the code of a standard plugin in it has its settings validated.
 */
#include "fuzz.h"
#include "script/declaration.h"
#include <unistd.h>

static char *home, *path;
static pid_t owner;

static void end(void)
{
        if (getpid() == owner)
                unlink(path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        lc_err_t err = {0};

        (void)argc, (void)argv;
        lc_log_set_level(NULL, "OFF");
        home = lc_home_find(&err);
        fuzz_check(home != NULL, err.msg);
        owner = getpid();
        path = lc_asprintf("/tmp/luaconnect-fuzz-plugin-%d.lua", (int)owner);
        atexit(end);
        return 0;
}

static void validate(const lc_plugin_t *p)
{
        lc_props_t *config = lc_props_new();
        lc_config_infos_t *infos = lc_config_infos_new("fuzz");
        lc_err_t err = {0};

        lc_props_set(config, "topic", "t");
        for (int i = 0; i < p->nrows; i++)
                if (p->rows[i].name)
                        lc_config_infos_add(infos, &p->rows[i], p->rows[i].name);
        if (p->validate)
                p->validate(p, config, infos, &err);
        lc_err_clear(&err);
        if (p->exactly_once)
                p->exactly_once(p, config, &err);
        lc_config_infos_free(infos);
        lc_props_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        lc_plugin_set_t set = {.home = home, .code = lc_code_new()};
        lc_declarations_t found = {.set = &set, .path = path, .root = "fuzz", .location = path};
        lc_err_t err = {0};
        FILE *file = fopen(path, "wb");

        fuzz_check(file != NULL, "cannot write the plugin");
        fwrite(data, 1, n, file);
        fclose(file);
        if (lc_declarations_load(&found, &err) < 0)
                fuzz_check(err.kind == LC_FATAL && err.msg[0], "a bad plugin without an error");
        for (size_t i = 0; i < found.n; i++)
                validate(found.v[i]);
        lc_declarations_free(&found);
        lc_code_free(set.code);
        return 0;
}
