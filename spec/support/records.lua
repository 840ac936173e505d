-- spec/support/records.lua: whole records (key, value, timestamp, headers) in and out of a broker or the mock cluster,
-- for what kcat cannot say: null or empty values, headers with any bytes, timestamps.
local _, ffi = require("spec.support.core").load { "base/err.h" } -- librdkafka comes with the core
local lib = require("spec.support.compile").library([[
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>
static void quiet(const rd_kafka_t *rk, int level, const char *fac, const char *buf)
{ (void)rk; (void)level; (void)fac; (void)buf; }
rd_kafka_t *rec_client(int producer, const char *bootstrap)
{
        char err[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_set_log_cb(conf, quiet);
        rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, err, sizeof(err));
        rd_kafka_conf_set(conf, "enable.partition.eof", "true", err, sizeof(err));
        rd_kafka_conf_set(conf, "message.max.bytes", "100000000", err, sizeof(err));
        rd_kafka_conf_set(conf, "linger.ms", "0", err, sizeof(err));
        return rd_kafka_new(producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, err, sizeof(err));
}
static rd_kafka_headers_t *headers;
void rec_header(const char *name, const char *value, int len)
{
        if (!headers)
                headers = rd_kafka_headers_new(8);
        rd_kafka_header_add(headers, name, -1, value, len);
}
int rec_produce(rd_kafka_t *rk, const char *topic, int partition, const char *key, int nkey, const char *value, int n,
                long long timestamp)
{
        rd_kafka_headers_t *h = headers;
        headers = NULL;
        if (!h)
                h = rd_kafka_headers_new(1);
        return rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                                 RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, (size_t)nkey),
                                 RD_KAFKA_V_VALUE((void *)value, (size_t)n), RD_KAFKA_V_TIMESTAMP(timestamp),
                                 RD_KAFKA_V_HEADERS(h), RD_KAFKA_V_END);
}
int rec_flush(rd_kafka_t *rk) { return rd_kafka_flush(rk, 60000); }
void rec_free(rd_kafka_t *rk) { rd_kafka_destroy(rk); }
/* The next message of what was started; NULL: the end, or nothing for `ms`. */
rd_kafka_topic_t *rec_start(rd_kafka_t *rk, const char *topic, int partition)
{
        rd_kafka_topic_t *t = rd_kafka_topic_new(rk, topic, NULL);
        rd_kafka_consume_start(t, partition, RD_KAFKA_OFFSET_BEGINNING);
        return t;
}
rd_kafka_message_t *rec_next(rd_kafka_topic_t *t, int partition, int ms)
{
        rd_kafka_message_t *m = rd_kafka_consume(t, partition, ms);
        if (m && m->err) {
                rd_kafka_message_destroy(m);
                return NULL;
        }
        return m;
}
void rec_stop(rd_kafka_topic_t *t, int partition)
{
        rd_kafka_consume_stop(t, partition);
        rd_kafka_topic_destroy(t);
}
const char *rec_key(rd_kafka_message_t *m, int *n) { *n = (int)m->key_len; return m->key; }
const char *rec_value(rd_kafka_message_t *m, int *n) { *n = (int)m->len; return m->payload; }
long long rec_offset(rd_kafka_message_t *m) { return m->offset; }
long long rec_timestamp(rd_kafka_message_t *m)
{
        rd_kafka_timestamp_type_t type;
        return rd_kafka_message_timestamp(m, &type);
}
/* false: no such header */
int rec_header_at(rd_kafka_message_t *m, int i, const char **name, const char **value, int *n)
{
        rd_kafka_headers_t *h;
        size_t len;
        if (rd_kafka_message_headers(m, &h) ||
            rd_kafka_header_get_all(h, (size_t)i, name, (const void **)value, &len))
                return 0;
        *n = (int)len;
        return 1;
}
void rec_message_free(rd_kafka_message_t *m) { rd_kafka_message_destroy(m); }
]], [[
typedef struct rec_client rec_client_t;
typedef struct rec_topic rec_topic_t;
typedef struct rec_message rec_message_t;
rec_client_t *rec_client(int producer, const char *bootstrap);
void rec_header(const char *name, const char *value, int len);
int rec_produce(rec_client_t *rk, const char *topic, int partition, const char *key, int nkey, const char *value, int n,
                long long timestamp);
int rec_flush(rec_client_t *rk);
void rec_free(rec_client_t *rk);
rec_topic_t *rec_start(rec_client_t *rk, const char *topic, int partition);
rec_message_t *rec_next(rec_topic_t *t, int partition, int ms);
void rec_stop(rec_topic_t *t, int partition);
const char *rec_key(rec_message_t *m, int *n);
const char *rec_value(rec_message_t *m, int *n);
long long rec_offset(rec_message_t *m);
long long rec_timestamp(rec_message_t *m);
int rec_header_at(rec_message_t *m, int i, const char **name, const char **value, int *n);
void rec_message_free(rec_message_t *m);
]])

local _M = {}

--- list of { key =, value =, timestamp =, partition =, headers = { { name, value }, ... } }: nil is null.
function _M.produce(bootstrap, topic, list)
  local rk = lib.rec_client(1, bootstrap)
  for _, r in ipairs(list) do
    for _, h in ipairs(r.headers or {}) do lib.rec_header(h[1], h[2], h[2] and #h[2] or 0) end
    assert(0 == lib.rec_produce(rk, topic, r.partition or 0, r.key, r.key and #r.key or 0, r.value, r.value and #r.value or 0,
      r.timestamp or 0), "rd_kafka_producev failed")
  end
  local left = lib.rec_flush(rk)
  lib.rec_free(rk)
  assert(left == 0, "records were not produced")
end

local n = ffi.new "int[1]"
local function text(p) return p ~= nil and ffi.string(p, n[0]) or nil end

--- All records of a partition, as above, with offset; `at_least`: waits for so many.
function _M.read(bootstrap, topic, at_least, partition)
  local rk = lib.rec_client(0, bootstrap)
  partition = partition or 0
  local t, out = lib.rec_start(rk, topic, partition), {}
  local idle = 0
  while idle < ((at_least or 0) > #out and 200 or 1) do
    local m = lib.rec_next(t, partition, #out == 0 and 2000 or 200)
    if m == nil then
      idle = idle + 1
    else
      idle = 0
      local r = { key = text(lib.rec_key(m, n)), value = text(lib.rec_value(m, n)), offset = tonumber(lib.rec_offset(m)),
        timestamp = tonumber(lib.rec_timestamp(m)), headers = {} }
      local name, value = ffi.new "const char *[1]", ffi.new "const char *[1]"
      while lib.rec_header_at(m, #r.headers, name, value, n) ~= 0 do
        r.headers[#r.headers + 1] = { ffi.string(name[0]), text(value[0]) }
      end
      out[#out + 1] = r
      lib.rec_message_free(m)
    end
  end
  lib.rec_stop(t, partition)
  lib.rec_free(rk)
  return out
end

return _M
