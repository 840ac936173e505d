/*
 * session_key.h - the key that signs requests between workers (sessioned protocol). The leader writes it to
 * the config topic; Java workers read the same record.
 *
 * Threads:   any; no state.
 * Source:    storage 2.1, group 4, worker-config 3 (inter.worker.*).   Tests: spec/unit/herder_spec.lua
 */
#ifndef LC_HERDER_SESSION_KEY_H
#define LC_HERDER_SESSION_KEY_H
#include "config/worker_config.h"
#include "storage/config_store.h"

/* None yet, expired, or of another algorithm or size than the settings say. */
bool lc_session_key_due(const lc_worker_config_t *wc, const lc_config_snapshot_t *s, int64_t wall_ms);
int64_t lc_session_key_expires(const lc_worker_config_t *wc,
                               const lc_config_snapshot_t *s);          /* INT64_MAX never */
char *lc_session_key_make(const lc_worker_config_t *wc, lc_err_t *err); /* base64, malloc'ed */

/* What a request between workers carries: base64 of the MAC of its body (no body: no bytes) under the key,
 * malloc'ed; NULL for an algorithm or a key that is none. algorithm: Java's name, "HmacSHA256". */
char *lc_session_sign(const char *key_base64, const char *algorithm, const void *body, size_t n,
                      lc_err_t *err);
/* Java's order of checks. Can the header values be read at all? -1: err.code is 400, its text Java's. */
int lc_session_signature_check(const char *algorithm, const char *signature_base64, lc_err_t *err);
/* In constant time: was the body signed with this key? */
bool lc_session_verify(const char *key_base64, const char *algorithm, const char *signature_base64,
                       const void *body, size_t n);

#endif
