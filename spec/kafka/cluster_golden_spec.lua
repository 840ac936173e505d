-- spec/kafka/cluster_golden_spec.lua: the exchanges recorded from two Kafka Connect 4.3.1 workers of one group,
-- replayed against two of ours. What differs is listed with its reason in spec/golden/cluster/accept.jsonl.
local golden = require "spec.support.golden"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local replay = "python3 spec/support/replay"

describe("recorded exchanges of two workers", function()
  it("agree: 01-two-workers", function()
    local file = golden.dir() .. "/cluster/01-two-workers.json"
    local broker, data = kafka.broker(), proc.tmpdir "golden"
    local a, b = "http://127.0.0.1:" .. proc.free_port(), "http://127.0.0.1:" .. proc.free_port()
    if b < a then a, b = b, a end -- work goes to the smaller member id first, and that begins with the port
    local options = (" --url %s --url-b %s --bootstrap %s --data-dir %s"):format(a, b, broker.bootstrap, data)
    local _, cleaned = proc.run(replay .. " --clean --bootstrap " .. broker.bootstrap .. " 2>&1")
    assert.equal(0, cleaned)
    local workers = {}
    for i, url in ipairs { a, b } do -- the first leads
      local config, status = proc.run(("%s --worker-config %s --worker %s%s"):format(replay, file, i == 1 and "a" or "b",
        options))
      assert.equal(0, status)
      local dir = proc.tmpdir("replay-" .. i)
      proc.write(dir .. "/worker.properties", config)
      workers[i] = proc.start { os.getenv "LUACONNECT" or "build/luaconnect", "distributed",
        dir .. "/worker.properties", name = "worker", dir = dir }
      proc.wait_for("the worker on " .. url, function()
        if not workers[i]:alive() then error("the worker ended: " .. workers[i]:log():sub(-3000)) end
        return select(2, proc.run("curl -sf " .. url .. "/health > /dev/null")) == 0
      end)
    end
    local out, status = proc.run(("%s %s%s --accept spec/golden/cluster/accept.jsonl 2>&1"):format(replay, file, options))
    for _, w in ipairs(workers) do assert.equal(0, w:stop()) end
    assert.equal(0, status, out)
  end)
end)
