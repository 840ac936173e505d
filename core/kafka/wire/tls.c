/* tls.c - see tls.h. */
#include "kafka/wire/tls.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/strv.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STORE = 16 << 20 };

static const char *reason(void)
{
        unsigned long e = ERR_peek_last_error();
        const char *text = e ? ERR_reason_error_string(e) : NULL;
        return text ? text : "unknown error";
}

static int fail(lc_err_t *err, const char *key, const char *file, const char *what)
{
        return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "Invalid value %s for configuration %s: %s",
                              file, key, what);
}

static int read_file(const char *key, const char *path, lc_buf_t *out, lc_err_t *err)
{
        FILE *f = fopen(path, "rb");
        char chunk[8192];
        size_t n;

        if (!f)
                return fail(err, key, path, strerror(errno));
        while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0 && out->len < MAX_STORE)
                lc_buf_add(out, chunk, n);
        n = ferror(f) ? 1 : 0;
        fclose(f);
        if (n || !lc_buf_ok(out) || out->len >= MAX_STORE)
                return fail(err, key, path, n ? "cannot be read" : "too large");
        return 0;
}

/* ssl.key.password: never ask on a terminal. */
static int give_password(char *buf, int size, int for_writing, void *password)
{
        int n = password ? (int)strlen(password) : 0;

        (void)for_writing;
        if (n > size)
                return -1;
        if (n)
                memcpy(buf, password, (size_t)n);
        return n;
}

static bool is_jks(const lc_buf_t *b)
{
        return b->len > 4 && (!memcmp(b->p, "\xfe\xed\xfe\xed", 4) || !memcmp(b->p, "\xce\xce\xce\xce", 4));
}

static const char jks_text[] = "this is a JKS store; convert it to PKCS12 (keytool -importkeystore "
                               "-deststoretype PKCS12) or use PEM";

/* The store's parts; *ca may stay NULL. */
static int open_pkcs12(const char *key, const char *name, const lc_buf_t *b, const char *password,
                       EVP_PKEY **pkey, X509 **cert, STACK_OF(X509) * *ca, lc_err_t *err)
{
        const unsigned char *at = (const unsigned char *)b->p;
        PKCS12 *p12;
        int rc = 0;

        ERR_clear_error();
        p12 = d2i_PKCS12(NULL, &at, (long)b->len);
        if (!p12 || PKCS12_parse(p12, password, pkey, cert, ca) != 1)
                rc = fail(err, key, name, reason());
        PKCS12_free(p12);
        return rc;
}

/* Add every certificate of a PEM text to the trust store. */
static int trust_pem(SSL_CTX *ctx, const char *key, const char *name, const lc_buf_t *b, lc_err_t *err)
{
        BIO *bio = BIO_new_mem_buf(b->p, (int)b->len);
        X509_STORE *store = SSL_CTX_get_cert_store(ctx);
        int count = 0;
        X509 *cert;

        while (bio && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
                X509_STORE_add_cert(store, cert); /* a second copy is no error since OpenSSL 1.1.1 */
                X509_free(cert);
                count++;
        }
        BIO_free(bio);
        ERR_clear_error(); /* the end of the text shows as an error */
        return count ? 0 : fail(err, key, name, "No matching CERTIFICATE entries in PEM file");
}

static int trust_pkcs12(SSL_CTX *ctx, const char *name, const lc_buf_t *b, const char *password,
                        lc_err_t *err)
{
        X509_STORE *store = SSL_CTX_get_cert_store(ctx);
        EVP_PKEY *pkey = NULL;
        X509 *cert = NULL;
        STACK_OF(X509) *ca = NULL;
        int rc = open_pkcs12("ssl.truststore.location", name, b, password, &pkey, &cert, &ca, err);

        if (rc == 0) {
                if (cert)
                        X509_STORE_add_cert(store, cert);
                for (int i = 0; i < sk_X509_num(ca); i++)
                        X509_STORE_add_cert(store, sk_X509_value(ca, i));
                if (!cert && sk_X509_num(ca) <= 0)
                        rc = fail(err, "ssl.truststore.location", name, "the trustAnchors are empty");
        }
        EVP_PKEY_free(pkey);
        X509_free(cert);
        sk_X509_pop_free(ca, X509_free);
        return rc;
}

static int load_trust(SSL_CTX *ctx, const lc_worker_config_t *wc, lc_err_t *err)
{
        const char *path = lc_worker_config_str(wc, "ssl.truststore.location");
        const char *inline_pem = lc_worker_config_str(wc, "ssl.truststore.certificates");
        lc_buf_t b = LC_BUF_INIT;
        int rc;

        if (inline_pem && *inline_pem) {
                lc_buf_adds(&b, inline_pem);
                rc = trust_pem(ctx, "ssl.truststore.certificates", "[hidden]", &b, err);
        } else if (!path || !*path) {
                rc = SSL_CTX_set_default_verify_paths(ctx) == 1
                             ? 0
                             : lc_err_set(err, LC_FATAL, 0, "Cannot load the system's trusted certificates");
        } else {
                rc = read_file("ssl.truststore.location", path, &b, err);
                if (rc == 0 && is_jks(&b))
                        rc = fail(err, "ssl.truststore.location", path, jks_text);
                else if (rc == 0 && memmem(b.p, b.len, "-----BEGIN", 10))
                        rc = trust_pem(ctx, "ssl.truststore.location", path, &b, err);
                else if (rc == 0)
                        rc = trust_pkcs12(ctx, path, &b, lc_worker_config_str(wc, "ssl.truststore.password"),
                                          err);
        }
        lc_buf_free(&b);
        return rc;
}

/* Certificate chain and key in PEM, from two texts or twice from one. */
static int own_pem(SSL_CTX *ctx, const char *key, const char *name, const lc_buf_t *chain,
                   const lc_buf_t *pkey, const char *password, lc_err_t *err)
{
        BIO *in = BIO_new_mem_buf(chain->p, (int)chain->len);
        BIO *kin = BIO_new_mem_buf(pkey->p, (int)pkey->len);
        X509 *cert;
        EVP_PKEY *k = NULL;
        int n = 0, rc = 0;

        ERR_clear_error();
        while (rc == 0 && in && (cert = PEM_read_bio_X509(in, NULL, NULL, NULL))) {
                if (n++ == 0) {
                        rc = SSL_CTX_use_certificate(ctx, cert) == 1 ? 0 : fail(err, key, name, reason());
                        X509_free(cert);
                } else if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
                        X509_free(cert);
                        rc = fail(err, key, name, reason());
                }
        }
        if (rc == 0 && !n)
                rc = fail(err, key, name, "No matching CERTIFICATE entries in PEM file");
        ERR_clear_error();
        if (rc == 0) {
                k = kin ? PEM_read_bio_PrivateKey(kin, NULL, give_password, (void *)password) : NULL;
                if (!k)
                        rc = fail(err, key, name, ERR_peek_last_error() ? reason() : "no private key");
                else if (SSL_CTX_use_PrivateKey(ctx, k) != 1 || SSL_CTX_check_private_key(ctx) != 1)
                        rc = fail(err, key, name, reason());
        }
        EVP_PKEY_free(k);
        BIO_free(in);
        BIO_free(kin);
        ERR_clear_error();
        return rc;
}

static int own_pkcs12(SSL_CTX *ctx, const char *name, const lc_buf_t *b, const char *password, lc_err_t *err)
{
        EVP_PKEY *pkey = NULL;
        X509 *cert = NULL;
        STACK_OF(X509) *ca = NULL;
        int rc = open_pkcs12("ssl.keystore.location", name, b, password, &pkey, &cert, &ca, err);

        if (rc == 0 && (!pkey || !cert))
                rc = fail(err, "ssl.keystore.location", name, "the store holds no private key");
        if (rc == 0 && (SSL_CTX_use_certificate(ctx, cert) != 1 || SSL_CTX_use_PrivateKey(ctx, pkey) != 1))
                rc = fail(err, "ssl.keystore.location", name, reason());
        for (int i = 0; rc == 0 && i < sk_X509_num(ca); i++)
                SSL_CTX_add1_chain_cert(ctx, sk_X509_value(ca, i));
        EVP_PKEY_free(pkey);
        X509_free(cert);
        sk_X509_pop_free(ca, X509_free);
        return rc;
}

static int load_own(SSL_CTX *ctx, const lc_worker_config_t *wc, lc_err_t *err)
{
        const char *path = lc_worker_config_str(wc, "ssl.keystore.location");
        const char *chain = lc_worker_config_str(wc, "ssl.keystore.certificate.chain");
        const char *pkey = lc_worker_config_str(wc, "ssl.keystore.key");
        const char *key_password = lc_worker_config_str(wc, "ssl.key.password");
        const char *store_password = lc_worker_config_str(wc, "ssl.keystore.password");
        lc_buf_t a = LC_BUF_INIT, b = LC_BUF_INIT;
        int rc = 0;

        if (chain && *chain && pkey && *pkey) {
                lc_buf_adds(&a, chain);
                lc_buf_adds(&b, pkey);
                rc = own_pem(ctx, "ssl.keystore.certificate.chain", "[hidden]", &a, &b, key_password, err);
        } else if (path && *path) {
                rc = read_file("ssl.keystore.location", path, &a, err);
                if (rc == 0 && is_jks(&a))
                        rc = fail(err, "ssl.keystore.location", path, jks_text);
                else if (rc == 0 && memmem(a.p, a.len, "-----BEGIN", 10))
                        rc = own_pem(ctx, "ssl.keystore.location", path, &a, &a, key_password, err);
                else if (rc == 0)
                        rc = own_pkcs12(ctx, path, &a, store_password, err);
        }
        if (b.p)
                explicit_bzero(b.p, b.len);
        lc_buf_free(&a);
        lc_buf_free(&b);
        return rc;
}

static int set_protocols(SSL_CTX *ctx, const lc_worker_config_t *wc, lc_err_t *err)
{
        static const struct {
                const char *name;
                int version;
        } known[] = {{"TLSv1", TLS1_VERSION},
                     {"TLSv1.1", TLS1_1_VERSION},
                     {"TLSv1.2", TLS1_2_VERSION},
                     {"TLSv1.3", TLS1_3_VERSION}};
        lc_strv_t list = {NULL, 0};
        int low = 0, high = 0, rc = 0;

        lc_worker_config_list(wc, "ssl.enabled.protocols", &list);
        for (size_t i = 0; i < list.n && rc == 0; i++) {
                int version = 0;
                for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
                        if (!strcmp(known[k].name, list.v[i]))
                                version = known[k].version;
                if (!version) {
                        rc = fail(err, "ssl.enabled.protocols", list.v[i], "unknown protocol");
                        break;
                }
                low = !low || version < low ? version : low;
                high = version > high ? version : high;
        }
        if (rc == 0) {
                SSL_CTX_set_min_proto_version(ctx, low ? low : TLS1_2_VERSION);
                if (high)
                        SSL_CTX_set_max_proto_version(ctx, high);
        }
        lc_strv_free(&list);
        return rc;
}

/* Java uses the IANA names; OpenSSL does so for TLS 1.3 only. */
static int set_ciphers(SSL_CTX *ctx, const lc_worker_config_t *wc, lc_err_t *err)
{
        lc_strv_t list = {NULL, 0};
        lc_buf_t v13 = LC_BUF_INIT, v12 = LC_BUF_INIT;
        int rc = 0;

        lc_worker_config_list(wc, "ssl.cipher.suites", &list);
        for (size_t i = 0; i < list.n && rc == 0; i++) {
                const char *name = list.v[i];
                bool is13 =
                        !strncmp(name, "TLS_AES_", 8) || !strncmp(name, "TLS_CHACHA20_POLY1305_SHA256", 28);
                lc_buf_t *b = is13 ? &v13 : &v12;
                const char *ours = is13 ? name : OPENSSL_cipher_name(name);

                if (!ours || !strcmp(ours, "(NONE)"))
                        rc = fail(err, "ssl.cipher.suites", name, "unknown cipher suite");
                else
                        lc_buf_printf(b, "%s%s", b->len ? ":" : "", ours);
        }
        if (rc == 0 && list.n &&
            (SSL_CTX_set_ciphersuites(ctx, v13.p ? v13.p : "") != 1 ||
             (v12.len && SSL_CTX_set_cipher_list(ctx, v12.p) != 1)))
                rc = fail(err, "ssl.cipher.suites", list.v[0], reason());
        lc_strv_free(&list);
        lc_buf_free(&v13);
        lc_buf_free(&v12);
        return rc;
}

void *lc_tls_context(const lc_worker_config_t *wc, lc_err_t *err)
{
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

        if (!ctx) {
                lc_err_set(err, LC_FATAL, 0, "Cannot initialise TLS: %s", reason());
                return NULL;
        }
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        if (set_protocols(ctx, wc, err) < 0 || set_ciphers(ctx, wc, err) < 0 ||
            load_trust(ctx, wc, err) < 0 || load_own(ctx, wc, err) < 0) {
                SSL_CTX_free(ctx);
                return NULL;
        }
        return ctx;
}

void lc_tls_context_free(void *ctx)
{
        SSL_CTX_free(ctx);
}
