/*
 * err.h - the one error type of the core. It never allocates, so it works when memory is out.
 *
 * Threads:   a value type; no sharing.
 * Ownership: plain struct on the caller's stack; `cls` points to a string literal.
 * Errors:    the kind alone decides what the worker does next, never the text.
 * Tests:     spec/unit/base_spec.lua
 */
#ifndef LC_BASE_ERR_H
#define LC_BASE_ERR_H

typedef enum {
        LC_FATAL = 1, /* the task, connector or worker cannot go on */
        LC_RETRIABLE, /* the same call may succeed later */
        LC_DATA,      /* this record is bad: tolerance and dead letters decide */
        LC_FENCED     /* another instance took over: stop and write nothing more */
} lc_err_kind_t;

typedef struct lc_err {
        lc_err_kind_t kind; /* 0 while unset */
        int code;           /* errno, rd_kafka_resp_err_t, HTTP status, or 0 */
        const char *cls;    /* Java exception class shown in traces, or NULL (ConnectException) */
        char where[48];     /* file:line of the first failure */
        char msg[1024];     /* for a person; always terminated */
        char detail[2048];  /* lines below the first of a trace: "Caused by: ...", Lua traceback */
} lc_err_t;

#define LC_CLS_CONNECT       "org.apache.kafka.connect.errors.ConnectException"
#define LC_CLS_DATA          "org.apache.kafka.connect.errors.DataException"
#define LC_CLS_RETRIABLE     "org.apache.kafka.connect.errors.RetriableException"
#define LC_CLS_CONFIG        "org.apache.kafka.common.config.ConfigException"
#define LC_CLS_SERIALIZATION "org.apache.kafka.common.errors.SerializationException"

/* Clear *err before use: lc_err_t err = LC_ERR_INIT; costs nothing but the first bytes. */
void lc_err_clear(lc_err_t *err);

/* Fill *err unless it is NULL or already set (the first failure wins). Returns -1. */
int lc_err_set_(lc_err_t *err, const char *file, int line, lc_err_kind_t kind, int code, const char *cls,
                const char *fmt, ...) __attribute__((format(printf, 7, 8)));
#define lc_err_set(err, kind, code, ...)                                                                     \
        lc_err_set_((err), __FILE__, __LINE__, (kind), (code), (void *)0, __VA_ARGS__)
/* The same with the Java class that a trace names. */
#define lc_err_set_cls(err, kind, code, cls, ...)                                                            \
        lc_err_set_((err), __FILE__, __LINE__, (kind), (code), (cls), __VA_ARGS__)

/* Append "Caused by: CLS: TEXT\n" to err->detail. */
void lc_err_cause(lc_err_t *err, const char *cls, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Put a new first line over an error: the old first line becomes a "Caused by:" line. Kind stays. */
void lc_err_wrap(lc_err_t *err, const char *cls, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Text of a status trace: "CLS: MSG\n" + detail + "\tat luaconnect(WHERE)\n". Returns malloc'ed. */
char *lc_err_trace(const lc_err_t *err);
const char *lc_err_kind_name(lc_err_kind_t kind);

#endif
