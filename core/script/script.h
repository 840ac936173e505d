/*
 * script.h - everything Lua: plugin discovery, one state per connector, task or converter instance, and
 * the calls into it. No lua_* function is called outside this room.
 *
 * Threads:   a script belongs to one caller at a time (a task's thread; the connector pool). States share
 *            nothing but bytecode compiled once per plugin at the scan.
 * Ownership: see each function. A batch from poll is the caller's reference.
 * Errors:    what a script raises: connect.retriable/data_error/fatal by kind; anything else LC_FATAL with
 *            the Lua traceback in err->detail.
 * Source:    DESIGN 3 to 6, docs/authoring.md.   Tests: spec/unit/script_spec.lua, plugins_spec.lua
 */
#ifndef LC_SCRIPT_SCRIPT_H
#define LC_SCRIPT_SCRIPT_H
#include "base/strv.h"
#include "base/waker.h"
#include "config/plugin.h"
#include "convert/converter.h"
#include "data/record.h"
#include "kafka/consumer.h"

/* Standard plugins under `home` (the folder that holds lua/ and connectors/), then every entry NAME.lua or
 * NAME/init.lua of each folder of plugin.path. Never fails for a broken plugin: it is listed with its
 * error. A .jar is skipped with one warning, a missing folder with another. C converters are included. */
lc_plugins_t *lc_plugins_scan(const char *home, const lc_strv_t *plugin_path, lc_err_t *err);
/* For a short life: of the standard plugins only transforms and predicates that may be one of these classes or
 * aliases. No reload. */
lc_plugins_t *lc_plugins_scan_for(const char *home, const lc_strv_t *plugin_path, const lc_strv_t *names,
                                  lc_err_t *err);
/* The end of the family that lc_plugins_scan() began; sets that somebody still refers to go on. */
void lc_plugins_free(lc_plugins_t *first);

/* What became of the plugin files that changed since they were loaded. */
typedef struct lc_reload_item {
        char *location; /* the file or folder */
        lc_strv_t classes;
        /* "reloaded", "added", "removed"; "kept": the code before it goes on; "broken": there was none before
         * it; "restored": the file is again the one that runs. */
        const char *result;
        char *reason; /* kept, broken; or what else there is to say; or NULL */
} lc_reload_item_t;
typedef struct lc_reload_report {
        lc_reload_item_t *v;
        size_t n;
} lc_reload_report_t;
/* Looks at all plugin files again. One that changed (or a module of its folder) is loaded in a fresh state,
 * and its examples run; where that fails the plugins of the file stay as they were, with reload_error. A new
 * set with the result becomes the current one, unless nothing changed. standard: also the plugins that ship.
 * Runs user code; one reload of a family at a time, others wait. The outcome is logged. */
void lc_plugins_reload(const lc_plugins_t *any, const lc_strv_t *plugin_path, bool standard,
                       lc_reload_report_t *report);
void lc_reload_report_free(lc_reload_report_t *report);
/* The folders to watch for changes. */
void lc_plugins_folders(const lc_plugins_t *any, const lc_strv_t *plugin_path, bool standard, lc_strv_t *out);
/* $LUACONNECT_HOME, else beside the program (source tree or build/..), else the install prefix's
 * share/luaconnect. malloc'ed, NULL with err if none has lua/connect. */
char *lc_home_find(lc_err_t *err);

/* Calls into scripts that this thread makes from here on: whose they are (an address, only compared), and how
 * many ms one may take (0: any time). A call that takes longer is ended: LC_FATAL with the Lua traceback. */
void lc_script_owner(const void *owner, int max_call_ms);
/* err->code of what was ended: too long, too much memory, a stop overdue. No HTTP status, errno or code of Kafka. */
enum { LC_SCRIPT_ENDED = 10001 };
/* End the call into a script of this owner that runs now, as above. Any thread. How many were running: one,
 * or none. A call that begins later is not touched. */
int lc_script_interrupt(const void *owner);
/* plugin.max.memory: bytes that a state made from here on may hold, 0: any number. */
void lc_script_max_memory(size_t bytes);
/* plugin.max.files: files that a state made from here on may hold open, 0: any number. */
void lc_script_max_files(int n);

/* What a script may reach of the worker. Functions run on the script's thread; NULL = not for this role. */
typedef struct lc_script_host {
        void *arg;
        const char *connector;
        int task;                     /* -1: the connector */
        lc_waker_t *stop;             /* woken: every wait of the script ends */
        const volatile int *stopping; /* nonzero: ctx:stopping() */
        /* ctx.offsets: 1 and JSON appended, 0 none, -1 */
        int (*offset_get)(void *arg, const char *partition_json, lc_buf_t *out, lc_err_t *err);
        void (*reconfigure)(void *arg);                /* ctx:reconfigure() */
        void (*raise)(void *arg, const lc_err_t *err); /* ctx:raise() of a connector */
        int (*pause)(void *arg, const lc_topic_partition_t *tps, size_t n, lc_err_t *err);
        int (*resume)(void *arg, const lc_topic_partition_t *tps, size_t n, lc_err_t *err);
        void (*seek)(void *arg, const lc_topic_partition_t *tp);
        void (*timeout)(void *arg, int64_t ms);
        void (*request_commit)(void *arg);
        size_t (*assignment)(void *arg, const lc_topic_partition_t **tps); /* borrowed */
        /* ctx:report() of a sink: the record failed. -1 with err: beyond the tolerance. */
        int (*report)(void *arg, lc_record_t *record, const lc_err_t *failure, lc_err_t *err);
        /* ctx.transaction of a source that sets its own boundaries; record: its index in what this poll returns,
         * -1: the batch as a whole. */
        int (*transaction)(void *arg, bool abort, int64_t record, lc_err_t *err);
        int64_t max_request_size; /* bytes; sources: the producer's max.request.size */
} lc_script_host_t;

typedef enum { LC_SCRIPT_CONNECTOR, LC_SCRIPT_SOURCE_TASK, LC_SCRIPT_SINK_TASK } lc_script_role_t;
typedef struct lc_script lc_script_t;

/* host is borrowed and must outlive the script. */
lc_script_t *lc_script_new(const lc_plugin_t *plugin, lc_script_role_t role, const lc_script_host_t *host,
                           lc_err_t *err);
void lc_script_free(lc_script_t *s);           /* NULL is fine; batches that views still hold are released */
size_t lc_script_memory(const lc_script_t *s); /* bytes of the Lua heap */

/* Every role. config: resolved; parsed by the plugin's rows before Lua sees it (ctx.config). stop is also
 * called after a failed start, once. */
int lc_script_start(lc_script_t *s, const lc_props_t *config, lc_err_t *err);
int lc_script_stop(lc_script_t *s, lc_err_t *err);

/* Connector: pure function of the config; default: one task with the config. *out malloc'ed array. */
int lc_script_task_configs(lc_script_t *s, const lc_props_t *config, int max_tasks, lc_props_t ***out, int *n,
                           lc_err_t *err);

/* Source task. *batch NULL: nothing now. */
int lc_script_poll(lc_script_t *s, lc_batch_t **batch, lc_err_t *err);
int lc_script_commit(lc_script_t *s, lc_err_t *err); /* offsets were committed; may be absent */
bool lc_script_has_commit_record(const lc_script_t *s);
/* to NULL: it was not sent (dropped, skipped). */
int lc_script_commit_record(lc_script_t *s, lc_record_t *r, const lc_delivery_t *to, lc_err_t *err);

/* Sink task. failed() is called for each record put returned as failed. */
int lc_script_open(lc_script_t *s, const lc_topic_partition_t *tps, size_t n, lc_err_t *err);
int lc_script_close(lc_script_t *s, const lc_topic_partition_t *tps, size_t n, lc_err_t *err);
int lc_script_put(lc_script_t *s, lc_batch_t *batch /* may have n 0 */,
                  void (*failed)(void *arg, uint32_t index, const lc_err_t *err), void *arg, lc_err_t *err);
/* offsets: what would be committed, in; what may be committed, out (a task without pre_commit flushes and
 * leaves it). Entries the task leaves out get offset -1001. */
int lc_script_pre_commit(lc_script_t *s, lc_topic_partition_t *offsets, size_t n, lc_err_t *err);

/* An instance of a converter written in Lua; destroyed through its class. config: without the prefix. role:
 * "key", "value" or "header". The plugin must outlive it. */
lc_converter_t *lc_script_converter_new(const lc_plugin_t *plugin, const lc_props_t *config, const char *role,
                                        lc_err_t *err);

/* The chain that `transforms` and `predicates` of a resolved config ask for: one Lua state for all stages.
 * Errors are what `configure` raised (a ConfigException mostly). host: connector, task, stop, stopping. */
typedef struct lc_script_chain lc_script_chain_t;
lc_script_chain_t *lc_script_chain_new(const lc_plugins_t *plugins, const lc_props_t *config, bool source,
                                       const lc_script_host_t *host, lc_err_t *err);
void lc_script_chain_free(lc_script_chain_t *c);           /* NULL is fine */
size_t lc_script_chain_stages(const lc_script_chain_t *c); /* 0: nothing to run */
const char *lc_script_chain_class(const lc_script_chain_t *c, size_t stage);
/* All stages over records[from..to) that are LC_REC_NEW, the first of them from `stage` on; a record that is
 * filtered out becomes LC_REC_DROPPED. -1: records[*at] failed in *failed_stage, those before are done. */
int lc_script_chain_run(lc_script_chain_t *c, lc_batch_t *batch, uint32_t from, size_t stage, uint32_t to,
                        uint32_t *at, size_t *failed_stage, lc_err_t *err);
/* How many keys, values and headers were made Lua values, and made from Lua values, so far. */
void lc_script_chain_counts(const lc_script_chain_t *c, uint64_t *decoded, uint64_t *encoded);

#endif
