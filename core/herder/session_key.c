/* session_key.c - see session_key.h. */
#include "herder/session_key.h"
#include "base/alloc.h"
#include "convert/base64.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

/* Java's KeyGenerator: bytes of a key when the size is not given. */
static const struct {
        const char *algorithm;
        int bytes;
} sizes[] = {
        {"HmacSHA256", 32}, {"HmacSHA1", 64},   {"HmacMD5", 64}, {"HmacSHA224", 28},
        {"HmacSHA384", 48}, {"HmacSHA512", 64}, {"AES", 32},
};

static int key_bytes(const lc_worker_config_t *wc)
{
        const char *bits = lc_worker_config_str(wc, "inter.worker.key.size");
        const char *algorithm = lc_worker_config_str(wc, "inter.worker.key.generation.algorithm");

        if (bits && atoi(bits) > 0)
                return (atoi(bits) + 7) / 8;
        for (size_t i = 0; algorithm && i < sizeof(sizes) / sizeof(sizes[0]); i++)
                if (!strcasecmp(sizes[i].algorithm, algorithm))
                        return sizes[i].bytes;
        return 32;
}

static int decoded_size(const char *base64)
{
        size_t n = strlen(base64);
        int size = (int)(n / 4) * 3;

        while (n && base64[n - 1] == '=') {
                n--;
                size--;
        }
        return size;
}

int64_t lc_session_key_expires(const lc_worker_config_t *wc, const lc_config_snapshot_t *s)
{
        int64_t ttl = lc_worker_config_int(wc, "inter.worker.key.ttl.ms");

        return s->session_key && ttl > 0 ? s->session_key_created + ttl : INT64_MAX;
}

bool lc_session_key_due(const lc_worker_config_t *wc, const lc_config_snapshot_t *s, int64_t wall_ms)
{
        const char *algorithm = lc_worker_config_str(wc, "inter.worker.key.generation.algorithm");

        return !s->session_key || lc_session_key_expires(wc, s) <= wall_ms || !s->session_key_algorithm ||
               !algorithm || strcmp(s->session_key_algorithm, algorithm) != 0 ||
               decoded_size(s->session_key) != key_bytes(wc);
}

char *lc_session_key_make(const lc_worker_config_t *wc, lc_err_t *err)
{
        int n = key_bytes(wc);
        unsigned char *key = lc_malloc((size_t)n);
        char *text = lc_malloc((size_t)n * 2 + 8);

        if (RAND_bytes(key, n) != 1) {
                lc_err_set(err, LC_RETRIABLE, 0, "No random numbers for a session key");
                free(text);
                text = NULL;
        } else {
                EVP_EncodeBlock((unsigned char *)text, key, n);
        }
        OPENSSL_cleanse(key, (size_t)n);
        free(key);
        return text;
}

static const struct {
        const char *algorithm, *digest;
} macs[] = {
        {"HmacSHA256", "SHA256"},         {"HmacSHA1", "SHA1"},
        {"HmacSHA512", "SHA512"},         {"HmacSHA384", "SHA384"},
        {"HmacSHA224", "SHA224"},         {"HmacMD5", "MD5"},
        {"HmacSHA512/224", "SHA512-224"}, {"HmacSHA512/256", "SHA512-256"},
        {"HmacSHA3-224", "SHA3-224"},     {"HmacSHA3-256", "SHA3-256"},
        {"HmacSHA3-384", "SHA3-384"},     {"HmacSHA3-512", "SHA3-512"},
};

static const EVP_MD *digest_of(const char *algorithm)
{
        for (size_t i = 0; algorithm && i < sizeof(macs) / sizeof(macs[0]); i++)
                if (!strcasecmp(macs[i].algorithm, algorithm))
                        return EVP_get_digestbyname(macs[i].digest);
        return NULL;
}

/* The MAC's bytes: their number, 0 when there is none. */
static size_t mac(const char *key_base64, const char *algorithm, const void *body, size_t n,
                  unsigned char out[EVP_MAX_MD_SIZE], lc_err_t *err)
{
        const EVP_MD *md = digest_of(algorithm);
        unsigned char *key = lc_malloc(strlen(key_base64) + 1);
        unsigned int len = 0;
        size_t key_len;
        lc_err_t bad;

        lc_err_clear(&bad);
        if (!md)
                lc_err_set(err, LC_DATA, 400, "Algorithm %s not available", algorithm);
        else if (lc_base64_decode_basic(key_base64, key, &key_len, &bad) < 0 || !key_len)
                lc_err_set(err, LC_RETRIABLE, 0, "The session key in the config topic is no key: %s",
                           bad.kind ? bad.msg : "it is empty");
        else if (!HMAC(md, key, (int)key_len, body ? body : "", n, out, &len))
                lc_err_set(err, LC_RETRIABLE, 0, "OpenSSL cannot compute %s", algorithm);
        OPENSSL_cleanse(key, strlen(key_base64) + 1);
        free(key);
        return len;
}

char *lc_session_sign(const char *key_base64, const char *algorithm, const void *body, size_t n,
                      lc_err_t *err)
{
        unsigned char sum[EVP_MAX_MD_SIZE];
        size_t len = mac(key_base64, algorithm, body, n, sum, err);
        char *text = len ? lc_malloc(len * 2 + 8) : NULL;

        if (text)
                EVP_EncodeBlock((unsigned char *)text, sum, (int)len);
        return text;
}

int lc_session_signature_check(const char *algorithm, const char *signature_base64, lc_err_t *err)
{
        unsigned char *bytes;
        size_t len;
        int rc;

        if (!digest_of(algorithm))
                return lc_err_set(err, LC_DATA, 400, "Algorithm %s not available", algorithm);
        bytes = lc_malloc(strlen(signature_base64) + 1);
        rc = lc_base64_decode_basic(signature_base64, bytes, &len, err);
        free(bytes);
        return rc;
}

bool lc_session_verify(const char *key_base64, const char *algorithm, const char *signature_base64,
                       const void *body, size_t n)
{
        unsigned char sum[EVP_MAX_MD_SIZE], *given = lc_malloc(strlen(signature_base64) + 1);
        size_t len, given_len;
        lc_err_t err;
        bool same;

        lc_err_clear(&err);
        len = mac(key_base64, algorithm, body, n, sum, &err);
        same = len && lc_base64_decode_basic(signature_base64, given, &given_len, &err) == 0 &&
               given_len == len && CRYPTO_memcmp(given, sum, len) == 0;
        free(given);
        return same;
}
