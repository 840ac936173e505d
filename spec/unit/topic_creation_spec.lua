-- Groups of topic.creation.* (core/runtime/topic_creation.c): parsing, defaults, matching.
local core = require "spec.support.core"
local C, ffi = core.load { "runtime/topic_creation.h" }

describe("topic creation", function()
  local wc
  local function open(more)
    local props = { ["bootstrap.servers"] = "127.0.0.1:1", ["group.id"] = "g", ["config.storage.topic"] = "c",
      ["offset.storage.topic"] = "o", ["status.storage.topic"] = "s",
      ["key.converter"] = "org.apache.kafka.connect.storage.StringConverter",
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }
    for k, v in pairs(more or {}) do props[k] = v end
    local err = core.err()
    wc = C.lc_worker_config_new(core.props(props), C.LC_DISTRIBUTED, err)
    assert.is_true(wc ~= nil, core.msg(err))
  end
  before_each(function() open() end)
  after_each(function() C.lc_worker_config_free(wc) end)

  local function groups(config)
    local out, err = ffi.new "lc_topic_creation_t *[1]", core.err()
    if C.lc_topic_creation_new(wc, "c", 0, core.props(config), out, err) ~= 0 then return nil, core.msg(err) end
    if out[0] == nil then return nil end
    return ffi.gc(out[0], C.lc_topic_creation_free)
  end
  local function of(tc, topic) return ffi.string(C.lc_topic_creation_group(tc, topic)) end

  it("is left to the broker without groups, or where the worker forbids it", function()
    assert.is_nil(groups { topic = "t" })
    C.lc_worker_config_free(wc)
    open { ["topic.creation.enable"] = "false" }
    assert.is_nil(groups { ["topic.creation.default.partitions"] = "1", ["topic.creation.default.replication.factor"] = "1" })
  end)

  it("needs the two settings of the default group", function()
    assert.same({ nil, 'Missing required configuration "topic.creation.default.replication.factor" which has no default value.' },
      { groups { ["topic.creation.default.partitions"] = "1" } })
    assert.same({ nil, 'Missing required configuration "topic.creation.default.partitions" which has no default value.' },
      { groups { ["topic.creation.default.replication.factor"] = "1" } })
  end)

  it("gives a topic to the first group that includes and does not exclude it, by its whole name", function()
    local tc = assert(groups {
      ["topic.creation.default.partitions"] = "1", ["topic.creation.default.replication.factor"] = "-1",
      ["topic.creation.groups"] = "logs, numbers, default",
      ["topic.creation.logs.include"] = "log.*, audit", ["topic.creation.logs.exclude"] = "log-old",
      ["topic.creation.numbers.include"] = "t\\d+", ["topic.creation.numbers.partitions"] = "3" })
    assert.equal("logs", of(tc, "log-new"))
    assert.equal("logs", of(tc, "audit"))
    assert.equal("default", of(tc, "audits"))
    assert.equal("default", of(tc, "log-old"))
    assert.equal("numbers", of(tc, "t42"))
    assert.equal("default", of(tc, "xt42"))
  end)

  it("refuses numbers and patterns that are none", function()
    local base = { ["topic.creation.default.partitions"] = "1", ["topic.creation.default.replication.factor"] = "1" }
    local function with(more)
      local c = {}
      for k, v in pairs(base) do c[k] = v end
      for k, v in pairs(more) do c[k] = v end
      return select(2, groups(c))
    end
    assert.matches("Invalid value x for configuration topic.creation.default.partitions: Not a number of type INT",
      with { ["topic.creation.default.partitions"] = "x" }, 1, true)
    assert.matches("Invalid value 0 for configuration topic.creation.default.replication.factor: Value must be at least 1",
      with { ["topic.creation.default.replication.factor"] = "0" }, 1, true)
    assert.matches("Syntax error in regular expression", with { ["topic.creation.groups"] = "a",
      ["topic.creation.a.include"] = "a(" }, 1, true)
  end)
end)
