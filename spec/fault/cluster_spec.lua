-- spec/fault/cluster_spec.lua: what befalls a cluster beside deaths of single workers (spec/kafka/cluster_spec.lua): a
-- worker without a network, all restarted at once, many changes at once from everywhere, two workers with one URL.
-- All of it runs with --all only.
local cluster = require "spec.support.cluster"
local golden = require "spec.support.golden"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local tcp_proxy = require "spec.support.tcp_proxy"

if not os.getenv "LC_ALL_TESTS" then return end

describe("a cluster", function()
  local c, broker, proxy, cut

  setup(function()
    local behind, port = proc.free_port(), proc.free_port()
    broker = kafka.broker { own = true, proxied = { port = behind, advertised = port } }
    proxy = tcp_proxy.start { port = port, target = behind }
    c = cluster.new { broker = broker, n = 2 }
    cut = c:add { config = { ["bootstrap.servers"] = "127.0.0.1:" .. port } }
    c:topology { flows = 12, sinks = 8, idle = 10 }
    c:settle()
  end)
  teardown(function()
    c:stop()
    proxy:stop()
    broker:stop "KILL"
  end)

  local function all_well(what)
    cluster.say("%s: all run again after %.1f s", what, c:settle(120))
    assert.equal("", c:take_overlaps())
    c:no_line_lost()
  end

  for _, mode in ipairs { "cut", "blackhole" } do
    it(("goes on when one worker is without a network (%s), and takes it back"):format(mode), function()
      assert.is_true(#c:tasks_of(cut) > 0)
      c:happens()
      proxy:set(mode)
      local before = c:mark()
      cut.frozen = true -- it cannot answer for the cluster
      cluster.say("%s: all run elsewhere after %.1f s", mode, c:settle(120))
      cut.frozen = false
      proc.wait_for("the worker without a network to stop its tasks", function() return #c:tasks_of(cut) == 0 end, 60)
      c:no_line_lost()
      local back = c:mark()
      c:take_overlaps() -- its tasks stay threads for a while, that write nothing: see written_twice
      c:happens()
      proxy:set "pass"
      proc.wait_for("the worker to get work again", function() return #c:tasks_of(cut) > 0 end, 60 * cluster.slow)
      all_well "the network is back"
      assert.same({}, c:written_twice(before, back))
    end)
  end

  it("is restarted all at once", function()
    for _, signal in ipairs { "TERM", "KILL" } do
      c:happens()
      for _, w in ipairs(c:live()) do w.process:signal(signal) end
      for _, w in ipairs(c.workers) do w.process:wait(60) end
      for _, w in ipairs(c.workers) do c:start(w, false) end
      c:wait_healthy()
      all_well("all ended by SIG" .. signal .. " and started")
    end
  end)

  it("takes 200 creates, updates and deletes in 20 s through all workers", function()
    local urls = {}
    for i, w in ipairs(c:live()) do urls[i] = w.url end
    local out = proc.run(("python3 spec/support/rest_storm.py 200 20 1 %s %s"):format(c.dir, table.concat(urls, " ")))
    local storm = golden.decode(out)
    cluster.say("200 operations took %.1f s; answers %s", storm.seconds, out:match '"answers": (%b{})')
    assert.same({}, storm.wrong)
    for name in pairs(storm.exist) do c.want[name] = "RUNNING" end
    all_well "after 200 operations"
    for name, marker in pairs(storm.exist) do
      for _, w in ipairs(c:live()) do
        local _, _, config = w:request("GET", ("/connectors/%s/config"):format(name))
        assert.equal(marker, config.marker)
      end
    end
    for name in pairs(storm.exist) do
      assert.equal(204, (c:request(c:live()[1], "DELETE", "/connectors/" .. name)))
      c.want[name] = nil
    end
    all_well "storm deleted"
  end)

  it("says so when two workers advertise one URL", function()
    local twin = c:add { config = { ["rest.advertised.port"] = c.workers[1].port } }
    local leader = c:leader()
    proc.wait_for("the leader's word about it", function()
      return leader:log():match("ERROR [^\n]*Two workers of the group advertise the same URL " .. c.workers[1].url)
    end, 60)
    for _, w in ipairs(c.workers) do assert.is_true(w.process:alive(), w.url) end
    c:term(twin)
    all_well "without the twin"
  end)
end)
