-- spec/kafka/cluster_spec.lua: three workers of ours share 30 connectors through which lines flow; workers come, go
-- and die. After each change: no line lost, nothing runs twice or nowhere, REST of every worker tells the truth. The
-- times until all runs again are printed. The longer faults are in spec/fault/cluster_spec.lua.
local cluster = require "spec.support.cluster"
local kafka = require "spec.support.kafka"

describe("three workers with 30 connectors", function()
  local c
  setup(function() c = cluster.new { broker = kafka.broker(), n = 3 } end)
  teardown(function() c:stop() end)

  local function all_well(what)
    cluster.say("%s: all run again after %.1f s", what, c:settle())
    assert.equal("", c:take_overlaps())
    c:no_line_lost()
  end

  it("share them evenly", function()
    c:topology { flows = 12, sinks = 8, idle = 10 }
    all_well "30 connectors created"
    for w, n in pairs(c:load()) do assert.equal(20, n, w.url) end
  end)

  it("give a fourth its share", function()
    c:add()
    all_well "a fourth worker"
    for w, n in pairs(c:load()) do assert.is_true(n >= 14 and n <= 16, w.url .. " runs " .. n) end
  end)

  it("take over from one that ends by SIGTERM", function()
    local _, follower = c:leader()
    c:term(follower)
    all_well "SIGTERM"
  end)

  it("take over from one that is killed", function()
    local _, follower = c:leader()
    c:kill(follower)
    all_well "SIGKILL"
  end)
end)
