-- spec/kafka/errors_golden_spec.lua: bad records as recorded from Kafka Connect 4.3.1 (golden/connectors/errors-*.jsonl):
-- what is written, committed, logged, shown in the status and put into the dead letter queue.
local golden = require "spec.support.golden"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local records = require "spec.support.records"
local with = require "spec.support.with"

local null = golden.null

--- Without the frames, which are a JVM's there and ours here.
local function stable(trace)
  local out = {}
  for line in trace:gmatch "[^\n]+" do
    if not line:match "^\t" and line ~= "stack traceback:" then out[#out + 1] = line end
  end
  return table.concat(out, "\n")
end

local function some(v) return v ~= null and v or nil end

local function header_list(headers)
  local out = {}
  for i, h in ipairs(headers) do
    local name, value = h.key or h[1], some(h.value) or h[2]
    if name == "__connect.errors.exception.stacktrace" then value = stable(value) end
    out[i] = { name, value }
  end
  return out
end

--- The first lines of recorded log entries, as far as they are words: without level, context and logger.
local function said(entry)
  return entry:match "^%u+ %b[] (.-) %(org%.apache%.[%w.]+:%d+%)"
end

describe("bad records", function()
  local broker, worker, dir
  setup(function()
    broker = kafka.broker()
    worker = kafka.worker { broker = broker, id = "errors-golden" }
    dir = proc.tmpdir "errors"
  end)
  teardown(function() assert.equal(0, worker:stop()) end)

  local function create(case, file)
    local config = with({}, case.config)
    config.file = file
    local code, text = worker:request("PUT", "/connectors/" .. case.name .. "/config", config)
    assert.equal(201, code, text)
  end

  local function wait_status(case)
    local want = case.status.tasks[1]
    local st = proc.wait_for(case.name .. " to be " .. want.state, function()
      local s = worker:status(case.name)
      return s and s.tasks[1] and s.tasks[1].state == want.state and s
    end)
    assert.equal(case.status.connector.state, st.connector.state)
    assert.equal(want.trace and stable(want.trace), st.tasks[1].trace and stable(st.tasks[1].trace))
  end

  local function wait_offsets(case)
    local want = case.offsets_rest.offsets
    if #want == 0 then return end
    proc.wait_for("the offsets of " .. case.name, function()
      local o = worker:offsets(case.name)
      if not o or #o ~= #want then return false end
      for k, v in pairs(want[1].offset) do if o[1].offset[k] ~= v then return false end end
      return true
    end)
  end

  local function check_log(case)
    local log = worker:log()
    for _, entry in ipairs(case.log_warn_error) do
      local text = said(entry)
      assert.is_truthy(text, "cannot read: " .. entry)
      -- the timestamp of a source's record is the clock's
      local from, to = text:match "^(.-timestamp=)%d+(, headers.*)$"
      if from then
        local _, at = log:find(from, 1, true)
        assert.is_truthy(at, from)
        local stamp, after = log:match("^(%d+)()", at + 1)
        assert.is_truthy(stamp, ("%s: %s"):format(from, log:sub(at + 1, at + 20)))
        assert.equal(to, log:sub(after, after + #to - 1))
        assert.is_true(math.abs(tonumber(stamp) / 1000 - os.time()) < 600, stamp)
      else
        assert.is_truthy(log:find(text, 1, true), ("the log has no %q"):format(text))
      end
    end
  end

  describe("of a sink:", function()
    for _, case in ipairs(golden.cases "connectors/errors-sink.jsonl") do
      it(case.name, function()
        local file = dir .. "/" .. case.name .. ".out"
        local list = {}
        for i, r in ipairs(case.records_in) do
          list[i] = { key = some(r.key), value = some(r.value), timestamp = r.timestamp, headers = {} }
          for k, h in ipairs(r.headers) do list[i].headers[k] = { h.key, some(h.value) } end
        end
        records.produce(broker.bootstrap, case.config.topics, list)
        create(case, file)
        if case.status.tasks[1].state == "RUNNING" then wait_offsets(case) end
        wait_status(case)
        assert.equal(some(case.output) or "", proc.read(file) or "")
        if case.status.tasks[1].state == "FAILED" then
          for _, o in ipairs(worker:offsets(case.name)) do assert.equal(0, o.offset.kafka_offset) end
        end
        check_log(case)
        local queue = case.config["errors.deadletterqueue.topic.name"]
        if queue and case.dlq and #case.dlq > 0 then
          local got = records.read(broker.bootstrap, queue, #case.dlq)
          assert.equal(#case.dlq, #got)
          local topic = proc.run(("kcat -L -b %s -t %s"):format(broker.bootstrap, queue))
          assert.matches(("topic %q with %d partitions"):format(queue, case.dlq_topic.partitions), topic, 1, true)
          for i, want in ipairs(case.dlq) do
            assert.same({ some(want.key), some(want.value), want.timestamp, want.offset },
              { got[i].key, got[i].value, got[i].timestamp, got[i].offset })
            assert.same(header_list(want.headers), header_list(got[i].headers))
          end
        end
        worker:request("DELETE", "/connectors/" .. case.name)
      end)
    end
  end)

  -- what was in the files is not in the recording: it follows from its records and positions
  local inputs = { ["src-big-all"] = "a\n" .. ("x"):rep(1200000) .. "\nb\n" }

  describe("of a source:", function()
    for _, case in ipairs(golden.cases "connectors/errors-source.jsonl") do
      it(case.name, function()
        local file = dir .. "/" .. case.name .. ".txt"
        proc.write(file, inputs[case.name] or "1\nx\n3\n")
        create(case, file)
        wait_status(case)
        if #case.records > 0 then
          local got = records.read(broker.bootstrap, case.config.topic, #case.records)
          local want = {}
          for i, r in ipairs(case.records) do want[i] = r.value end
          for i, r in ipairs(got) do got[i] = r.value end
          assert.same(want, got)
        end
        wait_offsets(case)
        -- a line that is too large never becomes a record here (docs/differences.md)
        if case.name ~= "src-big-all" then
          case.log_warn_error = { unpack(case.log_warn_error) }
          for i, e in ipairs(case.log_warn_error) do
            case.log_warn_error[i] = e:gsub("/tmp/golden/es%-", dir .. "/")
          end
          if case.name == "src-conv-all" then
            proc.wait_for("three lines", function()
              return select(2, worker:log():gsub("Error encountered in task src%-conv%-all%-0", "")) == 3
            end)
          end
          check_log(case)
        end
        worker:request("DELETE", "/connectors/" .. case.name)
      end)
    end
  end)
end)
