-- spec/kafka/rest_golden_spec.lua: REST exchanges recorded from Kafka Connect 4.3.1, replayed against our worker.
-- What still differs is listed with its reason in spec/golden/rest/accept.jsonl; anything else fails.
local golden = require "spec.support.golden"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local replay = "python3 spec/support/replay"
local scenarios = { "01-root-and-generic", "02-create", "04-config-put-patch", "05-get-status-tasks-topics",
  "06-lifecycle", "14-exactly-once-enabled", "16-exactly-once-preparing", "22-eager-protocol" }

describe("recorded REST exchanges", function()
  local broker
  setup(function() broker = kafka.broker { own = true } end)
  teardown(function() broker:stop() end)

  for _, name in ipairs(scenarios) do
    local file = golden.dir() .. "/rest/" .. name .. ".json"
    if proc.read(file) then
      it("agree: " .. name, function()
        local port, data = proc.free_port(), proc.tmpdir "golden"
        local url, at = "http://127.0.0.1:" .. port, " --bootstrap " .. broker.bootstrap
        proc.run(replay .. " --clean" .. at)
        local config, status = proc.run(("%s --worker-config %s --url %s%s --data-dir %s"):format(replay, file, url, at, data))
        assert.equal(0, status)
        local dir = proc.tmpdir "replay"
        proc.write(dir .. "/worker.properties", config)
        local worker = proc.start { os.getenv "LUACONNECT" or "build/luaconnect", "distributed",
          dir .. "/worker.properties", name = "worker", dir = dir }
        proc.wait_for("the worker", function()
          return select(2, proc.run("curl -sf " .. url .. "/health > /dev/null")) == 0
        end)
        local accept = "spec/golden/rest/accept.jsonl"
        local out
        out, status = proc.run(("%s %s --url %s%s --data-dir %s --accept %s 2>&1"):format(replay, file, url, at, data, accept))
        assert.equal(0, worker:stop())
        assert.equal(0, status, out)
      end)
    end
  end
end)
