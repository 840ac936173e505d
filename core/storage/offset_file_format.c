/* offset_file_format.c - see offset_file_format.h. Object Serialization Stream Protocol, what a map of bytes
 * needs. */
#include "storage/offset_file_format.h"
#include "base/alloc.h"
#include "kafka/wire/buffer.h"
#include <stdlib.h>

enum {
        TC_NULL = 0x70,
        TC_REFERENCE,
        TC_CLASSDESC,
        TC_OBJECT,
        TC_STRING,
        TC_ARRAY,
        TC_CLASS,
        TC_BLOCKDATA,
        TC_ENDBLOCKDATA,
        TC_RESET,
        TC_BLOCKDATALONG,
        TC_EXCEPTION,
        TC_LONGSTRING,
        TC_PROXYCLASSDESC,
        TC_ENUM,
        FIRST_HANDLE = 0x7e0000
};

typedef struct slice {
        const char *p; /* NULL: null */
        size_t len;
} slice_t;

/* An object that later ones may refer to: a byte array (is_array) or a class description. */
typedef struct handle {
        bool is_array;
        slice_t bytes;
} handle_t;

typedef struct reader {
        lc_wire_reader_t r;
        handle_t *handles;
        size_t nhandles, cap;
        const char *problem; /* Java's text, NULL: the data ended early when r.bad */
} reader_t;

static int corrupt(reader_t *d, const char *text)
{
        if (!d->problem && !d->r.bad)
                d->problem = text;
        return -1;
}

static void add_handle(reader_t *d, bool is_array, slice_t bytes)
{
        if (d->nhandles == d->cap) {
                d->cap = d->cap ? d->cap * 2 : 64;
                d->handles = lc_realloc(d->handles, d->cap * sizeof(*d->handles));
        }
        d->handles[d->nhandles++] = (handle_t){is_array, bytes};
}

/* Modified UTF-8 with a 16 bit length; class and field names are ASCII. */
static slice_t utf(reader_t *d)
{
        uint16_t n = (uint16_t)lc_wire_i16(&d->r);
        slice_t s = {NULL, 0};

        if (d->r.bad || lc_wire_left(&d->r) < n) {
                d->r.bad = true;
                return s;
        }
        s = (slice_t){(const char *)d->r.p, n};
        d->r.p += n;
        return s;
}

static bool is_name(slice_t s, const char *name)
{
        return s.p && s.len == strlen(name) && !memcmp(s.p, name, s.len);
}

/* A class description: new, or a reference to an earlier one (then *name stays empty). *fields gets the size
 * of its fields, all of which must be primitive. */
static int class_desc(reader_t *d, slice_t *name, size_t *fields, uint8_t *flags)
{
        uint8_t tc = (uint8_t)lc_wire_i8(&d->r);
        int16_t n;

        *name = (slice_t){NULL, 0};
        *fields = 0;
        if (tc == TC_REFERENCE) {
                int32_t h = lc_wire_i32(&d->r) - FIRST_HANDLE;
                if (!d->r.bad && (h < 0 || (size_t)h >= d->nhandles || d->handles[h].is_array))
                        return corrupt(d, "java.io.StreamCorruptedException: invalid handle value");
                return d->r.bad ? -1 : 0;
        }
        if (tc != TC_CLASSDESC)
                return corrupt(d, "java.io.StreamCorruptedException: invalid type code");
        *name = utf(d);
        lc_wire_i64(&d->r); /* serialVersionUID */
        add_handle(d, false, *name);
        *flags = (uint8_t)lc_wire_i8(&d->r);
        n = lc_wire_i16(&d->r);
        for (int16_t i = 0; i < n && !d->r.bad; i++) {
                char type = (char)lc_wire_i8(&d->r);
                utf(d);
                switch (type) {
                case 'B':
                case 'Z':
                        *fields += 1;
                        break;
                case 'C':
                case 'S':
                        *fields += 2;
                        break;
                case 'I':
                case 'F':
                        *fields += 4;
                        break;
                case 'J':
                case 'D':
                        *fields += 8;
                        break;
                default:
                        return corrupt(d, "java.io.InvalidClassException: illegal field type");
                }
        }
        if ((uint8_t)lc_wire_i8(&d->r) != TC_ENDBLOCKDATA)
                return corrupt(d, "java.io.StreamCorruptedException: unexpected class annotation");
        if ((uint8_t)lc_wire_i8(&d->r) != TC_NULL)
                return corrupt(d, "java.io.StreamCorruptedException: unexpected superclass");
        return d->r.bad ? -1 : 0;
}

/* A byte array, a reference to one, or null. */
static int byte_array(reader_t *d, slice_t *out)
{
        uint8_t tc = (uint8_t)lc_wire_i8(&d->r);
        slice_t name;
        size_t fields;
        uint8_t flags;
        int32_t n;

        *out = (slice_t){NULL, 0};
        if (d->r.bad)
                return -1;
        if (tc == TC_NULL)
                return 0;
        if (tc == TC_REFERENCE) {
                int32_t h = lc_wire_i32(&d->r) - FIRST_HANDLE;
                if (!d->r.bad && (h < 0 || (size_t)h >= d->nhandles || !d->handles[h].is_array))
                        return corrupt(d, "java.io.StreamCorruptedException: invalid handle value");
                if (d->r.bad)
                        return -1;
                *out = d->handles[h].bytes;
                return 0;
        }
        if (tc != TC_ARRAY)
                return corrupt(d, "java.lang.ClassCastException: an offset is not a byte array");
        if (class_desc(d, &name, &fields, &flags) < 0)
                return -1;
        if (name.p && !is_name(name, "[B"))
                return corrupt(d, "java.lang.ClassCastException: an offset is not a byte array");
        n = lc_wire_i32(&d->r);
        if (!d->r.bad && n < 0)
                return corrupt(d, "java.lang.NegativeArraySizeException");
        if (d->r.bad || lc_wire_left(&d->r) < (size_t)n) {
                d->r.bad = true;
                return -1;
        }
        *out = (slice_t){(const char *)d->r.p, (size_t)n};
        d->r.p += n;
        add_handle(d, true, *out);
        return 0;
}

/* The object header up to the class: 0 for a HashMap, else *err says what it is. */
static int expect_map(reader_t *d, lc_err_t *err)
{
        uint8_t tc = (uint8_t)lc_wire_i8(&d->r), flags = 0;
        slice_t name = {NULL, 0};
        size_t fields;

        if (d->r.bad)
                return -1;
        if (tc == TC_STRING || tc == TC_LONGSTRING)
                name = (slice_t){"java.lang.String", 16};
        else if (tc == TC_OBJECT || tc == TC_ARRAY || tc == TC_ENUM)
                class_desc(d, &name, &fields, &flags); /* its name counts, even where the rest is unknown */
        else if (tc != TC_NULL)
                return corrupt(d, "java.io.StreamCorruptedException: invalid type code");
        if (d->r.bad && !name.p)
                return -1;
        if (tc != TC_OBJECT || !is_name(name, "java.util.HashMap"))
                return lc_err_set(err, LC_FATAL, 0, "Expected HashMap but found class %.*s",
                                  (int)(name.len ? (name.len < 200 ? name.len : 200) : 4),
                                  name.len ? name.p : "null");
        if (d->problem)
                return -1;
        if (lc_wire_left(&d->r) < fields) {
                d->r.bad = true;
                return -1;
        }
        d->r.p += fields;
        add_handle(d, false, (slice_t){NULL, 0}); /* the map itself */
        return 0;
}

int lc_offset_file_read(const char *data, size_t n, lc_offset_map_t *map, int *strays, lc_err_t *err)
{
        reader_t d = {.problem = NULL};
        int32_t size;
        uint8_t tc;
        int rc = -1;

        *strays = 0;
        lc_wire_reader_init(&d.r, data, n);
        if (n >= 4 && memcmp(data, "\xac\xed\x00\x05", 4) != 0) {
                const unsigned char *u = (const unsigned char *)data;
                lc_err_set(err, LC_FATAL, 0,
                           "java.io.StreamCorruptedException: invalid stream header: %02X%02X%02X%02X", u[0],
                           u[1], u[2], u[3]);
                goto done;
        }
        lc_wire_i32(&d.r);
        if (expect_map(&d, err) < 0)
                goto done;
        tc = (uint8_t)lc_wire_i8(&d.r);
        if (!d.r.bad && (tc != TC_BLOCKDATA || (uint8_t)lc_wire_i8(&d.r) != 8)) {
                corrupt(&d, "java.io.StreamCorruptedException: unexpected block data");
                goto done;
        }
        lc_wire_i32(&d.r); /* capacity */
        size = lc_wire_i32(&d.r);
        if (!d.r.bad && size < 0) {
                corrupt(&d, "java.io.InvalidObjectException: Illegal mappings count");
                goto done;
        }
        for (int32_t i = 0; i < size && !d.r.bad; i++) {
                slice_t key, value;

                if (byte_array(&d, &key) < 0 || byte_array(&d, &value) < 0)
                        goto done;
                if (key.p && !lc_offset_map_load(map, key.p, key.len, value.p, value.len))
                        ++*strays;
        }
        if (!d.r.bad)
                rc = 0;
done:
        free(d.handles);
        if (rc < 0 && d.problem)
                lc_err_set(err, LC_FATAL, 0, "%s", d.problem);
        else if (rc < 0)
                lc_err_set(err, LC_DATA, 0, "The offset file ends after %zu bytes, within entry %zu", n,
                           lc_offset_map_count(map) + 1);
        return rc;
}

/* ---- writing ---- */

typedef struct writer {
        lc_buf_t *out;
        bool described; /* the class [B was written, handle 0x7e0002 */
} writer_t;

static void put(lc_buf_t *out, const char *bytes, size_t n)
{
        lc_buf_add(out, bytes, n);
}

static void put_array(writer_t *w, const char *p, size_t n)
{
        static const char described[] = "ur\0\2[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\2\0\0xp";
        static const char again[] = "uq\0\x7e\0\2";

        if (!p) {
                lc_buf_addc(w->out, (char)TC_NULL);
                return;
        }
        if (w->described)
                put(w->out, again, sizeof(again) - 1);
        else
                put(w->out, described, sizeof(described) - 1);
        w->described = true;
        lc_wire_put_i32(w->out, (int32_t)n);
        lc_buf_add(w->out, p, n);
}

static void put_entry(void *arg, const char *key, size_t key_len, const char *value, size_t value_len)
{
        put_array(arg, key, key_len);
        put_array(arg, value, value_len);
}

void lc_offset_file_write(const lc_offset_map_t *map, lc_buf_t *out)
{
        static const char head[] =
                "\xac\xed\0\5sr\0\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\3\0\2"
                "F\0\nloadFactorI\0\tthresholdxp\x3f\x40\0\0";
        size_t n = lc_offset_map_count(map), capacity = 16;
        writer_t w = {out, false};

        while (n > capacity / 4 * 3)
                capacity *= 2;
        put(out, head, sizeof(head) - 1);
        lc_wire_put_i32(out, (int32_t)(capacity / 4 * 3));
        put(out, "w\x08", 2);
        lc_wire_put_i32(out, (int32_t)capacity);
        lc_wire_put_i32(out, (int32_t)n);
        lc_offset_map_each(map, put_entry, &w);
        lc_buf_addc(out, (char)TC_ENDBLOCKDATA);
}
