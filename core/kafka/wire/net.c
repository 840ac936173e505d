/* net.c - see net.h. */
#include "kafka/wire/net.h"
#include "base/alloc.h"
#include "base/strv.h"
#include "kafka/wire/tls.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int lc_net_parse_server(const char *text, char **host, int *port, lc_err_t *err)
{
        const char *colon = strrchr(text, ':'), *start = text, *end = colon, *scheme = strstr(text, "://");
        char *rest = NULL;
        long n = -1;

        *host = NULL;
        if (colon && isdigit((unsigned char)colon[1]))
                n = strtol(colon + 1, &rest, 10);
        if (n < 0 || n > 65535 || !rest || *rest)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "Invalid url in bootstrap.servers: %s",
                                      text);
        if (scheme && scheme < colon)
                start = scheme + 3;
        if (start < end && *start == '[' && end[-1] == ']') {
                start++;
                end--;
        }
        for (const char *p = start; p < end; p++)
                if (!isalnum((unsigned char)*p) && !strchr("-%._:", *p))
                        start = end; /* a character no host name has */
        if (start >= end)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "Invalid url in bootstrap.servers: %s",
                                      text);
        *host = lc_strndup(start, (size_t)(end - start));
        *port = (int)n;
        return 0;
}

/* module flag name=value name="va\"lue" ... ;   (values may be quoted with " or ') */
char *lc_net_jaas_option(const char *jaas, const char *option)
{
        const char *p = jaas;
        size_t len = strlen(option);

        while (*p) {
                const char *word;
                lc_buf_t value = LC_BUF_SURE;
                char quote = 0;
                size_t n;

                while (*p && (isspace((unsigned char)*p) || *p == ';'))
                        p++;
                word = p;
                while (*p && !isspace((unsigned char)*p) && *p != '=' && *p != ';')
                        p++;
                n = (size_t)(p - word);
                while (isspace((unsigned char)*p))
                        p++;
                if (*p != '=')
                        continue; /* the module's class or its flag */
                p++;
                while (isspace((unsigned char)*p))
                        p++;
                if (*p == '"' || *p == '\'')
                        quote = *p++;
                while (*p && (quote ? *p != quote : !isspace((unsigned char)*p) && *p != ';')) {
                        if (quote && *p == '\\' && p[1])
                                p++;
                        lc_buf_addc(&value, *p++);
                }
                if (quote && *p)
                        p++;
                if (n == len && !strncmp(word, option, len))
                        return lc_buf_take(&value, NULL);
                lc_buf_free(&value);
        }
        return NULL;
}

static int read_servers(lc_net_t *net, const lc_worker_config_t *wc, lc_err_t *err)
{
        lc_strv_t list = {NULL, 0};
        int rc = 0;

        lc_worker_config_list(wc, "bootstrap.servers", &list);
        net->servers = lc_calloc(list.n, sizeof(*net->servers));
        for (size_t i = 0; i < list.n && rc == 0; i++) {
                lc_net_server_t *s = &net->servers[net->nservers];
                rc = lc_net_parse_server(list.v[i], &s->host, &s->port, err);
                if (rc == 0)
                        net->nservers++;
        }
        if (rc == 0 && !net->nservers)
                rc = lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                    "No resolvable bootstrap urls given in bootstrap.servers");
        lc_strv_free(&list);
        return rc;
}

static int read_sasl(lc_net_t *net, const lc_worker_config_t *wc, lc_err_t *err)
{
        static const struct {
                const char *name;
                lc_sasl_mechanism_t mechanism;
        } known[] = {{"PLAIN", LC_SASL_PLAIN},
                     {"SCRAM-SHA-256", LC_SASL_SCRAM_SHA_256},
                     {"SCRAM-SHA-512", LC_SASL_SCRAM_SHA_512}};
        const char *name = lc_worker_config_str(wc, "sasl.mechanism");
        const char *jaas = lc_worker_config_str(wc, "sasl.jaas.config");

        for (size_t i = 0; name && i < sizeof(known) / sizeof(*known); i++)
                if (!strcmp(known[i].name, name))
                        net->sasl = known[i].mechanism;
        if (net->sasl == LC_SASL_NONE)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Invalid value %s for configuration sasl.mechanism: group membership "
                                      "supports PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512",
                                      name ? name : "null");
        if (!jaas || !*jaas)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Could not find a 'KafkaClient' entry in the JAAS configuration: set "
                                      "sasl.jaas.config");
        net->user = lc_net_jaas_option(jaas, "username");
        net->password = lc_net_jaas_option(jaas, "password");
        if (!net->user || !net->password)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Invalid value [hidden] for configuration sasl.jaas.config: username "
                                      "and password are required for %s",
                                      name);
        return 0;
}

lc_net_t *lc_net_new(const lc_worker_config_t *wc, lc_err_t *err)
{
        lc_net_t *net = lc_calloc(1, sizeof(*net));
        const char *protocol = lc_worker_config_str(wc, "security.protocol");
        const char *identify = lc_worker_config_str(wc, "ssl.endpoint.identification.algorithm");
        bool tls = protocol && strcasestr(protocol, "SSL");
        bool sasl = protocol && !strncasecmp(protocol, "SASL", 4);

        net->connect_timeout_ms = lc_worker_config_int(wc, "socket.connection.setup.timeout.ms");
        net->request_timeout_ms = lc_worker_config_int(wc, "request.timeout.ms");
        net->retry_backoff_ms = lc_worker_config_int(wc, "retry.backoff.ms");
        net->retry_backoff_max_ms = lc_worker_config_int(wc, "retry.backoff.max.ms");
        net->session_ms = lc_worker_config_int(wc, "session.timeout.ms");
        net->verify_host = identify && *identify;
        if (read_servers(net, wc, err) < 0 || (sasl && read_sasl(net, wc, err) < 0) ||
            (tls && !(net->tls = lc_tls_context(wc, err)))) {
                lc_net_free(net);
                return NULL;
        }
        return net;
}

void lc_net_free(lc_net_t *net)
{
        if (!net)
                return;
        for (size_t i = 0; i < net->nservers; i++)
                free(net->servers[i].host);
        free(net->servers);
        lc_tls_context_free(net->tls);
        free(net->user);
        if (net->password)
                explicit_bzero(net->password, strlen(net->password));
        free(net->password);
        free(net);
}
