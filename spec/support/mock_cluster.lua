-- spec/support/mock_cluster.lua: librdkafka's mock cluster in this process, for specs without a broker.
-- Its limits: DESIGN 8 (one partition a topic made here, no admin calls, first join after 3 s).
local ffi = require "ffi"
local lib = require("spec.support.compile").library([[
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>
typedef struct mock { rd_kafka_t *rk; rd_kafka_mock_cluster_t *mc; } mock_t;
static void quiet(const rd_kafka_t *rk, int level, const char *fac, const char *buf)
{ (void)rk; (void)level; (void)fac; (void)buf; }
static rd_kafka_t *client(rd_kafka_type_t type, const char *bootstrap)
{
        char err[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_conf_set_log_cb(conf, quiet);
        if (bootstrap)
                rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, err, sizeof(err));
        if (type == RD_KAFKA_PRODUCER)
                rd_kafka_conf_set(conf, "linger.ms", "0", err, sizeof(err));
        return rd_kafka_new(type, conf, err, sizeof(err));
}
mock_t *mock_new(void)
{
        mock_t *m = calloc(1, sizeof(*m));
        m->rk = client(RD_KAFKA_PRODUCER, NULL);
        m->mc = rd_kafka_mock_cluster_new(m->rk, 1);
        return m;
}
const char *mock_bootstrap(mock_t *m) { return rd_kafka_mock_cluster_bootstraps(m->mc); }
int mock_topic(mock_t *m, const char *name, int n) { return rd_kafka_mock_topic_create(m->mc, name, n, 1); }
void mock_down(mock_t *m, int down)
{
        if (down) rd_kafka_mock_broker_set_down(m->mc, 1); else rd_kafka_mock_broker_set_up(m->mc, 1);
}
void mock_rtt(mock_t *m, int ms) { rd_kafka_mock_broker_set_rtt(m->mc, 1, ms); }
void mock_produce_error(mock_t *m, int code, int times)
{
        while (times-- > 0)
                rd_kafka_mock_push_request_errors(m->mc, 0, 1, (rd_kafka_resp_err_t)code);
}
void mock_request_error(mock_t *m, int api, int code, int times)
{
        while (times-- > 0)
                rd_kafka_mock_push_request_errors(m->mc, (int16_t)api, 1, (rd_kafka_resp_err_t)code);
}
void mock_request_fine(mock_t *m, int api) { rd_kafka_mock_clear_request_errors(m->mc, (int16_t)api); }
void mock_produce_fine(mock_t *m) { rd_kafka_mock_clear_request_errors(m->mc, 0); }
void mock_free(mock_t *m)
{
        rd_kafka_mock_cluster_destroy(m->mc);
        rd_kafka_destroy(m->rk);
        free(m);
}
/* Values of partition 0 from `from` on, each followed by \x1e; waits until `want` are there or ms passed.
 * Returns the bytes. */
int mock_read(mock_t *m, const char *topic, long from, int want, int ms, char *out, int size)
{
        rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, mock_bootstrap(m));
        rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
        int n = 0, used = 0;
        rd_kafka_consume_start(rkt, 0, from);
        while (ms > 0 && (n < want || want == 0)) {
                rd_kafka_message_t *msg = rd_kafka_consume(rkt, 0, 20);
                ms -= msg ? 0 : 20;
                if (msg && !msg->err && used + (int)msg->len + 1 < size) {
                        memcpy(out + used, msg->payload, msg->len);
                        used += (int)msg->len;
                        out[used++] = 0x1e;
                        n++;
                }
                if (msg)
                        rd_kafka_message_destroy(msg);
        }
        out[used] = 0;
        rd_kafka_consume_stop(rkt, 0);
        rd_kafka_topic_destroy(rkt);
        rd_kafka_destroy(rk);
        return used;
}
int mock_write(mock_t *m, const char *topic, int partition, const char *value, int len)
{
        rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, mock_bootstrap(m));
        rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
        int rc = rd_kafka_produce(rkt, partition, RD_KAFKA_MSG_F_COPY, (void *)value, (size_t)len, NULL, 0, NULL);
        rd_kafka_flush(rk, 10000);
        rd_kafka_topic_destroy(rkt);
        rd_kafka_destroy(rk);
        return rc;
}
long mock_committed(mock_t *m, const char *group, const char *topic, int partition)
{
        char err[256];
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_t *rk;
        rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(1);
        long off;
        rd_kafka_conf_set_log_cb(conf, quiet);
        rd_kafka_conf_set(conf, "bootstrap.servers", mock_bootstrap(m), err, sizeof(err));
        rd_kafka_conf_set(conf, "group.id", group, err, sizeof(err));
        rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, err, sizeof(err));
        rd_kafka_topic_partition_list_add(l, topic, partition);
        off = rd_kafka_committed(rk, l, 10000) ? -2 : (long)l->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(l);
        rd_kafka_destroy(rk);
        return off;
}
]], [[
typedef struct mock mock_t;
mock_t *mock_new(void);
const char *mock_bootstrap(mock_t *m);
int mock_topic(mock_t *m, const char *name, int n);
void mock_down(mock_t *m, int down);
void mock_rtt(mock_t *m, int ms);
void mock_produce_error(mock_t *m, int code, int times);
void mock_produce_fine(mock_t *m);
void mock_request_error(mock_t *m, int api, int code, int times);
void mock_request_fine(mock_t *m, int api);
void mock_free(mock_t *m);
int mock_read(mock_t *m, const char *topic, long from, int want, int ms, char *out, int size);
int mock_write(mock_t *m, const char *topic, int partition, const char *value, int len);
long mock_committed(mock_t *m, const char *group, const char *topic, int partition);
]])

local Cluster = {}
Cluster.__index = Cluster

local _M = {}

--- A cluster of one broker; close it by :close().
function _M.new() return setmetatable({ m = lib.mock_new() }, Cluster) end

function Cluster:bootstrap() return ffi.string(lib.mock_bootstrap(self.m)) end

function Cluster:topic(name, partitions) lib.mock_topic(self.m, name, partitions or 1) end

--- The broker goes away and comes back.
function Cluster:down(yes) lib.mock_down(self.m, yes and 1 or 0) end

--- Each answer takes so many ms more.
function Cluster:rtt(ms) lib.mock_rtt(self.m, ms) end

--- The next `times` produce requests are answered with this error code.
function Cluster:produce_error(code, times) lib.mock_produce_error(self.m, code, times or 1) end

--- The next `times` requests of that API key (0 Produce, 1 Fetch, 8 OffsetCommit...) are answered with this error code.
function Cluster:request_error(api, code, times) lib.mock_request_error(self.m, api, code, times) end

--- No more of them.
function Cluster:request_fine(api) lib.mock_request_fine(self.m, api) end

--- No more of them.
function Cluster:produce_fine() lib.mock_produce_fine(self.m) end

--- Values of a topic's partition 0, waiting for `want` of them at most `ms` (a minute); want 0: all that come in ms.
function Cluster:read(topic, want, ms)
  local size = 1024 * 1024
  local buf = ffi.new("char[?]", size)
  local used = lib.mock_read(self.m, topic, 0, want, ms or 60000, buf, size)
  local out = {}
  for v in ffi.string(buf, used):gmatch "([^\30]*)\30" do out[#out + 1] = v end
  return out
end

function Cluster:write(topic, values, partition)
  for _, v in ipairs(values) do lib.mock_write(self.m, topic, partition or 0, v, #v) end
end

--- Committed offset of a group, -1001 when there is none.
function Cluster:committed(group, topic, partition)
  return tonumber(lib.mock_committed(self.m, group, topic, partition or 0))
end

function Cluster:close() lib.mock_free(self.m) end

return _M
