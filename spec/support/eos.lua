-- spec/support/eos.lua: what specs of exactly-once sources share: connectors, what consumers of either isolation level
-- see, lines that must be there once.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local _M = {}

--- Worker settings: exactly-once, and no offsets but those of transactions.
_M.enabled = { ["exactly.once.source.support"] = "enabled", ["offset.flush.interval.ms"] = 60000 }

--- A FileStreamSource of strings.
function _M.source(file, topic, more)
  return with({ ["connector.class"] = "FileStreamSource", ["tasks.max"] = "1", file = file, topic = topic,
    ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }, more)
end

--- What a consumer of this isolation level sees.
function _M.read(broker, topic, level)
  local out = proc.run(("timeout 60 kcat -b %s -C -q -e -t %s -X isolation.level=%s 2>/dev/null"):format(
    broker.bootstrap, topic, level))
  local list = {}
  for line in out:gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

function _M.committed(broker, topic) return _M.read(broker, topic, "read_committed") end
function _M.all(broker, topic) return _M.read(broker, topic, "read_uncommitted") end

function _M.wait_committed(broker, topic, n)
  local list
  proc.wait_for(n .. " committed records in " .. topic, function()
    list = _M.committed(broker, topic)
    return #list >= n
  end)
  return list
end

--- State by transactional id, as Kafka's own tool shows it; the tool's text.
function _M.transactions(broker)
  local out = kafka.tool { "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", broker.bootstrap, "list" }
  local states = {}
  for id, state in out:gmatch "\n(%S+)%s+%d+%s+%d+%s+(%S+)" do states[id] = state end
  return states, out
end

--- Values of the records of the config topic whose keys begin so.
function _M.config_values(broker, id, prefix)
  local out = {}
  for _, r in ipairs(broker:records(id .. "-configs")) do
    if r.key:sub(1, #prefix) == prefix then out[#out + 1] = r.value end
  end
  return out
end

--- Lines "1", "2", ... each once and in order: how many.
function _M.numbered(list)
  for i, v in ipairs(list) do assert(v == tostring(i), ("record %d is %s"):format(i, v)) end
  return #list
end

--- Wait until task 0 is FAILED: its trace.
function _M.wait_failed(worker, name)
  return proc.wait_for(name .. " to be FAILED", function()
    local s = worker:status(name)
    return s and s.tasks[1] and s.tasks[1].state == "FAILED" and s.tasks[1].trace
  end)
end

--- A file to which numbered lines are appended: flow:append(n), flow.n.
function _M.flow(file, topic)
  proc.append(file, "")
  return { file = file, topic = topic, n = 0, append = function(self, count)
    local lines = {}
    for i = 1, count or 1 do lines[i] = self.n + i .. "\n" end
    proc.append(self.file, table.concat(lines))
    self.n = self.n + (count or 1)
  end }
end

return _M
