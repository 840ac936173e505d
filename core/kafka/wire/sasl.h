/*
 * sasl.h - the client side of SASL PLAIN and SCRAM-SHA-256/512 as messages; conn.c carries them.
 *
 * Threads:   one owner.
 * Errors:    LC_FATAL: what the server said is wrong (it cannot prove that it knows the password).
 * Tests:     spec/unit/wire_spec.lua (the example of RFC 7677)
 */
#ifndef LC_KAFKA_WIRE_SASL_H
#define LC_KAFKA_WIRE_SASL_H
#include "base/buf.h"
#include "base/err.h"
#include "kafka/wire/net.h"

typedef struct lc_scram {
        lc_sasl_mechanism_t mechanism;
        const char *user, *password; /* borrowed */
        char nonce[48];              /* made by lc_scram_first() unless set */
        lc_buf_t bare;               /* client-first-message-bare */
        char expected[128];          /* server signature, base64 */
} lc_scram_t;

const char *lc_sasl_name(lc_sasl_mechanism_t m);
void lc_sasl_plain(const char *user, const char *password, lc_buf_t *out);
int lc_scram_first(lc_scram_t *s, lc_buf_t *out, lc_err_t *err);
int lc_scram_final(lc_scram_t *s, const char *server_first, lc_buf_t *out, lc_err_t *err);
int lc_scram_verify(const lc_scram_t *s, const char *server_final, lc_err_t *err);
void lc_scram_clear(lc_scram_t *s);

#endif
