/* http.c - see http.h. */
#include "rest/http.h"
#include "base/alloc.h"
#include "convert/json.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void lc_rest_answer_free(lc_rest_answer_t *a)
{
        free(a->content_type);
        lc_buf_free(&a->body);
        lc_strv_free(&a->headers);
        memset(a, 0, sizeof(*a));
}

void lc_rest_answer_header(lc_rest_answer_t *a, const char *name, const char *value)
{
        char *line = lc_asprintf("%s: %s", name, value);

        lc_strv_add(&a->headers, line);
        free(line);
}

void lc_rest_answer_type(lc_rest_answer_t *a, const char *content_type)
{
        free(a->content_type);
        a->content_type = lc_strdup(content_type);
}

void lc_rest_answer_error(lc_rest_answer_t *a, int status, const char *message, bool typed)
{
        a->status = status;
        lc_rest_answer_type(a, typed ? "application/json" : NULL);
        lc_buf_clear(&a->body);
        lc_buf_printf(&a->body, "{\"error_code\":%d,\"message\":", status);
        if (message)
                lc_json_write_string(&a->body, message, strlen(message));
        else
                lc_buf_adds(&a->body, "null");
        lc_buf_addc(&a->body, '}');
}

static void add_html(lc_buf_t *out, const char *s)
{
        for (; *s; s++)
                switch (*s) {
                case '&':
                        lc_buf_adds(out, "&amp;");
                        break;
                case '<':
                        lc_buf_adds(out, "&lt;");
                        break;
                case '>':
                        lc_buf_adds(out, "&gt;");
                        break;
                case '"':
                        lc_buf_adds(out, "&quot;");
                        break;
                case '\'':
                        lc_buf_adds(out, "&apos;");
                        break;
                default:
                        /* the page is ISO-8859-1: what is not ASCII would only be mangled */
                        lc_buf_addc(out, (unsigned char)*s < 0x80 ? *s : '?');
                }
}

void lc_rest_answer_page(lc_rest_answer_t *a, const char *method, int status, const char *title,
                         const char *uri, bool always)
{
        lc_buf_t *b = &a->body;

        a->status = status;
        lc_buf_clear(b);
        lc_rest_answer_header(a, "Cache-Control", "must-revalidate,no-cache,no-store");
        if (!always && strcmp(method, "GET") && strcmp(method, "HEAD") && strcmp(method, "POST")) {
                lc_rest_answer_type(a, NULL);
                return;
        }
        lc_rest_answer_type(a, "text/html;charset=iso-8859-1");
        lc_buf_adds(b, "<html>\n<head>\n<meta http-equiv=\"Content-Type\" "
                       "content=\"text/html;charset=ISO-8859-1\"/>\n");
        lc_buf_printf(b, "<title>Error %d ", status);
        add_html(b, title);
        lc_buf_printf(b, "</title>\n</head>\n<body>\n<h2>HTTP ERROR %d ", status);
        add_html(b, title);
        lc_buf_adds(b, "</h2>\n<table>\n<tr><th>URI:</th><td>");
        add_html(b, uri);
        lc_buf_printf(b, "</td></tr>\n<tr><th>STATUS:</th><td>%d</td></tr>\n<tr><th>MESSAGE:</th><td>",
                      status);
        add_html(b, title);
        lc_buf_adds(b, "</td></tr>\n</table>\n\n</body>\n</html>\n");
}

const char *lc_http_reason(int status)
{
        switch (status) {
        case 400:
                return "Bad Request";
        case 403:
                return "Forbidden";
        case 404:
                return "Not Found";
        case 405:
                return "Method Not Allowed";
        case 406:
                return "Not Acceptable";
        case 409:
                return "Conflict";
        case 413:
                return "Payload Too Large";
        case 414:
                return "URI Too Long";
        case 415:
                return "Unsupported Media Type";
        case 500:
                return "Server Error";
        case 501:
                return "Not Implemented";
        case 503:
                return "Service Unavailable";
        case 505:
                return "HTTP Version Not Supported";
        default:
                return "";
        }
}

void lc_http_path(const char *uri, lc_buf_t *path)
{
        const char *from = uri;
        size_t n;

        if (*uri != '/') {
                const char *authority = strstr(uri, "://");
                if (authority && authority < uri + strcspn(uri, "/?#") + 1) {
                        from = authority + 3;
                        from += strcspn(from, "/?#");
                }
        }
        n = strcspn(from, "?#");
        lc_buf_add(path, from, n);
        if (path->len == 0)
                lc_buf_addc(path, '/');
}

static int hex(int c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

static int escape_at(const char *s)
{
        int hi = hex((unsigned char)s[1]), lo = hi < 0 ? -1 : hex((unsigned char)s[2]);

        return lo < 0 ? -1 : hi * 16 + lo;
}

/* Length of the UTF-8 sequence at s[n], 0 when malformed. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
        unsigned min = 0, code;
        size_t len;

        if (s[0] < 0x80)
                return 1;
        if (s[0] >= 0xC2 && s[0] <= 0xDF)
                len = 2, min = 0x80, code = s[0] & 0x1F;
        else if ((s[0] & 0xF0) == 0xE0)
                len = 3, min = 0x800, code = s[0] & 0x0F;
        else if (s[0] >= 0xF0 && s[0] <= 0xF4)
                len = 4, min = 0x10000, code = s[0] & 0x07;
        else
                return 0;
        if (n < len)
                return 0;
        for (size_t i = 1; i < len; i++) {
                if ((s[i] & 0xC0) != 0x80)
                        return 0;
                code = code << 6 | (s[i] & 0x3F);
        }
        return code < min || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0 : len;
}

/* "%2E", "%2e%2E", ".%2e" and their like: a dot segment in disguise. */
static bool hidden_dots(const char *s, size_t n)
{
        int dots = 0, escaped = 0;

        for (size_t i = 0; i < n; dots++) {
                if (s[i] == '.') {
                        i++;
                } else if (s[i] == '%' && n - i >= 3 && escape_at(s + i) == '.') {
                        i += 3;
                        escaped++;
                } else if (s[i] == ';') {
                        break;
                } else {
                        return false;
                }
        }
        return escaped && dots <= 2;
}

const char *lc_http_path_refused(const char *path, bool *bad_request)
{
        const char *title = NULL;
        lc_buf_t decoded = LC_BUF_SURE;

        *bad_request = true;
        if (path[0] != '/')
                return lc_http_reason(400);
        /* what cannot be decoded at all comes first, as it does in the parser */
        for (const char *s = path; *s; s++) {
                int c = (unsigned char)*s;
                if (c <= 0x20 || c == 0x7F)
                        return lc_http_reason(400);
                if (c != '%')
                        continue;
                c = escape_at(s);
                if (c <= 0)
                        return lc_http_reason(400);
                s += 2;
        }
        *bad_request = false;
        for (const char *s = path; *s && !title; s++) {
                int c = *s == '%' ? escape_at(s) : -1;
                if (*s == '/') {
                        if (s[1] == '/')
                                title = "Ambiguous URI empty segment";
                        else if (hidden_dots(s + 1, strcspn(s + 1, "/")))
                                title = "Ambiguous URI path segment";
                } else if (c == '/') {
                        title = "Ambiguous URI path separator";
                } else if (c == '%') {
                        title = "Ambiguous URI path encoding";
                } else if (*s == '\\' || c == '\\' || (c >= 0 && (c < 0x20 || c == 0x7F))) {
                        title = "Suspicious Path Character";
                } else if ((unsigned char)*s >= 0x80) {
                        title = "Illegal Path Character";
                }
        }
        if (title)
                return title;
        lc_http_decode(path, strlen(path), false, &decoded);
        for (size_t i = 0, len; i < decoded.len && !title; i += len) {
                len = utf8_length((const unsigned char *)decoded.p + i, decoded.len - i);
                if (len == 0)
                        title = "Bad UTF-8 encoding";
        }
        lc_buf_free(&decoded);
        return title;
}

void lc_http_decode(const char *s, size_t n, bool plus, lc_buf_t *out)
{
        for (size_t i = 0; i < n; i++) {
                int c = s[i] == '%' && n - i >= 3 ? escape_at(s + i) : -1;
                if (c >= 0) {
                        lc_buf_addc(out, (char)c);
                        i += 2;
                } else {
                        lc_buf_addc(out, plus && s[i] == '+' ? ' ' : s[i]);
                }
        }
}

int lc_http_encode_path(const char *name, lc_buf_t *out, lc_buf_t *variable)
{
        for (const char *s = name; *s; s++) {
                if (*s == '{' && s[1]) {
                        size_t n = strcspn(s + 1, "}");
                        if (s[1 + n] == '}') {
                                lc_buf_add(variable, s + 1, n);
                                return -1;
                        }
                }
                if (isalnum((unsigned char)*s) || strchr("-._~!$&'()*+,;=:@/", *s) ||
                    (*s == '%' && escape_at(s) >= 0))
                        lc_buf_addc(out, *s);
                else
                        lc_buf_printf(out, "%%%02X", (unsigned char)*s);
        }
        return 0;
}

/* Calls back for each parameter of the query; stops when the callback says so. */
typedef bool query_fn(void *arg, const char *name, const char *value);

static void each_parameter(const char *uri, query_fn *fn, void *arg)
{
        const char *s = strchr(uri, '?'), *end;
        bool go_on = true;

        if (!s)
                return;
        s++;
        end = s + strcspn(s, "#");
        while (s < end && go_on) {
                size_t n = strcspn(s, "&#");
                const char *equals = memchr(s, '=', n);
                lc_buf_t name = LC_BUF_SURE, value = LC_BUF_SURE;
                lc_http_decode(s, equals ? (size_t)(equals - s) : n, true, &name);
                if (equals)
                        lc_http_decode(equals + 1, n - (size_t)(equals + 1 - s), true, &value);
                if (name.len)
                        go_on = fn(arg, name.p, value.p ? value.p : "");
                lc_buf_free(&name);
                lc_buf_free(&value);
                s += n + 1;
        }
}

typedef struct wanted {
        const char *name;
        lc_buf_t *first;
        lc_strv_t *all;
        int found;
} wanted_t;

static bool take_parameter(void *arg, const char *name, const char *value)
{
        wanted_t *w = arg;

        if (strcmp(name, w->name))
                return true;
        w->found++;
        if (w->all)
                lc_strv_add(w->all, value);
        if (w->first)
                lc_buf_adds(w->first, value);
        return w->all != NULL;
}

int lc_http_query(const char *uri, const char *name, lc_buf_t *out)
{
        wanted_t w = {name, out, NULL, 0};

        lc_buf_clear(out);
        lc_buf_adds(out, "");
        each_parameter(uri, take_parameter, &w);
        return w.found;
}

size_t lc_http_query_all(const char *uri, const char *name, lc_strv_t *out)
{
        wanted_t w = {name, NULL, out, 0};

        each_parameter(uri, take_parameter, &w);
        return (size_t)w.found;
}

/* One element of Accept or a Content-Type: type and subtype, the parameters behind them without q. */
typedef struct media {
        char type[32], subtype[64];
        char params[128];
        double q;
} media_t;

static void copy_lower(char *to, size_t cap, const char *from, size_t n)
{
        if (n >= cap)
                n = cap - 1;
        for (size_t i = 0; i < n; i++)
                to[i] = (char)tolower((unsigned char)from[i]);
        to[n] = 0;
}

static bool token_char(int c)
{
        return isalnum(c) || strchr("!#$%&'*+-.^_`|~", c);
}

static bool parse_media(const char *s, size_t n, media_t *m)
{
        size_t i = 0, j;
        bool valid = true;

        memset(m, 0, sizeof(*m));
        m->q = 1;
        while (n > 0 && isspace((unsigned char)s[n - 1]))
                n--;
        while (i < n && isspace((unsigned char)s[i]))
                i++;
        for (j = i; j < n && token_char((unsigned char)s[j]); j++)
                ;
        copy_lower(m->type, sizeof(m->type), s + i, j - i);
        if (j == i || j >= n || s[j] != '/')
                return false;
        i = ++j;
        while (j < n && token_char((unsigned char)s[j]))
                j++;
        copy_lower(m->subtype, sizeof(m->subtype), s + i, j - i);
        if (j == i)
                return false;
        while (j < n) {
                size_t from, to;
                while (j < n && (s[j] == ';' || isspace((unsigned char)s[j])))
                        j++;
                from = j;
                while (j < n && s[j] != ';')
                        j++;
                to = j;
                while (to > from && isspace((unsigned char)s[to - 1]))
                        to--;
                if (to == from)
                        continue;
                if (to - from > 2 && tolower((unsigned char)s[from]) == 'q' && s[from + 1] == '=') {
                        m->q = atof(s + from + 2);
                } else {
                        size_t used = strlen(m->params), len = to - from;
                        valid = valid && memchr(s + from, '=', len);
                        if (used + len + 2 < sizeof(m->params)) {
                                m->params[used] = ';';
                                copy_lower(m->params + used + 1, len + 1, s + from, len);
                        }
                }
        }
        return valid;
}

lc_media_t lc_http_media(const char *content_type)
{
        media_t m;

        if (!content_type || !content_type[strspn(content_type, " \t")])
                return LC_MEDIA_NONE;
        if (!parse_media(content_type, strlen(content_type), &m))
                return LC_MEDIA_BAD;
        return !strcmp(m.type, "application") && !strcmp(m.subtype, "json") ? LC_MEDIA_JSON : LC_MEDIA_OTHER;
}

/* The best element of Accept that covers type/subtype: more exact ones win over wildcards. */
static bool accepted(const char *accept, const char *type, const char *subtype, media_t *best)
{
        int best_rank = 0;
        const char *s = accept;

        memset(best, 0, sizeof(*best));
        if (!accept || !accept[strspn(accept, " \t")])
                return true;
        while (*s) {
                size_t n = strcspn(s, ",");
                media_t m;
                int rank = 0;
                if (parse_media(s, n, &m)) {
                        if (!strcmp(m.type, type) && !strcmp(m.subtype, subtype))
                                rank = 3;
                        else if (!strcmp(m.type, type) && !strcmp(m.subtype, "*"))
                                rank = 2;
                        else if (!strcmp(m.type, "*") && !strcmp(m.subtype, "*"))
                                rank = 1;
                }
                if (rank > best_rank || (rank && rank == best_rank && m.q > best->q)) {
                        *best = m;
                        best_rank = rank;
                }
                s += n + (s[n] == ',');
        }
        return best_rank && best->q > 0;
}

bool lc_http_accepts_json(const char *accept, char **type)
{
        media_t m;

        if (!accepted(accept, "application", "json", &m))
                return false;
        /* parameters of a wildcard are not the answer's */
        *type = lc_asprintf("application/json%s", strcmp(m.subtype, "json") ? "" : m.params);
        return true;
}

bool lc_http_accepts_text(const char *accept)
{
        media_t m;

        return accepted(accept, "text", "plain", &m);
}
