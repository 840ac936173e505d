-- spec/fault/proxy_spec.lua: a bad network between workers and broker, by a proxy, while lines flow in all modes: they flow as
-- far as it lets them and go on after it, none is lost, exactly once none comes twice, REST answers all the time (row 6 of
-- the fault matrix). --all: every kind.
local faults = require "spec.support.faults"
local proc = require "spec.support.proc"
local tcp_proxy = require "spec.support.tcp_proxy"

local all = os.getenv "LC_ALL_TESTS"
local recovery_limit = 30

-- flows: lines come through while it lasts
local toxics = {
  { name = "network down 8 s", set = { "cut" }, seconds = 8, short = true },
  { name = "half-open 10 s", set = { "blackhole" }, seconds = 10 },
  { name = "connections dead unnoticed", set = { "strand" }, seconds = 2, recovery = 45 },
  { name = "latency of 2 s", set = { "latency", 2000 }, seconds = 20, flows = true },
  { name = "10 kB/s", set = { "rate", 10000 }, seconds = 20, flows = true },
  { name = "reset every 5 s", set = { "reset" }, every = 5, seconds = 16, flows = true },
  { name = "slices of 1 byte", set = { "slice", 1 }, seconds = 8, flows = true, short = true },
}

describe("a network that is", function()
  local broker, proxy, field

  setup(function()
    broker = faults.broker()
    proxy = tcp_proxy.start { port = broker.proxy_port, target = broker.behind }
    field = faults.field { broker = broker, config = { ["bootstrap.servers"] = "127.0.0.1:" .. broker.proxy_port } }
  end)
  teardown(function()
    if field then field:stop() end
    proxy:stop()
  end)

  local function heal()
    proxy:set "pass"
    for _, what in ipairs { "latency", "rate", "slice" } do proxy:set(what, 0) end
  end

  for _, t in ipairs(toxics) do
    if all or t.short then
      it(t.name, function()
        finally(heal)
        local began, next_set, next_rest, rest, flowed = proc.now(), 0, 0, 0, {}
        for i, flow in ipairs(field.flows) do flowed[i] = flow:look() end
        proc.wait_for("lines while the network is " .. t.name, function()
          if proc.now() >= next_set then
            proxy:set(unpack(t.set))
            next_set = t.every and proc.now() + t.every or math.huge
          end
          if proc.now() >= next_rest then
            rest = math.max(rest, field:rest())
            next_rest = proc.now() + 1
          end
          field:append(2)
          if proc.now() - began < t.seconds then return false end
          for i, flow in ipairs(field.flows) do if t.flows and flow:look() == flowed[i] then return false end end
          return true
        end, 120 * proc.slow)
        for i, flow in ipairs(field.flows) do flowed[i] = flow:look() - flowed[i] end
        heal()
        local back = proc.now()
        field:cases({ row = 6, fault = t.name, limit = t.recovery or recovery_limit }, function(case, flow)
          local before = flow.n
          flow:append(2)
          proc.wait_for("the next line", function() return flow:look() > before end, 150 * proc.slow)
          case.seconds = proc.now() - back
          for i, f in ipairs(field.flows) do
            if f == flow then case.note = ("%d lines meanwhile, REST %.2f s"):format(flowed[i], rest) end
          end
          if rest > 1 then case.status = "slow REST" end
          flow:wait(60)
          flow:judge(case)
          local states, well = flow:states()
          assert(well, states)
        end)
      end)
    end
  end
end)
