-- spec/support/mock.lua: librdkafka's mock cluster for specs without a broker. It has no admin calls, no
-- compaction, honours no aborts; topics must be created here.
local ffi = require "ffi"

ffi.cdef [[
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_s rd_kafka_mock_t;
typedef struct rd_kafka_mock_cluster_s rd_kafka_mock_cluster_t;
rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
struct rd_kafka_s *rd_kafka_new(int, rd_kafka_conf_t *, char *, size_t);
void rd_kafka_destroy(struct rd_kafka_s *);
rd_kafka_mock_cluster_t *rd_kafka_mock_cluster_new(struct rd_kafka_s *, int);
void rd_kafka_mock_cluster_destroy(rd_kafka_mock_cluster_t *);
const char *rd_kafka_mock_cluster_bootstraps(const rd_kafka_mock_cluster_t *);
int rd_kafka_mock_topic_create(rd_kafka_mock_cluster_t *, const char *, int, int);
void rd_kafka_mock_push_request_errors(rd_kafka_mock_cluster_t *, int16_t, size_t, ...);
int rd_kafka_mock_broker_set_down(rd_kafka_mock_cluster_t *, int32_t);
int rd_kafka_mock_broker_set_up(rd_kafka_mock_cluster_t *, int32_t);
]]
local rk = ffi.load "rdkafka"

local Mock = {}
Mock.__index = Mock

--- A cluster of one broker; close it when done.
function Mock.new()
  local why = ffi.new "char[256]"
  local conf = rk.rd_kafka_conf_new()
  rk.rd_kafka_conf_set(conf, "client.id", "mock", why, 256)
  rk.rd_kafka_conf_set(conf, "log_level", "0", why, 256)
  local handle = rk.rd_kafka_new(0, conf, why, 256)
  assert(handle ~= nil, ffi.string(why))
  local cluster = rk.rd_kafka_mock_cluster_new(handle, 1)
  return setmetatable({ handle = handle, cluster = cluster,
    bootstrap = ffi.string(rk.rd_kafka_mock_cluster_bootstraps(cluster)) }, Mock)
end

function Mock:topic(name, partitions) rk.rd_kafka_mock_topic_create(self.cluster, name, partitions or 1, 1) end

--- The next requests of that API key (0 = Produce, 8 = OffsetCommit) fail with these error codes.
function Mock:fail(api, ...)
  local codes, n = { ... }, select("#", ...)
  local args = {}
  for i = 1, n do args[i] = ffi.new("int", codes[i]) end
  rk.rd_kafka_mock_push_request_errors(self.cluster, api, n, unpack(args))
end

function Mock:down() rk.rd_kafka_mock_broker_set_down(self.cluster, 1) end
function Mock:up() rk.rd_kafka_mock_broker_set_up(self.cluster, 1) end

function Mock:close()
  rk.rd_kafka_mock_cluster_destroy(self.cluster)
  rk.rd_kafka_destroy(self.handle)
end

return Mock
