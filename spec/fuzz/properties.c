/*
 * properties.c - fuzz target: .properties files as bytes and as UTF-8, and the worker's settings made of them.
 * The lowest bit of the first byte: the worker's mode.
 */
#include "fuzz.h"
#include "config/properties.h"
#include "config/worker_config.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        (void)argc, (void)argv;
        lc_log_set_level(NULL, "OFF");
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        fuzz_t f = {data, n};
        lc_worker_mode_t mode = fuzz_byte(&f) & 1 ? LC_STANDALONE : LC_DISTRIBUTED;
        char *text = fuzz_rest(&f, &n);
        lc_props_t *props = NULL;
        lc_err_t err = {0};

        if (lc_properties_parse_utf8(text, n, &props, &err) == 0)
                lc_props_free(props);
        lc_err_clear(&err);
        if (lc_properties_parse(text, n, &props, &err) == 0) {
                /* providers would read files and the environment */
                bool plain = !lc_props_has(props, "config.providers");
                lc_worker_config_t *wc = plain ? lc_worker_config_new(props, mode, &err) : NULL;
                if (wc) {
                        lc_buf_t url = LC_BUF_INIT, id = LC_BUF_INIT;
                        lc_err_t e = {0};
                        int port;
                        if (lc_worker_config_listener(wc, &url, &port, &e) == 0)
                                lc_worker_config_advertised(wc, 8083, &url, &id, &e);
                        lc_buf_free(&url);
                        lc_buf_free(&id);
                }
                lc_worker_config_free(wc);
                lc_props_free(props);
        } else {
                fuzz_check(err.kind == LC_FATAL && err.msg[0], "a bad file without an error");
        }
        free(text);
        return 0;
}
