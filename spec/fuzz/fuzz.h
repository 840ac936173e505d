/*
 * fuzz.h - what the fuzz targets share: choices and texts taken from the random bytes one after the other.
 *
 * A target is run by ./dev fuzz NAME under the address and undefined behaviour sanitizers, with the seeds that
 * spec/fuzz/seeds.lua makes from the recordings.
 */
#ifndef LC_SPEC_FUZZ_H
#define LC_SPEC_FUZZ_H
#include "base/alloc.h"
#include "base/log.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerInitialize(int *argc, char ***argv);

typedef struct fuzz {
        const uint8_t *p;
        size_t n;
} fuzz_t;

static inline void fuzz_check(bool yes, const char *what)
{
        if (yes)
                return;
        fprintf(stderr, "fuzz: %s\n", what);
        abort();
}

/* 0 when the bytes are used up. */
static inline uint8_t fuzz_byte(fuzz_t *f)
{
        if (!f->n)
                return 0;
        f->n--;
        return *f->p++;
}

static inline uint64_t fuzz_int(fuzz_t *f, int bytes)
{
        uint64_t v = 0;

        while (bytes--)
                v = v << 8 | fuzz_byte(f);
        return v;
}

/* At most `most` bytes, malloc'ed exactly as long (one byte too far is seen). */
static inline char *fuzz_bytes(fuzz_t *f, size_t most, size_t *n)
{
        size_t want = most > 255 ? (size_t)fuzz_int(f, 2) : fuzz_byte(f);
        char *s;

        want = want > most ? want % (most + 1) : want;
        want = want > f->n ? f->n : want;
        s = lc_malloc(want ? want : 1);
        memcpy(s, f->p, want);
        f->p += want;
        f->n -= want;
        *n = want;
        return s;
}

/* The same as a text: ends at its first NUL. */
static inline char *fuzz_text(fuzz_t *f, size_t most)
{
        size_t n;
        char *s = fuzz_bytes(f, most, &n), *text = lc_strndup(s, n);

        free(s);
        return text;
}

/* All that is left, exactly as long. */
static inline char *fuzz_rest(fuzz_t *f, size_t *n)
{
        char *s = lc_malloc(f->n ? f->n : 1);

        memcpy(s, f->p, f->n);
        *n = f->n;
        f->n = 0;
        return s;
}
#endif
