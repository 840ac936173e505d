/*
 * state.h - one Lua state: memory counted, entries protected, the sandbox built by lua/connect/boot.lua.
 * Internal to script/.
 *
 * Stack slots that stay: 1 the message handler, 2 the entry function.
 * lc_state_run() is the only way in: fn runs under lua_pcall and may use everything that raises, as long as
 * what it holds hangs on the state (scratch, xch.batch) or on its argument, whose owner frees it.
 *
 * Threads:   one caller at a time.
 * Tests:     spec/unit/script_spec.lua
 */
#ifndef LC_SCRIPT_STATE_H
#define LC_SCRIPT_STATE_H
#include <lauxlib.h>
#include <lua.h>
#include "script/code.h"
#include "script/entries.h"
#include "script/guard.h"
#include "script/script.h"

/* Shared with lua/connect/ffi.lua: what passes between Lua and C without a lua_State. */
typedef struct lc_ffi_exchange {
        lc_batch_t *batch;         /* poll: out, a reference. put, commit_record: in, borrowed */
        uint32_t index;            /* commit_record: which record. chain: the record in hand */
        uint32_t stage;            /* chain: the stage in hand, from 0 */
        lc_waker_t *stop;          /* or NULL */
        int64_t max_request_size;  /* 0: unknown */
        uint64_t pinned;           /* bytes of batches that Lua handles hold */
        uint64_t decoded, encoded; /* chain: values made Lua's, and made of Lua's */
        lc_delivery_t to;          /* commit_record: where the record is, if it was sent */
        bool sent;
} lc_ffi_exchange_t;

typedef struct lc_partitions lc_partitions_t; /* encode_batch.c: interned source partitions */

typedef struct lc_state {
        lua_State *L;
        size_t used, limit;           /* bytes; limit 0: none */
        lc_code_t *code;              /* borrowed */
        const char *home;             /* borrowed */
        const lc_script_host_t *host; /* borrowed, or NULL: at the scan */
        lc_ffi_exchange_t xch;
        uint64_t pinned_after_gc;
        lc_err_t *err; /* where the running call's failure goes */
        void (*fn)(lua_State *L, void *arg);
        void *arg;
        int64_t deadline; /* of the load phase, lc_now_ms(); 0: none */
        lc_guard_t guard;
        const void *last; /* the newest block and its size */
        size_t last_size;
        lc_buf_t scratch;
        char *text; /* scratch, freed by the next user and with the state */
        lc_strv_t texts;
        lc_partitions_t *partitions;
} lc_state_t;

enum { LC_SLOT_HANDLER = 1, LC_SLOT_ENTRY, LC_SLOTS = LC_SLOT_ENTRY };
enum { LC_LOAD_PHASE_MS = 500 };

/* A state with lua/connect ready for the plugin whose modules are ROOT.x below `folder` (NULL: the plugin is
 * a single file). root NULL: for a chain, which opens a sandbox for each plugin. */
lc_state_t *lc_state_new(lc_code_t *code, const char *home, const lc_script_host_t *host, const char *root,
                         const char *folder, bool standard, lc_err_t *err);
void lc_state_free(lc_state_t *st);
lc_state_t *lc_state_of(lua_State *L);

/* fn(L, arg) under pcall. -1 with err filled: by kind from connect's errors, else LC_FATAL with traceback. */
int lc_state_run(lc_state_t *st, void (*fn)(lua_State *L, void *arg), void *arg, lc_err_t *err);
/* The same with a time limit, interpreted so that the limit holds. */
int lc_state_run_limited(lc_state_t *st, int ms, void (*fn)(lua_State *L, void *arg), void *arg,
                         lc_err_t *err);
/* Between calls: -1 when the state holds too much, records that its views keep included. */
int lc_state_memory(lc_state_t *st, lc_err_t *err);
/* Inside fn: push the named function of boot.lua's table. */
void lc_state_function(lua_State *L, const char *name);
/* Inside fn: raise *err as one of connect's errors. */
int lc_state_raise(lua_State *L, const lc_err_t *err);
/* The literal of a Java class that an error of connect's may name, or `other`. */
const char *lc_state_class(const char *name, const char *other);

/* plugin.max.files, and no more than a quarter of what the process may open. 0: any number. */
int lc_state_max_files(void);

/* strings.c: find, match, gmatch, gsub: functions for lua/connect/strings.lua. Set in the table on top. */
void lc_strings_push(lua_State *L);
/* files.c: file_read, for the same. */
void lc_files_push(lua_State *L);
/* host.c: the table of functions that lua/connect/host.lua is in a worker. Pushed. */
void lc_host_push(lua_State *L);
/* encode_batch.c */
int lc_encode_batch(lua_State *L);     /* list of records -> st->xch.batch */
int lc_encode_canonical(lua_State *L); /* table -> canonical JSON */
/* chain.c: the state of a chain with stages */
lc_state_t *lc_script_chain_state(lc_script_chain_t *c);
/* chain.c: what chain_author.lua gives back: (slot, value, schema) and (table with headers) */
int lc_chain_set_value(lua_State *L);
int lc_chain_set_null(lua_State *L);
int lc_chain_set_headers(lua_State *L);
void lc_partitions_free(lc_partitions_t *p);

/* plugin_impl of lc_plugin_t and lc_plugins_t */
typedef struct lc_plugin_set {
        char *home;
        lc_code_t *code;
        lc_state_t *scan; /* while the plugins that ship are scanned, or NULL */
        lc_entries_t entries;
} lc_plugin_set_t;
typedef struct lc_plugin_impl {
        lc_plugin_set_t *set;
        char *path, *folder, *root; /* folder NULL: a single file */
        int index;                  /* of the declaration in what the file returned, from 1 */
        char *variant;              /* "key" or "value" of a transform declared `on` them, or NULL */
        bool standard;              /* ships with the program */
        bool has_validate, has_exactly_once;
} lc_plugin_impl_t;
/* A state with this plugin's file run in it (load phase) and its declaration selected. */
lc_state_t *lc_state_for_plugin(const lc_plugin_t *plugin, const lc_script_host_t *host, lc_err_t *err);
/* Inside fn: push a table name -> value of config, rows parsed to their types by boot.lua's functions. With
 * `bad` NULL a value that does not parse is raised; else its message is dropped and its name added there. */
void lc_state_push_config(lua_State *L, const lc_plugin_t *plugin, const lc_props_t *config, lc_strv_t *bad);

#endif
