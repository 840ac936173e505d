/* cells.c - see cells.h. The script's thread. Spec: spec/unit/chain_spec.lua, spec/golden/smt_spec.lua. */
#include "script/cells.h"
#include "base/alloc.h"
#include "data/validate.h"
#include <stdlib.h>
#include <string.h>

static lc_value_t *nulls(lc_batch_t *b, size_t n)
{
        lc_value_t *v = lc_arena_alloc(&b->arena, (n ? n : 1) * sizeof(*v));

        if (v)
                memset(v, 0, n * sizeof(*v));
        return v;
}

int lc_cells_text(lc_batch_t *b, lc_type_t type, const char *s, size_t n, lc_value_t *out)
{
        const char *copy = n <= UINT32_MAX ? lc_arena_dup(&b->arena, s, n) : NULL;

        if (!copy)
                return -1;
        *out = (lc_value_t){.type = (uint8_t)type, .len = (uint32_t)n, .u.s = copy};
        return 0;
}

const char *lc_cells_topic(lc_batch_t *b, const char *s, size_t n)
{
        return lc_arena_dup(&b->arena, s, n);
}

/* ---- structs ------------------------------------------------------------------------------------ */

int lc_cells_struct(lc_batch_t *b, const lc_schema_t *schema, lc_value_t *out)
{
        lc_struct_value_t *st = lc_arena_alloc(&b->arena, sizeof(*st));

        if (!st || !(st->fields = nulls(b, schema->nfields)) || lc_batch_hold_schema(b, schema) < 0)
                return -1;
        st->schema = schema;
        *out = (lc_value_t){.type = LC_STRUCT, .u.st = st};
        return 0;
}

const lc_value_t *lc_cells_read(const lc_struct_value_t *st, uint32_t i, bool defaults)
{
        const lc_value_t *v = &st->fields[i];
        const lc_schema_t *s = st->schema->fields[i].schema;

        return defaults && v->type == LC_NULL && s->has_default ? &s->def : v;
}

int lc_cells_put(lc_value_t *st, uint32_t i, const lc_value_t *value, lc_err_t *err)
{
        const lc_field_t *f = &st->u.st->schema->fields[i];

        if (lc_validate_field(f->name, f->schema, value, err) < 0)
                return -1;
        st->u.st->fields[i] = *value;
        return 0;
}

int lc_cells_project(lc_batch_t *b, const lc_struct_value_t *from, const lc_schema_t *schema,
                     const int32_t *index, bool defaults, lc_value_t *out, lc_err_t *err)
{
        lc_value_t *fields;

        if (lc_cells_struct(b, schema, out) < 0)
                return lc_err_set(err, LC_FATAL, 0, "Out of memory for a struct");
        fields = out->u.st->fields;
        for (uint32_t i = 0; i < schema->nfields; i++) {
                if (index[i] < 0)
                        continue;
                fields[i] = *lc_cells_read(from, (uint32_t)index[i], defaults);
                /* other values were checked when they were put into `from` */
                if (fields[i].type == LC_NULL && !schema->fields[i].schema->optional &&
                    lc_validate_field(schema->fields[i].name, schema->fields[i].schema, &fields[i], err) < 0)
                        return -1;
        }
        return 0;
}

/* ---- maps --------------------------------------------------------------------------------------- */

/* A map that is being made says in `pad` how many entries fit behind the last one. */
static int map_of(lc_batch_t *b, const lc_value_t *items, uint32_t n, uint32_t room, lc_value_t *out)
{
        lc_value_t *copy;

        if (room > UINT16_MAX)
                room = UINT16_MAX;
        copy = lc_arena_alloc(&b->arena, (2 * ((size_t)n + room) + 1) * sizeof(*copy));
        if (!copy)
                return -1;
        if (n)
                memcpy(copy, items, 2 * (size_t)n * sizeof(*copy));
        *out = (lc_value_t){.type = LC_MAP, .pad = (uint16_t)room, .len = n, .u.items = copy};
        return 0;
}

int lc_cells_map(lc_batch_t *b, const lc_value_t *from, uint32_t room, lc_value_t *out)
{
        return map_of(b, from ? from->u.items : NULL, from ? from->len : 0, room, out);
}

static bool is_text(const lc_value_t *v, const char *s, size_t n)
{
        return v->type == LC_STRING && v->len == n && (!n || !memcmp(v->u.s, s, n));
}

int lc_cells_find(const lc_value_t *map, const char *name, size_t n)
{
        for (uint32_t i = 0; i < map->len; i++)
                if (is_text(&map->u.items[2 * i], name, n))
                        return (int)i;
        return -1;
}

static lc_value_t *append(lc_batch_t *b, lc_value_t *map, const lc_value_t *key)
{
        lc_value_t *entry;

        if (!map->pad && map_of(b, map->u.items, map->len, map->len + 8, map) < 0)
                return NULL;
        map->pad--;
        entry = &map->u.items[2 * (size_t)map->len++];
        entry[0] = *key;
        entry[1] = lc_value_null();
        return &entry[1];
}

lc_value_t *lc_cells_map_put(lc_batch_t *b, lc_value_t *map, const char *name, size_t n)
{
        int at = lc_cells_find(map, name, n);
        lc_value_t key;

        if (at >= 0)
                return &map->u.items[2 * at + 1];
        return lc_cells_text(b, LC_STRING, name, n, &key) < 0 ? NULL : append(b, map, &key);
}

lc_value_t *lc_cells_map_put_key(lc_batch_t *b, lc_value_t *map, const lc_value_t *key)
{
        for (uint32_t i = 0; i < map->len; i++)
                if (lc_value_equal(&map->u.items[2 * i], key))
                        return &map->u.items[2 * i + 1];
        return append(b, map, key);
}

int lc_cells_array(lc_batch_t *b, uint32_t n, lc_value_t *out)
{
        lc_value_t *items = nulls(b, n);

        if (!items)
                return -1;
        *out = (lc_value_t){.type = LC_ARRAY, .len = n, .u.items = items};
        return 0;
}

/* ---- names -------------------------------------------------------------------------------------- */

struct lc_cells_names {
        lc_value_t *v; /* STRINGs, own memory; room for half as many as the table */
        uint32_t n;
        uint32_t *table; /* number + 1; at most half full */
        uint32_t mask;
};

static uint32_t hash_of(const char *s, size_t n)
{
        uint32_t h = 2166136261u;

        for (size_t i = 0; i < n; i++)
                h = (h ^ (unsigned char)s[i]) * 16777619u;
        return h;
}

lc_cells_names_t *lc_cells_names_new(void)
{
        return lc_calloc(1, sizeof(lc_cells_names_t));
}

void lc_cells_names_free(lc_cells_names_t *names)
{
        if (!names)
                return;
        for (uint32_t i = 0; i < names->n; i++)
                free((char *)names->v[i].u.s);
        free(names->v);
        free(names->table);
        free(names);
}

int lc_cells_names_find(const lc_cells_names_t *names, const char *s, size_t n)
{
        if (!names->n)
                return -1;
        for (uint32_t h = hash_of(s, n);; h++) {
                uint32_t at = names->table[h & names->mask];
                if (!at)
                        return -1;
                if (is_text(&names->v[at - 1], s, n))
                        return (int)at - 1;
        }
}

static void enter(lc_cells_names_t *names, uint32_t i)
{
        uint32_t h = hash_of(names->v[i].u.s, names->v[i].len);

        while (names->table[h & names->mask])
                h++;
        names->table[h & names->mask] = i + 1;
}

static void grow(lc_cells_names_t *names)
{
        uint32_t size = names->table ? (names->mask + 1) * 2 : 16;

        names->v = lc_realloc(names->v, size / 2 * sizeof(*names->v));
        free(names->table);
        names->table = lc_calloc(size, sizeof(*names->table));
        names->mask = size - 1;
        for (uint32_t i = 0; i < names->n; i++)
                enter(names, i);
}

int lc_cells_names_add(lc_cells_names_t *names, const char *s, size_t n)
{
        int at = lc_cells_names_find(names, s, n);

        if (at >= 0)
                return at;
        if (!names->table || names->n == (names->mask + 1) / 2)
                grow(names);
        names->v[names->n] = lc_value_string(lc_strndup(s, n), n);
        enter(names, names->n);
        return (int)names->n++;
}

int lc_cells_map_rename(lc_batch_t *b, const lc_value_t *from, const lc_cells_names_t *names,
                        const int32_t *action, int32_t other, lc_value_t *out, lc_err_t *err)
{
        bool renamed = false;

        if (lc_cells_map(b, NULL, from->len, out) < 0)
                return lc_err_set(err, LC_FATAL, 0, "Out of memory for a map");
        for (uint32_t i = 0; i < from->len; i++) {
                const lc_value_t *key = &from->u.items[2 * i];
                lc_value_t *to;
                int at;
                int32_t what;

                if (key->type != LC_STRING && key->type != LC_NULL)
                        return lc_err_set_cls(err, LC_DATA, 0, "java.lang.ClassCastException",
                                              "class %s cannot be cast to class java.lang.String",
                                              lc_value_java_class(key));
                at = key->type == LC_STRING ? lc_cells_names_find(names, key->u.s, key->len) : -1;
                what = at < 0 ? other : action[at];
                if (what == LC_CELLS_DROP)
                        continue;
                if (what >= 0) {
                        key = &names->v[what];
                        renamed = true;
                        to = lc_cells_map_put(b, out, key->u.s, key->len);
                } else { /* keys of `from` differ, so only a new name can be there already */
                        to = renamed ? lc_cells_map_put_key(b, out, key) : append(b, out, key);
                }
                if (!to)
                        return lc_err_set(err, LC_FATAL, 0, "Out of memory for a map");
                *to = from->u.items[2 * i + 1];
        }
        return 0;
}

/* So many names are sooner looked for one by one than all keys are hashed. */
enum { FEW = 8 };

int lc_cells_map_pick(lc_batch_t *b, const lc_value_t *from, const lc_cells_names_t *names, int32_t *at,
                      lc_value_t *rest)
{
        bool few = names->n <= FEW;
        uint32_t kept = 0;

        if (rest && lc_cells_map(b, from, 0, rest) < 0)
                return -1;
        for (uint32_t i = 0; i < names->n; i++)
                at[i] = few ? lc_cells_find(from, names->v[i].u.s, names->v[i].len) : -1;
        if (few && !rest)
                return 0;
        for (uint32_t i = 0; i < from->len; i++) {
                const lc_value_t *entry = &from->u.items[2 * (size_t)i];
                int name = -1;

                if (few) {
                        for (uint32_t n = 0; n < names->n && name < 0; n++)
                                if (at[n] == (int32_t)i)
                                        name = (int)n;
                } else if (entry->type == LC_STRING) {
                        name = lc_cells_names_find(names, entry->u.s, entry->len);
                }
                if (name >= 0) {
                        at[name] = (int32_t)i;
                } else if (rest) {
                        if (kept < i)
                                memcpy(&rest->u.items[2 * (size_t)kept], entry, 2 * sizeof(*entry));
                        kept++;
                }
        }
        if (rest)
                rest->len = kept;
        return 0;
}

/* ---- headers ------------------------------------------------------------------------------------ */

lc_header_t *lc_cells_headers(const lc_record_t *r, uint32_t more)
{
        lc_header_t *h;

        if (more > (uint32_t)(UINT16_MAX - r->nheaders))
                return NULL;
        h = lc_arena_alloc(&r->batch->arena, ((size_t)r->nheaders + more) * sizeof(*h));
        if (!h)
                return NULL;
        if (r->nheaders)
                memcpy(h, r->headers, r->nheaders * sizeof(*h));
        memset(&h[r->nheaders], 0, more * sizeof(*h));
        return h;
}

int lc_cells_header_fill(lc_batch_t *b, lc_header_t *h, const char *name, size_t n, const lc_schema_t *schema)
{
        h->schema = schema;
        h->name = lc_arena_dup(&b->arena, name, n);
        return h->name ? lc_batch_hold_schema(b, schema) : -1;
}

int lc_cells_drop_headers(lc_record_t *r, const lc_cells_names_t *names)
{
        lc_header_t *h;
        uint16_t n = 0;

        if (!r->nheaders)
                return 0;
        h = lc_arena_alloc(&r->batch->arena, r->nheaders * sizeof(*h));
        if (!h)
                return -1;
        for (uint16_t i = 0; i < r->nheaders; i++)
                if (lc_cells_names_find(names, r->headers[i].name, strlen(r->headers[i].name)) < 0)
                        h[n++] = r->headers[i];
        r->headers = h;
        r->nheaders = n;
        return 0;
}

bool lc_cells_has_header(const lc_record_t *r, const char *name)
{
        for (uint16_t i = 0; i < r->nheaders; i++)
                if (!strcmp(r->headers[i].name, name))
                        return true;
        return false;
}

/* ---- schemas ------------------------------------------------------------------------------------ */

void lc_cells_basics(lc_schema_builder_t *b, const lc_schema_t *from)
{
        if (from->name)
                lc_schema_builder_name(b, from->name);
        if (from->has_version)
                lc_schema_builder_version(b, from->version);
        if (from->doc)
                lc_schema_builder_doc(b, from->doc);
        for (size_t i = 0; from->params && i < lc_props_count(from->params); i++)
                lc_schema_builder_param(b, lc_props_key(from->params, i), lc_props_value(from->params, i));
}
