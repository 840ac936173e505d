/*
 * topic_regex.h - Java regular expressions for subscriptions, as far as POSIX can express them.
 *
 * topics.regex is Java's; librdkafka subscribes by POSIX extended expressions. Everything else matches with
 * convert/java_regex.h. What both
 * mean alike is translated: classes (\d \w \s, [...]), groups ((?:...), (?<n>...)), counts, \Q...\E, escaped
 * characters. Look-around, back references, possessive counts, inline flags, \p{..}, \b and set operations in
 * classes are refused by name, never silently misread. Syntax errors carry Java's messages.
 *
 * Threads: any.   Tests: spec/unit/config_spec.lua
 */
#ifndef LC_CONFIG_TOPIC_REGEX_H
#define LC_CONFIG_TOPIC_REGEX_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

/* Append "^(...)$", a POSIX extended expression that matches the whole name as Java's matches() does.
 * -1: LC_FATAL, msg is PatternSyntaxException's text. */
int lc_topic_regex_posix(const char *java, lc_buf_t *posix, lc_err_t *err);
/* Java's matches(), by convert/java_regex.h; false for an expression that is none. */
bool lc_topic_regex_matches(const char *java, const char *topic);

#endif
