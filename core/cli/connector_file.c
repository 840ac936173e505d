/* connector_file.c - see connector_file.h. */
#include "cli/connector_file.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "config/properties.h"
#include "rest/body.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 16 << 20 };

static int unreadable(const char *path, int code, lc_err_t *err)
{
        return lc_err_set_cls(err, LC_FATAL, code, "java.io.FileNotFoundException", "%s (%s)", path,
                              strerror(code));
}

/* The whole file. A fifo would block the start for ever, so only plain files are taken. */
static int read_file(const char *path, lc_buf_t *out, lc_err_t *err)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
        struct stat st;

        if (fd < 0)
                return unreadable(path, errno, err);
        if (fstat(fd, &st))
                rc = unreadable(path, errno, err);
        else if (S_ISDIR(st.st_mode))
                rc = unreadable(path, EISDIR, err);
        else if (!S_ISREG(st.st_mode))
                rc = lc_err_set(err, LC_FATAL, 0, "Connector configuration '%s' is not a regular file", path);
        while (!rc) {
                ssize_t n;
                if (out->len > MAX_FILE) {
                        rc = lc_err_set(err, LC_FATAL, 0,
                                        "Connector configuration '%s' is larger than %d bytes", path,
                                        (int)MAX_FILE);
                        break;
                }
                if (lc_buf_reserve(out, 64 << 10)) {
                        rc = lc_err_set(err, LC_FATAL, 0, "Out of memory reading '%s'", path);
                        break;
                }
                n = read(fd, out->p + out->len, 64 << 10);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        rc = unreadable(path, errno, err);
                if (n <= 0)
                        break;
                out->len += (size_t)n;
                out->p[out->len] = 0;
        }
        close(fd);
        return rc;
}

static int nameless(const char *path, lc_err_t *err)
{
        return lc_err_set(err, LC_FATAL, 0,
                          "Connector configuration at '%s' is missing the mandatory 'name' "
                          "configuration",
                          path);
}

/* A create request: its name and that of its config must agree. */
static int from_request(const char *path, lc_create_body_t *body, lc_connector_file_t *out, lc_err_t *err)
{
        const char *own = lc_props_get(body->config, "name");

        if (own && strcmp(own, body->name))
                return lc_err_set(err, LC_FATAL, 0,
                                  "Connector name configuration in 'config' doesn't match the one "
                                  "specified in 'name' at '%s'",
                                  path);
        if (!own) {
                lc_props_del(body->config, "name");
                lc_props_set(body->config, "name", body->name);
        }
        out->name = body->name;
        out->config = body->config;
        out->initial_state = body->initial_state;
        body->name = NULL;
        body->config = NULL;
        return 0;
}

int lc_connector_file_load(const char *path, lc_connector_file_t *out, lc_err_t *err)
{
        lc_buf_t text = LC_BUF_INIT;
        lc_props_t *config = NULL;
        lc_create_body_t body;
        lc_err_t ignored;
        int rc = -1;

        memset(out, 0, sizeof(*out));
        memset(&body, 0, sizeof(body));
        out->initial_state = LC_TARGET_NONE;
        if (read_file(path, &text, err))
                goto done;
        lc_buf_adds(&text, "");
        lc_err_clear(&ignored);
        if (lc_body_config(text.p, text.len, &config, &ignored) || !config) {
                lc_err_clear(&ignored);
                if (lc_body_create(text.p, text.len, true, &body, &ignored) == 0 && body.config) {
                        if (!*body.name) {
                                nameless(path, err);
                                goto done;
                        }
                        rc = from_request(path, &body, out, err);
                        goto done;
                }
                if (lc_properties_parse(text.p, text.len, &config, err))
                        goto done;
        }
        if (!lc_props_get(config, "name")) {
                nameless(path, err);
                goto done;
        }
        out->name = lc_strdup(lc_props_get(config, "name"));
        out->config = config;
        config = NULL;
        rc = 0;
done:
        lc_buf_free(&text);
        lc_props_free(config);
        lc_create_body_free(&body);
        return rc;
}

void lc_connector_file_free(lc_connector_file_t *f)
{
        free(f->name);
        lc_props_free(f->config);
        memset(f, 0, sizeof(*f));
}
