/*
 * base64.c - base64 as Jackson writes and reads it (variant MIME-NO-LINEFEEDS), see text.h, and as
 * java.util.Base64 reads it, see base64.h. Any thread; results are the caller's.
 * Spec: spec/unit/json_spec.lua, spec/unit/herder_cluster_spec.lua
 */
#include "convert/base64.h"
#include "convert/text.h"
#include <stdio.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void lc_base64_append(lc_buf_t *out, const void *data, size_t n)
{
        const unsigned char *p = data;
        char *at;

        if (lc_buf_reserve(out, (n + 2) / 3 * 4) < 0)
                return;
        at = out->p + out->len;
        for (; n >= 3; n -= 3, p += 3, at += 4) {
                at[0] = alphabet[p[0] >> 2];
                at[1] = alphabet[(p[0] & 3) << 4 | p[1] >> 4];
                at[2] = alphabet[(p[1] & 15) << 2 | p[2] >> 6];
                at[3] = alphabet[p[2] & 63];
        }
        if (n) {
                unsigned second = n > 1 ? p[1] : 0;

                at[0] = alphabet[p[0] >> 2];
                at[1] = alphabet[(p[0] & 3) << 4 | second >> 4];
                at[2] = n > 1 ? alphabet[(second & 15) << 2] : '=';
                at[3] = '=';
                at += 4;
        }
        out->len = (size_t)(at - out->p);
        *at = '\0';
}

static int digit(unsigned char c)
{
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int bad_char(const char *s, size_t n, int index, const char *text, char why[200])
{
        size_t used;
        uint32_t c = lc_utf8_next(s, n, &used, NULL);

        if (text)
                snprintf(why, 200, "%s", text);
        else if (c <= ' ')
                snprintf(why, 200,
                         "Illegal white space character (code 0x%x) as character #%d of 4-char base64 "
                         "unit: can only used between units",
                         (unsigned)c, index + 1);
        else if (c == '=')
                snprintf(why, 200,
                         "Unexpected padding character ('=') as character #%d of 4-char base64 unit: "
                         "padding only legal as 3rd or 4th character",
                         index + 1);
        else if (c == 0x7F || (c >= 0x80 && c < 0xA0))
                snprintf(why, 200, "Illegal character (code 0x%x) in base64 content", (unsigned)c);
        else
                snprintf(why, 200, "Illegal character '%.*s' (code 0x%x) in base64 content", (int)used, s,
                         (unsigned)c);
        return -1;
}

static int short_end(char why[200])
{
        snprintf(why, 200,
                 "Unexpected end of base64-encoded String: base64 variant 'MIME-NO-LINEFEEDS' expects "
                 "padding (one or more '=' characters) at the end. This Base64Variant might have been "
                 "incorrectly configured");
        return -1;
}

int lc_base64_decode(const char *s, size_t n, lc_arena_t *a, const char **out, size_t *len, char why[200])
{
        char *to = lc_arena_alloc(a, n / 4 * 3 + 4), *at = to;
        size_t i = 0;

        if (!to)
                return -2;
        for (;;) {
                int d[4];

                while (i < n && (unsigned char)s[i] <= ' ')
                        i++;
                if (i == n)
                        break;
                for (int k = 0; k < 4; k++, i++) {
                        if (i == n)
                                return short_end(why);
                        d[k] = digit((unsigned char)s[i]);
                        if (d[k] >= 0)
                                continue;
                        if (k < 2 || s[i] != '=')
                                return bad_char(s + i, n - i, k, NULL, why);
                        if (k == 3) {
                                d[3] = -1;
                                continue;
                        }
                        if (++i == n)
                                return short_end(why);
                        if (s[i] != '=')
                                return bad_char(s + i, n - i, 3, "expected padding character '='", why);
                        d[3] = -1;
                        i++;
                        break;
                }
                *at++ = (char)(d[0] << 2 | d[1] >> 4);
                if (d[2] < 0)
                        continue;
                *at++ = (char)(d[1] << 4 | d[2] >> 2);
                if (d[3] >= 0)
                        *at++ = (char)(d[2] << 6 | d[3]);
        }
        *out = to;
        *len = (size_t)(at - to);
        return 0;
}

int lc_base64_decode_basic(const char *text, unsigned char *out, size_t *len, lc_err_t *err)
{
        size_t n = strlen(text), digits = 0, pads;
        unsigned bits = 0;

        *len = 0;
        while (digits < n && text[digits] != '=') {
                int d = digit((unsigned char)text[digits]);
                if (d < 0)
                        return lc_err_set(err, LC_DATA, 400, "Illegal base64 character %x",
                                          (unsigned)(unsigned char)text[digits]);
                bits = bits << 6 | (unsigned)d;
                if (digits++ % 4)
                        out[(*len)++] = (unsigned char)(bits >> (2 * (3 - (digits - 1) % 4)));
        }
        pads = n - digits;
        if (pads && (digits % 4 < 2 || pads != 4 - digits % 4 || text[n - 1] != '='))
                return lc_err_set(err, LC_DATA, 400,
                                  digits % 4 < 2 || pads < 4 - digits % 4
                                          ? "Input byte array has wrong 4-byte ending unit"
                                          : "Input byte array has incorrect ending byte at %zu",
                                  digits + 4 - digits % 4);
        if (digits % 4 == 1)
                return lc_err_set(err, LC_DATA, 400, "Last unit does not have enough valid bits");
        return 0;
}
