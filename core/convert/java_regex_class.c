/*
 * java_regex_class.c - see java_regex_class.h.
 *
 * PCRE2 10.42 has no unions and intersections of classes, so they become alternatives and lookaheads.
 * Threads: any.   Tests: spec/golden/regex_spec.lua
 */
#include "convert/java_regex_class.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

void lc_set_free(lc_set_t *s)
{
        lc_buf_free(&s->text);
        s->kind = LC_SET_NONE;
}

static void reset(lc_set_t *s, const char *text, int kind)
{
        lc_buf_clear(&s->text);
        lc_buf_adds(&s->text, text);
        s->kind = kind;
}

void lc_set_items(lc_set_t *s, const char *items)
{
        reset(s, items, LC_SET_ITEMS);
}

void lc_set_pattern(lc_set_t *s, const char *regex)
{
        reset(s, regex, LC_SET_PATTERN);
}

static bool surrogate(int32_t c)
{
        return c >= 0xD800 && c <= 0xDFFF;
}

static void plain_range(lc_set_t *s, int32_t lo, int32_t hi)
{
        if (surrogate(lo)) /* no UTF-8 text has one */
                lo = 0xE000;
        if (surrogate(hi))
                hi = 0xD7FF;
        if (lo <= hi)
                lc_buf_printf(&s->text, lo == hi ? "\\x{%x}" : "\\x{%x}-\\x{%x}", (unsigned)lo, (unsigned)hi);
}

void lc_set_range(lc_set_t *s, int32_t lo, int32_t hi, bool nocase, bool unicode_case)
{
        lc_set_t more = {LC_BUF_INIT, LC_SET_ITEMS};
        bool ascii = hi < 128;

        plain_range(&more, lo, hi);
        if (nocase) {
                for (int shift = -32; shift <= 32; shift += 64) {
                        int32_t from = shift < 0 ? 'a' : 'A', to = from + 25, l = lo > from ? lo : from,
                                h = hi < to ? hi : to;

                        if (l <= h)
                                plain_range(&more, l + shift, h + shift);
                }
        }
        if (nocase && unicode_case && (!ascii || lo != hi || strchr("kKsS", lo))) {
                lc_buf_t p = LC_BUF_INIT;

                lc_buf_printf(&p, "(?i:[%s])", more.text.p ? more.text.p : "\\x{0}");
                lc_set_pattern(&more, p.p ? p.p : "");
                lc_buf_free(&p);
        } else if (!more.text.len) {
                lc_set_pattern(&more, "(?!)");
        }
        lc_set_union(s, &more);
}

void lc_set_write(const lc_set_t *s, lc_buf_t *out)
{
        const char *text = s->text.p ? s->text.p : "";

        if (s->kind == LC_SET_ITEMS)
                lc_buf_printf(out, "[%s]", text);
        else
                lc_buf_printf(out, "(?:%s)", s->kind == LC_SET_NONE ? "(?!)" : text);
}

void lc_set_union(lc_set_t *to, lc_set_t *with)
{
        if (with->kind == LC_SET_NONE) {
                lc_set_free(with);
                return;
        }
        if (to->kind == LC_SET_NONE) {
                lc_buf_free(&to->text);
                *to = *with;
                with->text = (lc_buf_t)LC_BUF_INIT;
                with->kind = LC_SET_NONE;
                return;
        }
        if (to->kind == LC_SET_ITEMS && with->kind == LC_SET_ITEMS) {
                lc_buf_add(&to->text, with->text.p, with->text.len);
        } else {
                lc_buf_t b = LC_BUF_INIT;

                lc_set_write(to, &b);
                lc_buf_addc(&b, '|');
                lc_set_write(with, &b);
                lc_set_pattern(to, b.p ? b.p : "");
                lc_buf_free(&b);
        }
        lc_set_free(with);
}

void lc_set_intersect(lc_set_t *to, const lc_set_t *with)
{
        lc_buf_t b = LC_BUF_INIT;

        lc_buf_adds(&b, "(?=");
        lc_set_write(to, &b);
        lc_buf_addc(&b, ')');
        lc_set_write(with, &b);
        lc_set_pattern(to, b.p ? b.p : "");
        lc_buf_free(&b);
}

void lc_set_negate(lc_set_t *s)
{
        lc_buf_t b = LC_BUF_INIT;

        if (s->kind == LC_SET_ITEMS) {
                lc_buf_printf(&b, "[^%s]", s->text.p ? s->text.p : "");
        } else {
                lc_buf_adds(&b, "(?!");
                lc_set_write(s, &b);
                lc_buf_adds(&b, ")(?s:.)");
        }
        lc_set_pattern(s, b.p ? b.p : "");
        lc_buf_free(&b);
}

/* ---- properties ---- */

typedef struct property {
        const char *name, *items;
} property_t;

static const property_t posix[] = {
        {"ASCII", "\\x{0}-\\x{7f}"},
        {"Alnum", "a-zA-Z0-9"},
        {"Alpha", "a-zA-Z"},
        {"Blank", " \\t"},
        {"Cntrl", "\\x{0}-\\x{1f}\\x{7f}"},
        {"Digit", "0-9"},
        {"Graph", "!-~"},
        {"Lower", "a-z"},
        {"Print", " -~"},
        {"Punct", "!-/:-@\\[-`{-~"},
        {"Space", " \\t\\n\\x{b}\\f\\r"},
        {"Upper", "A-Z"},
        {"XDigit", "0-9a-fA-F"},
        {"L1", "\\x{0}-\\x{ff}"},
        {"all", "\\x{0}-\\x{d7ff}\\x{e000}-\\x{10ffff}"},
        {"LC", "\\p{Lu}\\p{Ll}\\p{Lt}"},
        {"LD", "\\p{L}\\p{Nd}"},
        {"javaLowerCase", "\\p{Ll}\\x{aa}\\x{ba}\\x{2b0}-\\x{2b8}\\x{2c0}\\x{2c1}\\x{2e0}-\\x{2e4}"},
        {"javaUpperCase", "\\p{Lu}\\x{2160}-\\x{216f}\\x{24b6}-\\x{24cf}"},
        {"javaAlphabetic", "\\p{L}\\p{Nl}"},
        {"javaTitleCase", "\\p{Lt}"},
        {"javaDigit", "\\p{Nd}"},
        {"javaLetter", "\\p{L}"},
        {"javaLetterOrDigit", "\\p{L}\\p{Nd}"},
        {"javaSpaceChar", "\\p{Z}"},
        {"javaWhitespace",
         "\\x{9}-\\x{d}\\x{1c}-\\x{20}\\x{1680}\\x{2000}-\\x{2006}\\x{2008}-\\x{200a}\\x{2028}"
         "\\x{2029}\\x{205f}\\x{3000}"},
        {"javaISOControl", "\\x{0}-\\x{1f}\\x{7f}-\\x{9f}"},
        {"javaJavaIdentifierStart", "\\p{L}\\p{Nl}\\p{Sc}\\p{Pc}"},
        {"javaJavaIdentifierPart", "\\p{L}\\p{Nl}\\p{Sc}\\p{Pc}\\p{Nd}\\p{Mc}\\p{Mn}\\p{Cf}\\x{0}-\\x{8}"
                                   "\\x{e}-\\x{1b}\\x{7f}-\\x{9f}"},
        {"javaUnicodeIdentifierStart", "\\p{L}\\p{Nl}"},
        {"javaUnicodeIdentifierPart", "\\p{L}\\p{Nl}\\p{Pc}\\p{Nd}\\p{Mc}\\p{Mn}\\p{Cf}\\x{0}-\\x{8}"
                                      "\\x{e}-\\x{1b}\\x{7f}-\\x{9f}"},
        {"javaIdentifierIgnorable", "\\p{Cf}\\x{0}-\\x{8}\\x{e}-\\x{1b}\\x{7f}-\\x{9f}"},
        {NULL, NULL}};

/* Properties of \p{Is...} and of \p{...} with (?U); compared without case. */
static const property_t unicode[] = {{"Alphabetic", "\\p{L}\\p{Nl}"},
                                     {"Alpha", "\\p{L}\\p{Nl}"},
                                     {"Control", "\\p{Cc}"},
                                     {"Cntrl", "\\p{Cc}"},
                                     {"Hex_Digit", "\\p{Nd}a-fA-F\\x{ff21}-\\x{ff26}\\x{ff41}-\\x{ff46}"},
                                     {"HexDigit", "\\p{Nd}a-fA-F\\x{ff21}-\\x{ff26}\\x{ff41}-\\x{ff46}"},
                                     {"XDigit", "\\p{Nd}a-fA-F\\x{ff21}-\\x{ff26}\\x{ff41}-\\x{ff46}"},
                                     {"Join_Control", "\\x{200c}\\x{200d}"},
                                     {"JoinControl", "\\x{200c}\\x{200d}"},
                                     {"Letter", "\\p{L}"},
                                     {"Lowercase", "\\p{Ll}\\x{aa}\\x{ba}"},
                                     {"Lower", "\\p{Ll}\\x{aa}\\x{ba}"},
                                     {"Titlecase", "\\p{Lt}"},
                                     {"Punctuation", "\\p{P}"},
                                     {"Punct", "\\p{P}"},
                                     {"Uppercase", "\\p{Lu}\\x{2160}-\\x{216f}\\x{24b6}-\\x{24cf}"},
                                     {"Upper", "\\p{Lu}\\x{2160}-\\x{216f}\\x{24b6}-\\x{24cf}"},
                                     {"White_Space", "\\p{Z}\\x{9}-\\x{d}\\x{85}"},
                                     {"WhiteSpace", "\\p{Z}\\x{9}-\\x{d}\\x{85}"},
                                     {"Space", "\\p{Z}\\x{9}-\\x{d}\\x{85}"},
                                     {"Blank", "\\p{Zs}\\t"},
                                     {"Digit", "\\p{Nd}"},
                                     {"Alnum", "\\p{L}\\p{Nl}\\p{Nd}"},
                                     {"Word", "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"},
                                     {"Assigned", "\\P{Cn}"},
                                     {"Graph", "\\P{C}\\p{Cf}\\p{Co}"},
                                     {"Print", "\\P{C}\\p{Cf}\\p{Co}"},
                                     {NULL, NULL}};

static const char *find(const property_t *table, const char *name, bool nocase)
{
        for (; table->name; table++)
                if (!(nocase ? strcasecmp : strcmp)(table->name, name))
                        return table->items;
        return NULL;
}

static bool category(const char *name)
{
        static const char all[] =
                " Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc "
                "Sk So Pi Pf L M N Z C P S ";
        char word[8];

        if (strlen(name) > 2)
                return false;
        snprintf(word, sizeof(word), " %s ", name);
        return strstr(all, word) != NULL;
}

/* CharPredicates.forProperty(): categories, POSIX names, java... methods. */
static int plain_property(lc_set_t *s, const char *name, bool nocase)
{
        char items[16];
        const char *found;

        if (category(name)) {
                if (!strcmp(name, "Cs")) {
                        lc_set_pattern(s, "(?!)");
                        return 0;
                }
                if (nocase && (!strcmp(name, "Lu") || !strcmp(name, "Ll") || !strcmp(name, "Lt"))) {
                        lc_set_items(s, "\\p{Lu}\\p{Ll}\\p{Lt}");
                        return 0;
                }
                snprintf(items, sizeof(items), "\\p{%s}", name);
                lc_set_items(s, items);
                return 0;
        }
        if (nocase && (!strcmp(name, "Lower") || !strcmp(name, "Upper")))
                name = "Alpha";
        if (nocase && (!strcmp(name, "javaLowerCase") || !strcmp(name, "javaUpperCase") ||
                       !strcmp(name, "javaTitleCase"))) {
                lc_set_items(s, "\\p{Lu}\\p{Ll}\\p{Lt}");
                return 0;
        }
        found = find(posix, name, false);
        if (found) {
                lc_set_items(s, found);
                return 0;
        }
        if (!strcmp(name, "javaIdeographic") || !strcmp(name, "javaMirrored") || !strcmp(name, "javaDefined"))
                return -2;
        return -1;
}

static int unicode_property(lc_set_t *s, const char *name, bool nocase)
{
        const char *found = find(unicode, name, true);

        if (found && nocase &&
            (!strcasecmp(name, "Lowercase") || !strcasecmp(name, "Uppercase") ||
             !strcasecmp(name, "Titlecase")))
                found = "\\p{Lu}\\p{Ll}\\p{Lt}\\x{aa}\\x{ba}\\x{2160}-\\x{216f}\\x{24b6}-\\x{24cf}";
        if (found) {
                lc_set_items(s, found);
                return 0;
        }
        if (!strcasecmp(name, "Ideographic") || !strcasecmp(name, "Noncharacter_Code_Point") ||
            !strcasecmp(name, "NoncharacterCodePoint") || !strcasecmp(name, "Emoji"))
                return -2;
        return -1;
}

static int block(lc_set_t *s, const char *name)
{
        static const property_t blocks[] = {{"BasicLatin", "\\x{0}-\\x{7f}"},
                                            {"Basic Latin", "\\x{0}-\\x{7f}"},
                                            {"BASIC_LATIN", "\\x{0}-\\x{7f}"},
                                            {"Latin-1Supplement", "\\x{80}-\\x{ff}"},
                                            {"Latin-1 Supplement", "\\x{80}-\\x{ff}"},
                                            {"LATIN_1_SUPPLEMENT", "\\x{80}-\\x{ff}"},
                                            {"LatinExtended-A", "\\x{100}-\\x{17f}"},
                                            {"LATIN_EXTENDED_A", "\\x{100}-\\x{17f}"},
                                            {"LatinExtended-B", "\\x{180}-\\x{24f}"},
                                            {"LATIN_EXTENDED_B", "\\x{180}-\\x{24f}"},
                                            {"Greek", "\\x{370}-\\x{3ff}"},
                                            {"GreekandCoptic", "\\x{370}-\\x{3ff}"},
                                            {"Cyrillic", "\\x{400}-\\x{4ff}"},
                                            {"Hebrew", "\\x{590}-\\x{5ff}"},
                                            {"Arabic", "\\x{600}-\\x{6ff}"},
                                            {"Hiragana", "\\x{3040}-\\x{309f}"},
                                            {"Katakana", "\\x{30a0}-\\x{30ff}"},
                                            {"CJKUnifiedIdeographs", "\\x{4e00}-\\x{9fff}"},
                                            {"CJK_UNIFIED_IDEOGRAPHS", "\\x{4e00}-\\x{9fff}"},
                                            {NULL, NULL}};
        const char *found = find(blocks, name, true);

        if (!found)
                return -2;
        lc_set_items(s, found);
        return 0;
}

/* By the names PCRE2 and Java share: Latin, Greek, Cyrillic ... */
static int script(lc_set_t *s, const char *name)
{
        static const char *const known[] = {
                "Latin",   "Greek",      "Cyrillic",  "Armenian", "Hebrew",   "Arabic", "Syriac",
                "Thaana",  "Devanagari", "Bengali",   "Gurmukhi", "Gujarati", "Oriya",  "Tamil",
                "Telugu",  "Kannada",    "Malayalam", "Sinhala",  "Thai",     "Lao",    "Tibetan",
                "Myanmar", "Georgian",   "Hangul",    "Ethiopic", "Cherokee", "Ogham",  "Runic",
                "Khmer",   "Mongolian",  "Hiragana",  "Katakana", "Bopomofo", "Han",    "Yi",
                "Gothic",  "Common",     "Inherited", "Braille",  "Coptic"};
        char items[40];

        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
                if (!strcasecmp(known[i], name)) {
                        snprintf(items, sizeof(items), "\\p{%s}", known[i]);
                        lc_set_items(s, items);
                        return 0;
                }
        return -2;
}

int lc_set_property(lc_set_t *s, const char *name, bool nocase, bool unicode_class)
{
        int rc;

        if (!strncmp(name, "In", 2))
                return block(s, name + 2);
        if (!strncmp(name, "Is", 2)) {
                rc = unicode_property(s, name + 2, nocase);
                if (rc == -1)
                        rc = plain_property(s, name + 2, nocase);
                if (rc == -1)
                        rc = script(s, name + 2);
                return rc;
        }
        if (unicode_class && (rc = unicode_property(s, name, nocase)) != -1)
                return rc;
        return plain_property(s, name, nocase);
}

int lc_set_property_value(lc_set_t *s, const char *key, const char *value, bool nocase)
{
        if (!strcmp(key, "sc") || !strcmp(key, "script"))
                return script(s, value);
        if (!strcmp(key, "blk") || !strcmp(key, "block"))
                return block(s, value);
        if (!strcmp(key, "gc") || !strcmp(key, "general_category"))
                return plain_property(s, value, nocase);
        return -1;
}
