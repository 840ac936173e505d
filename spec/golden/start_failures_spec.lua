-- Worker files that Kafka Connect 4.3.1 refused, and what it said first. Here the part that needs neither
-- broker nor port: reading the file and checking it. Whole processes are tried in spec/kafka.
local core = require "spec.support.core"
local files = require "spec.support.files"
local golden = require "spec.support.golden"
local plugins = require "spec.support.plugins"
local C, ffi = core.load { "base/err.h", "base/log.h", "config/worker_config.h", "config/properties.h" }

-- What comes up only while talking to a broker, a name server or a socket.
local elsewhere = {
  "^org%.apache%.kafka%.connect%.errors%.ConnectException: Unable to initialize REST server",
  "^org%.apache%.kafka%.connect%.errors%.ConnectException: Failed to connect to and describe Kafka cluster",
  "No resolvable bootstrap urls",
  "Class no%.Such cannot be found", -- metric.reporters: there is no JVM to load one into
  "IllegalArgumentException: No serviceName defined",
}

-- The first exception after "Stopping due to error", with the first cause where the head says nothing.
local function expected(log)
  local at = log:find("Stopping due to error", 1, true)
  if not at then return nil end
  local head = log:match("\n([%w_.$]+: [^\n]*)", at) or log:match("\n([%w_.$]+)", at)
  local cause = log:match("\nCaused by: ([^\n]*)", at)
  return head, cause
end

local function list_cut(s) -- names of algorithms differ between a JVM and OpenSSL, their list is cut
  return (s:gsub("(the supported algorithms are: ).*", "%1"))
end

local function load(case)
  local err = core.err()
  local path = case.args[1]
  local text = case.files[path]
  local wc
  if text then
    path = os.tmpname()
    files.write(path, text)
  end
  wc = C.lc_worker_config_load(path, 0, err)
  if text then os.remove(path) end
  if wc ~= nil then
    wc = ffi.gc(wc, C.lc_worker_config_free)
    if C.lc_worker_config_check_plugins(wc, plugins.set(plugins.standard()), err) == 0 then return nil end
  end
  local cls = err.cls ~= nil and ffi.string(err.cls) or "org.apache.kafka.connect.errors.ConnectException"
  return cls .. ": " .. core.msg(err), ffi.string(err.detail):match "Caused by: ([^\n]*)"
end

describe("start failures", function()
  C.lc_log_set_level(nil, "off")
  local compared = 0
  for _, case in ipairs(golden.cases "standalone/distributed-start-failures.jsonl") do
    local head, cause = expected(case.stdout_nonlog_warn_error or "")
    local here = case.args[1] and case.args[1] ~= "--help"
    for _, p in ipairs(elsewhere) do
      if head and (head:find(p) or (cause and cause:find(p))) then here = false end
    end
    if here and case.exit == 2 then
      compared = compared + 1
      it(case.name, function()
        local got, got_cause = load(case)
        assert.equal(list_cut(head), got and list_cut(got))
        if head:find "^org.apache.kafka.common.KafkaException" then assert.equal(cause, got_cause) end
      end)
    elseif here and tostring(case.exit):find "^starts and runs" then
      it(case.name .. " is accepted", function() assert.is_nil(load(case)) end)
    end
  end
  it("were there", function() assert.is_true(compared > 25, compared .. " cases") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)
end)
