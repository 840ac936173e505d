-- Groups of topic.creation.* (core/runtime/topic_creation.c): parsing, defaults, matching.
local core = require "spec.support.core"
local with = require "spec.support.with"
local worker_config = require "spec.support.worker_config"
local C, ffi = core.load { "runtime/topic_creation.h" }

describe("topic creation", function()
  local wc
  local function open(more)
    wc = worker_config.new(more)
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
    local function refusal(more) return select(2, groups(with(base, more))) end
    assert.matches("Invalid value x for configuration topic.creation.default.partitions: Not a number of type INT",
      refusal { ["topic.creation.default.partitions"] = "x" }, 1, true)
    assert.matches("Invalid value 0 for configuration topic.creation.default.replication.factor: Value must be at least 1",
      refusal { ["topic.creation.default.replication.factor"] = "0" }, 1, true)
    assert.matches("Syntax error in regular expression", refusal { ["topic.creation.groups"] = "a",
      ["topic.creation.a.include"] = "a(" }, 1, true)
  end)
end)
