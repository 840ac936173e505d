/*
 * http.h - what HTTP means here, without a server: request and answer, the rules of Jetty and Jersey for
 * paths, queries, media types and error pages.
 *
 * Threads:   pure functions over their arguments.
 * Ownership: a request borrows everything; an answer owns its content, lc_rest_answer_free() ends it.
 * Source:    reference rest.md 1, golden/rest/01, 03, 19.   Tests: spec/unit/rest_spec.lua
 */
#ifndef LC_REST_HTTP_H
#define LC_REST_HTTP_H
#include "base/buf.h"
#include "base/strv.h"

typedef struct lc_rest_request {
        const char *method;
        const char *uri; /* as on the request line: path and query, nothing decoded */
        const char *host, *accept, *content_type, *origin, *preflight; /* headers; NULL: absent */
        const char *authorization;
        const char *signature, *signature_algorithm; /* X-Connect-Authorization and its algorithm */
        const char *body;
        size_t body_len;
} lc_rest_request_t;

typedef struct lc_rest_answer {
        int status;
        char *content_type; /* NULL: none is sent */
        lc_buf_t body;
        lc_strv_t headers; /* "Name: value" */
        bool close;        /* the connection ends after it */
} lc_rest_answer_t;
void lc_rest_answer_free(lc_rest_answer_t *a);
void lc_rest_answer_header(lc_rest_answer_t *a, const char *name, const char *value);
void lc_rest_answer_type(lc_rest_answer_t *a, const char *content_type); /* NULL removes it */

/* {"error_code":N,"message":...}; typed: with Content-Type application/json (errors of handlers), without
 * it those of routing. message NULL: JSON null. */
void lc_rest_answer_error(lc_rest_answer_t *a, int status, const char *message, bool typed);
/* Jetty's error page. Jetty writes it for GET, HEAD and POST only; other methods get an empty body,
 * unless `always`. uri: as shown in the page. */
void lc_rest_answer_page(lc_rest_answer_t *a, const char *method, int status, const char *title,
                         const char *uri, bool always);
const char *lc_http_reason(int status); /* "Not Found" */

/* Path of a request line: scheme and authority, query and fragment cut off. */
void lc_http_path(const char *uri, lc_buf_t *path);
/* Why Jetty refuses this path: its title ("Ambiguous URI path separator"), NULL when it is fine.
 * *bad_request: the page is that of a bad request (it shows the URI, any method gets it). */
const char *lc_http_path_refused(const char *path, bool *bad_request);
/* Percent-decoding; plus: '+' is a blank (queries). Escapes that are none stay as they are. */
void lc_http_decode(const char *s, size_t n, bool plus, lc_buf_t *out);
/* Appends a connector name as a path of the Location header: what is escaped already stays so. -1 for a
 * template variable ("${x}"), whose name goes to `variable`. */
int lc_http_encode_path(const char *name, lc_buf_t *out, lc_buf_t *variable);

/* First value of a query parameter, decoded: 1 and *out filled, 0 when absent. A parameter without '='
 * has an empty value. */
int lc_http_query(const char *uri, const char *name, lc_buf_t *out);
/* All its values, in order; the number of them. */
size_t lc_http_query_all(const char *uri, const char *name, lc_strv_t *out);

typedef enum { LC_MEDIA_NONE, LC_MEDIA_JSON, LC_MEDIA_OTHER, LC_MEDIA_BAD } lc_media_t;
lc_media_t lc_http_media(const char *content_type); /* NULL or blank: NONE */
/* Does Accept allow application/json? *type (malloc'ed) is what the answer's Content-Type says: Jersey
 * repeats parameters the client asked for. */
bool lc_http_accepts_json(const char *accept, char **type);
/* Does Accept allow text/plain? */
bool lc_http_accepts_text(const char *accept);

#endif
