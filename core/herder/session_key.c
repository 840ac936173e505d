/* session_key.c - see session_key.h. */
#include "herder/session_key.h"
#include "base/alloc.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
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
