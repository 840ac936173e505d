/*
 * cells.h - what the standard transforms do with records, keys and values: C on C values, made for LuaJIT's
 * FFI (lua/connect/cells.lua).
 *
 * Values are never changed in place once a record has them: what changes is made new in the batch's arena, so
 * that a copy of a record's struct keeps what it was.
 * Threads:   the script's.
 * Ownership: everything made lives in the batch's arena; schemas are held by the batch.
 * Errors:    NULL or -1 without an error is "memory is out"; with one it carries Connect's message.
 * Tests:     spec/unit/chain_spec.lua, spec/unit/header_from_spec.lua, spec/golden/smt_spec.lua
 */
#ifndef LC_SCRIPT_CELLS_H
#define LC_SCRIPT_CELLS_H
#include "data/record.h"
#include "data/schema_builder.h"

/* *out = a STRING or BYTES with a copy of s. */
int lc_cells_text(lc_batch_t *b, lc_type_t type, const char *s, size_t n, lc_value_t *out);
/* A copy of a topic's name, terminated. */
const char *lc_cells_topic(lc_batch_t *b, const char *s, size_t n);

/* *out = a struct of schema with all fields null. */
int lc_cells_struct(lc_batch_t *b, const lc_schema_t *schema, lc_value_t *out);
/* The same with field i copied from field index[i] of `from`, -1: left null. With `defaults` a null field is
 * read as its schema's default. Nulls are checked against the new schema. */
int lc_cells_project(lc_batch_t *b, const lc_struct_value_t *from, const lc_schema_t *schema,
                     const int32_t *index, bool defaults, lc_value_t *out, lc_err_t *err);
/* Struct.put(): field i of a new struct, validated. */
int lc_cells_put(lc_value_t *st, uint32_t i, const lc_value_t *value, lc_err_t *err);
/* Struct.get() (`defaults`) or getWithoutDefault(). */
const lc_value_t *lc_cells_read(const lc_struct_value_t *st, uint32_t i, bool defaults);

/* *out = a map with the entries of `from` (NULL: none) and room for more. */
int lc_cells_map(lc_batch_t *b, const lc_value_t *from, uint32_t room, lc_value_t *out);
/* Entry whose key is this string, -1 if there is none. */
int lc_cells_find(const lc_value_t *map, const char *name, size_t n);
/* The value of a string key in a map made by lc_cells_map: there, or appended as null. */
lc_value_t *lc_cells_map_put(lc_batch_t *b, lc_value_t *map, const char *name, size_t n);
/* Likewise with any key, which is copied as it is (16 bytes). */
lc_value_t *lc_cells_map_put_key(lc_batch_t *b, lc_value_t *map, const lc_value_t *key);
/* *out = an array of n nulls. */
int lc_cells_array(lc_batch_t *b, uint32_t n, lc_value_t *out);

/* A set of names, numbered from 0 in the order they were added. */
typedef struct lc_cells_names lc_cells_names_t;
lc_cells_names_t *lc_cells_names_new(void);
void lc_cells_names_free(lc_cells_names_t *names);
int lc_cells_names_add(lc_cells_names_t *names, const char *s, size_t n);
int lc_cells_names_find(const lc_cells_names_t *names, const char *s, size_t n);

enum { LC_CELLS_DROP = -1, LC_CELLS_KEEP = -2 };
/* *out = a map with the entries of `from` whose action is not DROP, in their order; an action >= 0 renames to
 * that name. action[] is by name, `other` for names not in the set. A later entry of the same new name
 * replaces the earlier one's value. */
int lc_cells_map_rename(lc_batch_t *b, const lc_value_t *from, const lc_cells_names_t *names,
                        const int32_t *action, int32_t other, lc_value_t *out, lc_err_t *err);

/* at[] (by name): the entry of `from` whose key it is, -1: there is none. rest (NULL: not wanted): a map of the other
 * entries, in their order. */
int lc_cells_map_pick(lc_batch_t *b, const lc_value_t *from, const lc_cells_names_t *names, int32_t *at,
                      lc_value_t *rest);

/* A copy of the record's headers with `more` behind them, to be filled; the record gets it by setting its fields.
 * NULL: too many, or memory is out. */
lc_header_t *lc_cells_headers(const lc_record_t *r, uint32_t more);
/* A header's name and schema (value null). */
int lc_cells_header_fill(lc_batch_t *b, lc_header_t *h, const char *name, size_t n,
                         const lc_schema_t *schema);
/* Without the headers whose name is in the set. -1: memory is out. */
int lc_cells_drop_headers(lc_record_t *r, const lc_cells_names_t *names);
bool lc_cells_has_header(const lc_record_t *r, const char *name);

/* Name, version, doc and parameters of `from`. */
void lc_cells_basics(lc_schema_builder_t *b, const lc_schema_t *from);

#endif
