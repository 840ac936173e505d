/* sasl.c - see sasl.h. RFC 5802, RFC 7677; no channel binding, as Kafka's clients. */
#include "kafka/wire/sasl.h"
#include "base/alloc.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

enum { MIN_ITERATIONS = 4096, MAX_ITERATIONS = 1 << 24 };

const char *lc_sasl_name(lc_sasl_mechanism_t m)
{
        switch (m) {
        case LC_SASL_PLAIN:
                return "PLAIN";
        case LC_SASL_SCRAM_SHA_256:
                return "SCRAM-SHA-256";
        case LC_SASL_SCRAM_SHA_512:
                return "SCRAM-SHA-512";
        case LC_SASL_NONE:
                break;
        }
        return "none";
}

void lc_sasl_plain(const char *user, const char *password, lc_buf_t *out)
{
        lc_buf_addc(out, '\0');
        lc_buf_adds(out, user);
        lc_buf_addc(out, '\0');
        lc_buf_adds(out, password);
}

int lc_scram_first(lc_scram_t *s, lc_buf_t *out, lc_err_t *err)
{
        unsigned char raw[24];

        if (!s->nonce[0]) {
                if (RAND_bytes(raw, sizeof(raw)) != 1)
                        return lc_err_set(err, LC_RETRIABLE, 0, "No random numbers for SCRAM");
                EVP_EncodeBlock((unsigned char *)s->nonce, raw, sizeof(raw));
        }
        lc_buf_clear(&s->bare);
        lc_buf_adds(&s->bare, "n=");
        for (const char *p = s->user; *p; p++)
                if (*p == '=')
                        lc_buf_adds(&s->bare, "=3D");
                else if (*p == ',')
                        lc_buf_adds(&s->bare, "=2C");
                else
                        lc_buf_addc(&s->bare, *p);
        lc_buf_printf(&s->bare, ",r=%s", s->nonce);
        lc_buf_adds(out, "n,,");
        lc_buf_add(out, s->bare.p, s->bare.len);
        return 0;
}

/* The value of attribute `name` in "r=..,s=..,i=..", malloc'ed, or NULL. */
static char *attribute(const char *text, char name)
{
        for (const char *p = text; p && *p; p = strchr(p, ',')) {
                p += *p == ',';
                if (p[0] == name && p[1] == '=')
                        return lc_strndup(p + 2, strcspn(p + 2, ","));
        }
        return NULL;
}

static int decode64(const char *text, unsigned char *out, size_t cap)
{
        size_t len = strlen(text);
        int n;

        if (!len || len % 4 || len / 4 * 3 > cap)
                return -1;
        n = EVP_DecodeBlock(out, (const unsigned char *)text, (int)len);
        while (n > 0 && len && text[len - 1] == '=') {
                n--;
                len--;
        }
        return n;
}

static void hmac(const EVP_MD *md, const unsigned char *key, int n, const void *data, size_t len,
                 unsigned char *out)
{
        unsigned int ignored;

        HMAC(md, key, n, data, len, out, &ignored);
}

int lc_scram_final(lc_scram_t *s, const char *server_first, lc_buf_t *out, lc_err_t *err)
{
        const EVP_MD *md = s->mechanism == LC_SASL_SCRAM_SHA_512 ? EVP_sha512() : EVP_sha256();
        int n = EVP_MD_get_size(md), salt_len = -1, rc = -1;
        char *nonce = attribute(server_first, 'r'), *salt64 = attribute(server_first, 's');
        char *iterations = attribute(server_first, 'i'), proof64[128];
        unsigned char salt[512], salted[64], key[64], stored[64], signature[64];
        unsigned int ignored;
        lc_buf_t auth = LC_BUF_SURE, without = LC_BUF_SURE;
        long count = iterations ? strtol(iterations, NULL, 10) : 0;

        if (salt64)
                salt_len = decode64(salt64, salt, sizeof(salt));
        if (!nonce || strncmp(nonce, s->nonce, strlen(s->nonce)) || strlen(nonce) == strlen(s->nonce) ||
            salt_len <= 0 || count < MIN_ITERATIONS || count > MAX_ITERATIONS) {
                lc_err_set(err, LC_FATAL, 0, "Invalid SCRAM server first message format");
                goto done;
        }
        PKCS5_PBKDF2_HMAC(s->password, -1, salt, salt_len, (int)count, md, n, salted);
        hmac(md, salted, n, "Client Key", 10, key);
        EVP_Digest(key, (size_t)n, stored, &ignored, md, NULL);
        lc_buf_printf(&without, "c=biws,r=%s", nonce);
        lc_buf_printf(&auth, "%s,%s,%s", s->bare.p, server_first, without.p);
        hmac(md, stored, n, auth.p, auth.len, signature);
        for (int i = 0; i < n; i++)
                key[i] ^= signature[i];
        EVP_EncodeBlock((unsigned char *)proof64, key, n);
        lc_buf_printf(out, "%s,p=%s", without.p, proof64);
        hmac(md, salted, n, "Server Key", 10, key);
        hmac(md, key, n, auth.p, auth.len, signature);
        EVP_EncodeBlock((unsigned char *)s->expected, signature, n);
        rc = 0;
done:
        OPENSSL_cleanse(salted, sizeof(salted));
        OPENSSL_cleanse(key, sizeof(key));
        free(nonce);
        free(salt64);
        free(iterations);
        lc_buf_free(&auth);
        lc_buf_free(&without);
        return rc;
}

int lc_scram_verify(const lc_scram_t *s, const char *server_final, lc_err_t *err)
{
        char *error = attribute(server_final, 'e'), *v = attribute(server_final, 'v');
        int rc = 0;

        if (error)
                rc = lc_err_set(err, LC_FATAL, 0, "Sasl authentication using %s failed with error: %s",
                                lc_sasl_name(s->mechanism), error);
        else if (!v || strlen(v) != strlen(s->expected) || CRYPTO_memcmp(v, s->expected, strlen(v)))
                rc = lc_err_set(err, LC_FATAL, 0, "Invalid server signature in server final message");
        free(error);
        free(v);
        return rc;
}

void lc_scram_clear(lc_scram_t *s)
{
        lc_buf_free(&s->bare);
        memset(s, 0, sizeof(*s));
}
