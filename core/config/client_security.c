/*
 * client_security.c - see client_security.h. PEM texts and files go to librdkafka as they are, PKCS12 key
 * stores too; a PKCS12 trust store is opened here and handed over as PEM. JKS cannot be read without Java.
 *
 * Threads: any.  Tests: spec/unit/client_config_spec.lua
 */
#include "config/client_security.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "config/client_config.h"
#include "config/properties.h"
#include <ctype.h>
#include <librdkafka/rdkafka.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <stdlib.h>
#include <strings.h>

/* ---- sasl.jaas.config ---- */

static const char *blanks(const char *p)
{
        while (isspace((unsigned char)*p))
                p++;
        return p;
}

/* A word or a quoted string. NULL: malformed. */
static const char *token(const char *p, lc_buf_t *out)
{
        lc_buf_clear(out);
        lc_buf_adds(out, "");
        p = blanks(p);
        if (*p == '"' || *p == '\'') {
                char quote = *p++;

                while (*p && *p != quote) {
                        if (*p == '\\' && p[1])
                                p++;
                        lc_buf_addc(out, *p++);
                }
                return *p ? p + 1 : NULL;
        }
        while (*p && !isspace((unsigned char)*p) && *p != '=' && *p != ';' && *p != '"')
                lc_buf_addc(out, *p++);
        return out->len ? p : NULL;
}

lc_props_t *lc_jaas_parse(const char *text, lc_err_t *err)
{
        lc_props_t *options = lc_props_new();
        lc_buf_t name = LC_BUF_SURE, value = LC_BUF_SURE;
        const char *p = token(text, &name);
        bool ok = false;

        if (!p)
                goto done;
        lc_props_set(options, "", name.p);
        p = token(p, &value); /* required, requisite, sufficient, optional */
        while (p && *(p = blanks(p)) && *p != ';') {
                p = token(p, &name);
                if (!p || *(p = blanks(p)) != '=') {
                        p = NULL;
                        break;
                }
                p = token(p + 1, &value);
                if (p)
                        lc_props_set(options, name.p, value.p);
        }
        ok = p && *p == ';';
done:
        lc_buf_free(&name);
        lc_buf_free(&value);
        if (ok)
                return options;
        lc_props_free(options);
        lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                       "sasl.jaas.config cannot be read; expected: loginModuleClass controlFlag "
                       "(optionName=\"optionValue\")*;");
        return NULL;
}

/* ---- SASL ---- */

int lc_client_check_scram(int version, const char *mechanism, lc_err_t *err)
{
        if (strncasecmp(mechanism, "SCRAM-", 6) || version >= 0x020601ff)
                return 0;
        return lc_err_set_cls(
                err, LC_FATAL, 0, LC_CLS_CONFIG,
                "sasl.mechanism=%s: librdkafka %d.%d.%d cannot log in to Kafka 4 and newer with SCRAM "
                "(it sends a wrong nonce; fixed in 2.6.1). Build with -DLIBRDKAFKA_SOURCE=DIR of 2.6.1 "
                "or newer, or use PLAIN over TLS",
                mechanism, version >> 24 & 0xff, version >> 16 & 0xff, version >> 8 & 0xff);
}

static void copy(const lc_props_t *java, const char *key, lc_props_t *rd, const char *name)
{
        const char *v = lc_props_get(java, key);

        if (v && *v)
                lc_props_set(rd, name, v);
}

static bool module_is(const lc_props_t *options, const char *name)
{
        const char *class_name = lc_props_get_or(options, "", "");
        const char *simple = strrchr(class_name, '.');

        return !strcmp(simple ? simple + 1 : class_name, name);
}

static int sasl(const lc_props_t *java, lc_props_t *rd, lc_err_t *err)
{
        const char *mechanism = lc_props_get_or(java, "sasl.mechanism", "GSSAPI");
        const char *jaas = lc_props_get(java, "sasl.jaas.config");
        lc_props_t *options = NULL;
        int rc = -1;

        if (lc_client_check_scram(rd_kafka_version(), mechanism, err))
                return -1;
        lc_props_set(rd, "sasl.mechanisms", mechanism);
        if (jaas && !(options = lc_jaas_parse(jaas, err)))
                return -1;
        if (!strcasecmp(mechanism, "PLAIN") || !strncasecmp(mechanism, "SCRAM-", 6)) {
                bool plain = !strcasecmp(mechanism, "PLAIN");

                if (!options || !module_is(options, plain ? "PlainLoginModule" : "ScramLoginModule") ||
                    !lc_props_get(options, "username") || !lc_props_get(options, "password")) {
                        lc_err_set_cls(
                                err, LC_FATAL, 0, LC_CLS_CONFIG,
                                "sasl.mechanism=%s needs sasl.jaas.config with %s and username=\"...\" "
                                "password=\"...\";",
                                mechanism,
                                plain ? "org.apache.kafka.common.security.plain.PlainLoginModule required"
                                      : "org.apache.kafka.common.security.scram.ScramLoginModule required");
                        goto done;
                }
                copy(options, "username", rd, "sasl.username");
                copy(options, "password", rd, "sasl.password");
        } else if (!strcasecmp(mechanism, "OAUTHBEARER")) {
                copy(java, "sasl.oauthbearer.token.endpoint.url", rd, "sasl.oauthbearer.token.endpoint.url");
                if (lc_props_has(rd, "sasl.oauthbearer.token.endpoint.url"))
                        lc_props_set(rd, "sasl.oauthbearer.method", "oidc");
                if (options) { /* the older place of these three */
                        copy(options, "clientId", rd, "sasl.oauthbearer.client.id");
                        copy(options, "clientSecret", rd, "sasl.oauthbearer.client.secret");
                        copy(options, "scope", rd, "sasl.oauthbearer.scope");
                }
                copy(java, "sasl.oauthbearer.client.credentials.client.id", rd, "sasl.oauthbearer.client.id");
                copy(java, "sasl.oauthbearer.client.credentials.client.secret", rd,
                     "sasl.oauthbearer.client.secret");
                copy(java, "sasl.oauthbearer.scope", rd, "sasl.oauthbearer.scope");
        } else if (!strcasecmp(mechanism, "GSSAPI")) {
                copy(java, "sasl.kerberos.service.name", rd, "sasl.kerberos.service.name");
                copy(java, "sasl.kerberos.min.time.before.relogin", rd,
                     "sasl.kerberos.min.time.before.relogin");
                if (options) {
                        copy(options, "principal", rd, "sasl.kerberos.principal");
                        copy(options, "keyTab", rd, "sasl.kerberos.keytab");
                        copy(options, "serviceName", rd, "sasl.kerberos.service.name");
                }
        } else {
                lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "sasl.mechanism=%s is not supported; use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, GSSAPI "
                        "or OAUTHBEARER",
                        mechanism);
                goto done;
        }
        rc = 0;
done:
        lc_props_free(options);
        return rc;
}

/* ---- TLS ---- */

static int jks(const char *key, const char *path, lc_err_t *err)
{
        return lc_err_set_cls(
                err, LC_FATAL, 0, LC_CLS_CONFIG,
                "%s=%s is a JKS file, which only Java can read. Convert it: keytool -importkeystore "
                "-srckeystore %s -destkeystore store.p12 -deststoretype PKCS12, and set the type to "
                "PKCS12; or use PEM",
                key, path, path);
}

/* "PEM" or "PKCS12" for the store; Java's type JKS reads PKCS12 files too. NULL with err. */
static const char *store_type(const lc_props_t *java, const char *what, lc_err_t *err)
{
        char *type_key = lc_asprintf("ssl.%s.type", what), *path_key = lc_asprintf("ssl.%s.location", what);
        const char *type = lc_props_get_or(java, type_key, "JKS"), *path = lc_props_get(java, path_key);
        const char *answer = NULL;
        lc_err_t why = {0};
        size_t len = 0;
        char *data = NULL;

        if (!strcasecmp(type, "PEM")) {
                answer = "PEM";
        } else if (!strcasecmp(type, "PKCS12")) {
                answer = "PKCS12";
        } else if (strcasecmp(type, "JKS")) {
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s=%s is not supported; use PEM or PKCS12",
                               type_key, type);
        } else if (!(data = lc_file_read(path, &len, &why))) {
                lc_err_set_cls(err, LC_FATAL, why.code, LC_CLS_CONFIG, "%s=%s cannot be read: %s", path_key,
                               path, strerror(why.code));
        } else if (len > 0 && data[0] == 0x30) {
                answer = "PKCS12";
        } else if (len >= 11 && !memcmp(data, "-----BEGIN ", 11)) {
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s=%s holds PEM text: set %s=PEM", path_key,
                               path, type_key);
        } else {
                jks(path_key, path, err);
        }
        free(data);
        free(type_key);
        free(path_key);
        return answer;
}

/* The certificates of a PKCS12 file as PEM, malloc'ed. */
static char *trusted(const char *path, const char *password, lc_err_t *err)
{
        EVP_PKEY *key = NULL;
        X509 *cert = NULL;
        STACK_OF(X509) *chain = NULL;
        BIO *out = BIO_new(BIO_s_mem());
        BIO *in = BIO_new_file(path, "rb");
        PKCS12 *p12 = in ? d2i_PKCS12_bio(in, NULL) : NULL;
        char *pem = NULL, *data;
        long len;

        if (!in)
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "ssl.truststore.location=%s cannot be read",
                               path);
        else if (!p12)
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                               "ssl.truststore.location=%s is no PKCS12 file", path);
        else if (!PKCS12_parse(p12, password, &key, &cert, &chain))
                lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "ssl.truststore.location=%s cannot be opened: %s (is ssl.truststore.password right?)",
                        path, ERR_reason_error_string(ERR_peek_last_error()));
        else {
                if (cert)
                        PEM_write_bio_X509(out, cert);
                for (int i = 0; i < sk_X509_num(chain); i++)
                        PEM_write_bio_X509(out, sk_X509_value(chain, i));
                len = BIO_get_mem_data(out, &data);
                if (len > 0)
                        pem = lc_strndup(data, (size_t)len);
                else
                        lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                       "ssl.truststore.location=%s holds no certificate", path);
        }
        ERR_clear_error();
        EVP_PKEY_free(key);
        X509_free(cert);
        sk_X509_pop_free(chain, X509_free);
        PKCS12_free(p12);
        BIO_free(in);
        BIO_free(out);
        return pem;
}

static int tls(const lc_props_t *java, lc_props_t *rd, lc_err_t *err)
{
        const char *location = lc_props_get(java, "ssl.truststore.location"), *type, *check;

        copy(java, "ssl.truststore.certificates", rd, "ssl.ca.pem");
        if (location && *location && !lc_props_has(rd, "ssl.ca.pem")) {
                if (!(type = store_type(java, "truststore", err)))
                        return -1;
                if (!strcmp(type, "PEM")) {
                        lc_props_set(rd, "ssl.ca.location", location);
                } else {
                        char *pem = trusted(location, lc_props_get(java, "ssl.truststore.password"), err);

                        if (!pem)
                                return -1;
                        lc_props_set(rd, "ssl.ca.pem", pem);
                        free(pem);
                }
        }
        copy(java, "ssl.keystore.key", rd, "ssl.key.pem");
        copy(java, "ssl.keystore.certificate.chain", rd, "ssl.certificate.pem");
        location = lc_props_get(java, "ssl.keystore.location");
        if (location && *location && !lc_props_has(rd, "ssl.key.pem")) {
                if (!(type = store_type(java, "keystore", err)))
                        return -1;
                if (!strcmp(type, "PEM")) {
                        lc_props_set(rd, "ssl.key.location", location);
                        lc_props_set(rd, "ssl.certificate.location", location);
                } else {
                        lc_props_set(rd, "ssl.keystore.location", location);
                        copy(java, "ssl.keystore.password", rd, "ssl.keystore.password");
                }
        }
        copy(java, "ssl.key.password", rd, "ssl.key.password");
        check = lc_props_get(java, "ssl.endpoint.identification.algorithm");
        if (check)
                lc_props_set(rd, "ssl.endpoint.identification.algorithm", *check ? check : "none");
        return 0;
}

int lc_client_security(const lc_props_t *java, lc_props_t *rd, lc_err_t *err)
{
        const char *protocol = lc_props_get_or(java, "security.protocol", "PLAINTEXT");
        bool ssl = !strcasecmp(protocol, "SSL") || !strcasecmp(protocol, "SASL_SSL");
        bool with_sasl = !strncasecmp(protocol, "SASL_", 5);

        if (!ssl && strcasecmp(protocol, "PLAINTEXT") && strcasecmp(protocol, "SASL_PLAINTEXT"))
                return lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "Invalid value %s for configuration security.protocol: String must be one of "
                        "(case insensitive): SASL_SSL, PLAINTEXT, SSL, SASL_PLAINTEXT",
                        protocol);
        if (ssl && tls(java, rd, err))
                return -1;
        return with_sasl ? sasl(java, rd, err) : 0;
}
