/* try.c - see try.h: the options of `luaconnect try`, and records through transforms. */
#include "cli/try.h"
#include "base/alloc.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/try_steps.h"
#include "config/properties.h"
#include "convert/json.h"
#include "rest/body.h"
#include <fcntl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
        OPT_RAW = LC_ARG_LONG,
        OPT_TOPIC,
        OPT_KEY,
        OPT_HEADER,
        OPT_SCHEMALESS,
        OPT_RECORDS,
        OPT_SCHEMAS,
        OPT_FULL,
        OPT_EACH,
        OPT_WATCH,
        OPT_PATH,
        OPT_INPUT,
        OPT_SOURCE,
        OPT_SINK
};
const lc_option_t lc_try_options[] = {
        {'t', "transform", "'CLASS:KEY=VALUE;..'", "one transform more; repeat it for a chain", ""},
        {'p', "predicate", "'NAME=CLASS:KEY=VALUE'", "a predicate; transforms say predicate=NAME;negate=true",
         ""},
        {'c', "config", "KEY=VALUE", "a setting over the file's", ""},
        {OPT_SOURCE, "source", "FILE",
         "run a source without Kafka: its config, or its plugin with -c KEY=VALUE; prints its records",
         "file"},
        {OPT_SINK, "sink", "FILE", "run a sink without Kafka: records from stdin through its transforms",
         "file"},
        {OPT_INPUT, "input", "FILE", "records from a file instead of stdin", "file"},
        {OPT_RAW, "raw", NULL, "each line is a text, no JSON", NULL},
        {OPT_SCHEMALESS, "schemaless", NULL, "take {\"schema\":..,\"payload\":..} for a plain map", NULL},
        {OPT_RECORDS, "records", NULL, "each line is a whole record, as --full prints it", NULL},
        {OPT_TOPIC, "topic", "NAME", "topic of the records (default: the first of topics, else try)", ""},
        {OPT_KEY, "key", "TEXT", "their key: JSON if it is, else (and with --raw) a text", ""},
        {OPT_HEADER, "header", "NAME=VALUE", "a header more", ""},
        {OPT_SCHEMAS, "schemas", NULL, "print envelopes with the schemas", NULL},
        {OPT_FULL, "full", NULL, "print topic, partition, key, headers and timestamp, too", NULL},
        {OPT_EACH, "each", NULL, "print what each step changed, old -> new", NULL},
        {OPT_WATCH, "watch", NULL, "run again when a file of the config, the plugins or the input changes",
         NULL},
        {'n', "count", "N", "stop after N records", ""},
        {OPT_PATH, "plugin-path", "DIR,...", "folders with plugins", "dir"},
        {0, NULL, NULL, NULL, NULL},
};

const char lc_try_more[] =
        "Lines are JSON without schemas, or JsonConverter envelopes, which bring their schemas.\n"
        "A null where the schema has a default stays null. Records are a source's when the config has a\n"
        "connector.class and neither topics nor topics.regex; else a sink's, with the line's number as "
        "offset.\n"
        "In -t, commas belong to lists, \\; and \\: stand for ; and : in a value.\n\n"
        "  echo '{\"ssn\":1,\"id\":7}' | luaconnect try -t 'MaskField$Value:fields=ssn'\n"
        "  luaconnect try --each orders-sink.json < orders.jsonl\n"
        "  luaconnect try --raw -t 'HoistField$Value:field=line' < access.log\n"
        "  luaconnect try --source my-source/ -c topic=t -n 10\n"
        "  luaconnect try --sink orders-sink.json < orders.jsonl\n\n"
        "--source and --sink run the connector and its tasks as a worker does, with offsets in memory, "
        "which\n"
        "are told on stderr at the end; errors.tolerance and errors.retry.timeout of the config hold.\n"
        "Ctrl-C stops them as a worker would, a second one at once.\n\n"
        "A bad record is told on stderr with its line, step and reason; the rest still comes out.\n"
        "Status: 0; 1 when a record was bad or a task failed; 2 when the call, the config or a plugin is "
        "wrong.\n";

/* ---- setting up --------------------------------------------------------------------------------- */

int lc_try_load_config(const char *path, lc_props_t **config, lc_err_t *err)
{
        size_t len = 0, blank;
        char *text = lc_file_read(path, &len, err);
        lc_json_t *doc = NULL;
        const lc_json_t *inner;
        int rc = -1;

        *config = NULL;
        if (!text) {
                int code = err->code;
                lc_err_clear(err);
                return lc_err_set(err, LC_FATAL, code, "cannot read %s: %s", path, strerror(code));
        }
        blank = strspn(text, " \t\r\n");
        if (text[blank] != '{') {
                rc = lc_properties_parse(text, len, config, err);
        } else if (!lc_json_parse(text, len, 0, &doc, err)) {
                inner = lc_json_get(doc, "config");
                if (inner && inner->type == LC_J_OBJECT) {
                        lc_create_body_t body;
                        memset(&body, 0, sizeof(body));
                        rc = lc_body_create(text, len, true, &body, err);
                        if (!rc) {
                                *config = body.config;
                                body.config = NULL;
                        }
                        lc_create_body_free(&body);
                } else {
                        rc = lc_body_config(text, len, config, err);
                }
        }
        if (!rc && !*config)
                rc = lc_err_set(err, LC_FATAL, 0, "no configuration");
        if (rc) {
                lc_err_t why = *err;
                lc_err_clear(err);
                lc_err_set(err, LC_FATAL, 0, "%s: %s", path, why.msg);
        }
        lc_json_free(doc);
        free(text);
        return rc;
}

/* The classes of the steps: most of a start is loading plugins. */
static void classes(const lc_props_t *config, const char *list, lc_strv_t *out)
{
        lc_strv_t names = {NULL, 0};

        lc_strv_split(&names, lc_props_get_or(config, list, ""));
        for (size_t i = 0; i < names.n; i++) {
                char *key = lc_asprintf("%s.%s.type", list, names.v[i]);
                const char *cls = lc_props_get(config, key);
                if (cls)
                        lc_strv_add(out, cls);
                free(key);
        }
        lc_strv_free(&names);
}

static int scan(lc_try_t *t, bool all, lc_err_t *err)
{
        lc_strv_t names = {NULL, 0};

        free(t->home);
        if (t->plugins)
                lc_plugins_free(t->plugins);
        t->plugins = NULL;
        t->home = lc_home_find(err);
        if (!t->home)
                return -1;
        classes(t->config, "transforms", &names);
        classes(t->config, "predicates", &names);
        t->plugins = lc_plugins_scan_for(t->home, &t->plugin_path, all ? NULL : &names, err);
        lc_strv_free(&names);
        return t->plugins ? 0 : -1;
}

/* With --each every step is a chain of its own: what it changed is seen between two. */
static int open_chain(lc_try_t *t, bool source, lc_err_t *err)
{
        lc_strv_t steps = {NULL, 0};
        lc_props_t *one;
        int rc = 0;

        if (!t->each) {
                t->chains = lc_calloc(1, sizeof(*t->chains));
                t->chains[0] = lc_script_chain_new(t->plugins, t->config, source, &t->host, err);
                t->nchains = t->chains[0] != NULL;
                return t->chains[0] ? 0 : -1;
        }
        lc_strv_split(&steps, lc_props_get_or(t->config, "transforms", ""));
        t->chains = lc_calloc(steps.n ? steps.n : 1, sizeof(*t->chains));
        one = lc_props_copy(t->config);
        for (size_t i = 0; i < steps.n && !rc; i++) {
                lc_props_set(one, "transforms", steps.v[i]);
                t->chains[i] = lc_script_chain_new(t->plugins, one, source, &t->host, err);
                t->nchains += t->chains[i] != NULL;
                rc = t->chains[i] ? 0 : -1;
        }
        lc_props_free(one);
        lc_strv_free(&steps);
        return rc;
}

static void free_chains(lc_try_t *t)
{
        for (size_t i = 0; i < t->nchains; i++)
                lc_script_chain_free(t->chains[i]);
        free(t->chains);
        t->chains = NULL;
        t->nchains = 0;
}

/* ---- running ------------------------------------------------------------------------------------ */

static const char *short_class(const char *name)
{
        const char *dot = strrchr(name, '.');

        return dot ? dot + 1 : name;
}

/* One more bad record. where: the step, or NULL. */
static void bad(lc_try_t *t, uint64_t line, const char *where, const lc_err_t *err)
{
        t->bad++;
        if (!t->closed)
                t->closed = lc_try_output_flush(&t->out) < 0; /* in the order of the records */
        fprintf(stderr, "%s:%" PRIu64 ": ", t->in.name, line);
        fprintf(stderr, "%s%s%s%s%s\n", where ? where : "", where ? ": " : "",
                err->cls ? short_class(err->cls) : "", err->cls ? ": " : "", err->msg);
        if (err->kind == LC_FATAL && err->detail[0]) /* the script's own mistake: where in it */
                for (const char *s = err->detail; *s;) {
                        int n = (int)strcspn(s, "\n");
                        fprintf(stderr, "    %.*s\n", n, s);
                        s += n + (s[n] == '\n');
                }
}

static void bad_line(void *arg, uint64_t line, const lc_err_t *err)
{
        bad(arg, line, NULL, err);
}

static void bad_step(lc_try_t *t, uint64_t line, size_t step, const char *cls, const lc_err_t *err)
{
        char *where = lc_asprintf("step %zu (%s)", step + 1, short_class(cls));

        bad(t, line, where, err);
        free(where);
}

static void transform_each(lc_try_t *t, lc_batch_t *b, uint32_t i, uint64_t number)
{
        lc_record_t *r = &b->records[i];
        lc_buf_t *out = &t->out.buf;

        lc_buf_printf(out, "%sline %" PRIu64 "%s\n", t->out.color ? "\033[1m" : "", number,
                      t->out.color ? "\033[0m" : "");
        for (size_t k = 0; k < t->nchains && r->state == LC_REC_NEW; k++) {
                const char *cls = lc_script_chain_class(t->chains[k], 0);
                lc_record_t before = *r;
                uint32_t at;
                size_t stage;
                lc_err_t err = {0};
                lc_buf_printf(out, "  %zu %s", k + 1, short_class(cls));
                if (lc_script_chain_run(t->chains[k], b, i, 0, i + 1, &at, &stage, &err)) {
                        r->state = LC_REC_DROPPED;
                        lc_buf_adds(out, ": failed\n");
                        bad_step(t, number, k, cls, &err);
                } else if (r->state == LC_REC_DROPPED) {
                        lc_buf_adds(out, ": filtered out\n");
                } else {
                        size_t end = out->len;
                        lc_buf_addc(out, '\n');
                        if (!lc_try_output_changes(&t->out, &before, r)) {
                                out->len = end;
                                lc_buf_adds(out, ": nothing changed\n");
                        }
                }
        }
        if (r->state == LC_REC_NEW) {
                lc_err_t err = {0};
                lc_buf_adds(out, "  = ");
                if (lc_try_output_record(&t->out, r, &err)) {
                        lc_buf_adds(out, "?\n");
                        bad(t, number, "output", &err);
                }
        }
}

/* Records [from, to) of the batch that are not dropped, into the output. */
static void add_records(lc_try_t *t, lc_batch_t *b, uint32_t from, uint32_t to)
{
        for (uint32_t i = from; i < to; i++) {
                lc_err_t err = {0};
                if (b->records[i].state == LC_REC_NEW && lc_try_output_record(&t->out, &b->records[i], &err))
                        bad(t, t->in.lines[i], "output", &err);
        }
}

/* All steps over the batch, and what comes out to stdout. What fails is told on stderr in its place. */
static void transform(lc_try_t *t, lc_batch_t *b)
{
        uint32_t from = 0, at;
        size_t stage;

        for (uint32_t i = 0; t->each && i < b->n; i++)
                transform_each(t, b, i, t->in.lines[i]);
        while (!t->each && from < b->n) {
                lc_err_t err = {0};
                if (!lc_script_chain_run(t->chains[0], b, from, 0, b->n, &at, &stage, &err))
                        break;
                b->records[at].state = LC_REC_DROPPED;
                add_records(t, b, from, at);
                bad_step(t, t->in.lines[at], stage, lc_script_chain_class(t->chains[0], stage), &err);
                from = at + 1;
        }
        if (!t->each)
                add_records(t, b, from, b->n);
        if (!t->closed)
                t->closed = lc_try_output_flush(&t->out) < 0;
}

/* Whose records the steps see: a source has no topics, and without a connector they may be anybody's. */
static bool is_sinks(const lc_try_t *t)
{
        return !lc_props_has(t->config, "connector.class") || lc_props_has(t->config, "topics") ||
               lc_props_has(t->config, "topics.regex");
}

static int run_records(lc_try_t *t)
{
        bool sink = is_sinks(t);
        int64_t left = t->most;
        lc_batch_t *b;
        lc_err_t err = {0};

        if (scan(t, false, &err) || open_chain(t, !sink, &err)) {
                free_chains(t);
                lc_err_clear(&err);
                if (scan(t, true, &err) || open_chain(t, !sink, &err)) { /* as with every plugin there is */
                        if (t->plugins)
                                lc_try_warn_of_keys(t->config, t->plugins);
                        lc_command_error(NULL, &err);
                        return LC_KIT_USAGE;
                }
        }
        lc_try_warn_of_keys(t->config, t->plugins);
        t->in.sink = sink;
        while (left && !t->closed && !lc_try_input_read(&t->in, &b, &err) && b) {
                if (left > 0 && b->n > left)
                        b->n = (uint32_t)left;
                left -= left > 0 ? b->n : 0;
                transform(t, b);
                lc_batch_unref(b);
        }
        if (err.kind) {
                lc_command_error(NULL, &err);
                return LC_KIT_FAILED;
        }
        return t->bad || t->out.failed ? LC_KIT_FAILED : LC_KIT_OK;
}

/* ---- the call ----------------------------------------------------------------------------------- */

static int number(lc_try_t *t, const char *name, const char *text, int64_t *out)
{
        char *end;
        double n = strtod(text, &end);

        if (!*text || *end || !(n >= 0 && n <= 1e12))
                return lc_command_wrong(t->command, "--%s needs a number, not '%s'", name, text);
        *out = (int64_t)n;
        return 0;
}

static int read_args(lc_try_t *t, int argc, char **argv)
{
        lc_args_t a = {.command = t->command, .argc = argc, .argv = argv};
        int id, rc = 0;

        while (!rc && (id = lc_args_next(&a)) != LC_ARG_END) {
                switch (id) {
                case 't':
                        lc_strv_add(&t->steps, a.value);
                        break;
                case 'p':
                        lc_strv_add(&t->predicates, a.value);
                        break;
                case 'c':
                        lc_strv_add(&t->settings, a.value);
                        break;
                case 'n':
                        rc = number(t, "count", a.value, &t->most);
                        break;
                case OPT_SOURCE:
                case OPT_SINK:
                        if (t->connector)
                                return lc_command_wrong(t->command, "one --source or --sink only");
                        t->connector = a.value;
                        t->source = id == OPT_SOURCE;
                        t->sink = id == OPT_SINK;
                        break;
                case OPT_INPUT:
                        t->input = a.value;
                        break;
                case OPT_RAW:
                        t->in.raw = true;
                        break;
                case OPT_SCHEMALESS:
                        t->in.schemaless = true;
                        break;
                case OPT_RECORDS:
                        t->in.records = true;
                        break;
                case OPT_TOPIC:
                        t->in.topic = a.value;
                        break;
                case OPT_KEY:
                        t->in.key = a.value;
                        break;
                case OPT_HEADER:
                        if (!strchr(a.value, '='))
                                return lc_command_wrong(t->command, "--header '%s' is not name=value",
                                                        a.value);
                        lc_strv_add(&t->in.headers, a.value);
                        break;
                case OPT_SCHEMAS:
                        t->out.schemas = true;
                        break;
                case OPT_FULL:
                        t->out.full = true;
                        break;
                case OPT_EACH:
                        t->each = true;
                        break;
                case OPT_WATCH:
                        t->watch = true;
                        break;
                case OPT_PATH:
                        lc_strv_split(&t->plugin_path, a.value);
                        break;
                case LC_ARG_OPERAND:
                        if (t->file)
                                return lc_command_wrong(t->command, "one connector file only, not '%s', too",
                                                        a.value);
                        t->file = a.value;
                        break;
                case LC_ARG_HELP:
                        return -1;
                default:
                        return LC_KIT_USAGE;
                }
        }
        return rc;
}

static int check_call(const lc_try_t *t)
{
        if (t->in.raw && (t->in.records || t->in.schemaless))
                return lc_command_wrong(t->command, "--raw goes with neither --records nor --schemaless");
        if (t->in.topic && !*t->in.topic)
                return lc_command_wrong(t->command, "--topic is empty");
        if (t->connector && t->file)
                return lc_command_wrong(t->command, "--%s names the connector: what is '%s' for?",
                                        t->source ? "source" : "sink", t->file);
        if (t->connector && t->each)
                return lc_command_wrong(t->command, "--each goes with neither --source nor --sink");
        if (t->source && t->input)
                return lc_command_wrong(t->command, "a source reads no records: --input is of no use");
        if (!t->connector && !t->file && !t->steps.n && isatty(0) && !t->input)
                return lc_command_wrong(t->command, "nothing to do: no transforms, and stdin is a terminal");
        return 0;
}

static int build_config(lc_try_t *t, lc_err_t *err)
{
        lc_strv_t topics = {NULL, 0};
        int rc = 0;

        if (t->file || (t->connector && !lc_try_is_plugin(t->connector) && !lc_try_is_class(t->connector)))
                rc = lc_try_load_config(t->file ? t->file : t->connector, &t->config, err);
        else
                t->config = lc_props_new();
        if (!rc && t->connector && lc_try_is_class(t->connector))
                lc_props_set(t->config, "connector.class", t->connector);
        for (size_t i = 0; i < t->settings.n && !rc; i++)
                rc = lc_try_add_setting(t->config, t->settings.v[i], err);
        for (size_t i = 0; i < t->predicates.n && !rc; i++)
                rc = lc_try_add_predicate(t->config, t->predicates.v[i], err);
        for (size_t i = 0; i < t->steps.n && !rc; i++)
                rc = lc_try_add_step(t->config, t->steps.v[i], err);
        if (rc)
                return -1;
        if (!t->in.topic) {
                lc_strv_split(&topics, lc_props_get_or(t->config, "topics", ""));
                t->topic = lc_strdup(topics.n && *topics.v[0] ? topics.v[0] : "try");
                t->in.topic = t->topic;
                lc_strv_free(&topics);
        }
        return 0;
}

static int open_input(lc_try_t *t, lc_err_t *err)
{
        t->in.name = t->input ? t->input : "stdin";
        if (!t->input)
                return 0;
        t->in.fd = open(t->input, O_RDONLY | O_CLOEXEC);
        return t->in.fd < 0
                       ? lc_err_set(err, LC_FATAL, errno, "cannot read %s: %s", t->input, strerror(errno))
                       : 0;
}

static int run(lc_try_t *t)
{
        lc_err_t err = {0};

        if (open_input(t, &err) || build_config(t, &err)) {
                lc_command_error(NULL, &err);
                return LC_KIT_USAGE;
        }
        return t->connector ? lc_try_run_connector(t) : run_records(t);
}

static bool wants_color(void)
{
        const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

        return isatty(1) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static void set_log(void)
{
        const char *level = getenv("LUACONNECT_LOG_LEVEL");

        lc_log_set_fd(2);
        if (!level || !*level || lc_log_set_level(NULL, level))
                lc_log_set_level(NULL, "warn");
}

int lc_cmd_try(const lc_command_t *self, int argc, char **argv)
{
        lc_try_t t = {.command = self, .most = -1};
        int code;

        code = read_args(&t, argc, argv);
        if (code < 0) { /* --help */
                code = LC_KIT_OK;
        } else if (!code && !(code = check_call(&t))) {
                set_log();
                t.out.color = wants_color();
                t.in.bad = bad_line;
                t.in.arg = &t;
                t.host = (lc_script_host_t){.arg = &t, .connector = "try", .task = 0};
                code = t.watch ? lc_try_run_watched(&t, run) : run(&t);
        }
        free_chains(&t);
        lc_try_input_free(&t.in);
        lc_try_output_free(&t.out);
        if (t.plugins)
                lc_plugins_free(t.plugins);
        lc_props_free(t.config);
        free(t.home);
        free(t.topic);
        lc_strv_free(&t.plugin_path);
        lc_strv_free(&t.steps);
        lc_strv_free(&t.predicates);
        lc_strv_free(&t.settings);
        return code;
}
