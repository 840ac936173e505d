-- Error operator (core/runtime/operator.c): retries, tolerance, reports.
local core = require "spec.support.core"
local logged = require "spec.support.logged"
local C, ffi = core.load { "base/log.h", "base/clock.h", "runtime/operator.h" }

-- C calls back into Lua here, on this thread: never from compiled code
jit.off(true, true)

local function operator(config, sink)
  local op = ffi.new "lc_operator_t"
  C.lc_operator_init(op, "c", 0, sink or false, core.props(config))
  return op
end

local function failure(kind, text)
  local e = core.err()
  e.kind = kind
  e.cls = "org.apache.kafka.connect.errors.DataException"
  ffi.copy(e.msg, text)
  return e
end

-- A step that fails `times` times with `kind` and then succeeds.
local function step(times, kind)
  local calls = { n = 0 }
  local cb = ffi.cast("int (*)(void *, lc_record_t *, lc_err_t *)", function(_, _, err)
    calls.n = calls.n + 1
    if calls.n > times then return 0 end
    err.kind = kind
    ffi.copy(err.msg, "again")
    return -1
  end)
  return cb, calls
end

local function waits(op)
  local log = {}
  local cb = ffi.cast("lc_wait_t (*)(void *, int64_t)", function(_, ms)
    log[#log + 1] = tonumber(ms)
    return log.ends or C.LC_WAITED
  end)
  op.wait = cb
  return log, cb
end

describe("error operator", function()
  it("fails the task at the first error under tolerance none", function()
    local op = operator {}
    local e = failure(C.LC_DATA, "bad")
    assert.equal(-1, C.lc_operator_failed(op, C.LC_STAGE_VALUE_CONVERTER, "X", nil, nil, nil, e))
    assert.equal("Tolerance exceeded in error handler", core.msg(e))
    assert.equal("Caused by: org.apache.kafka.connect.errors.DataException: bad\n", ffi.string(e.detail))
    assert.equal(C.LC_FATAL, tonumber(e.kind))
    assert.equal(1, tonumber(op.errors))
    assert.equal(0, tonumber(op.skipped))
    C.lc_operator_close(op)
  end)

  it("skips under tolerance all, but not what is fatal", function()
    local op = operator { ["errors.tolerance"] = "all" }
    local e = failure(C.LC_DATA, "bad")
    assert.equal(1, C.lc_operator_failed(op, C.LC_STAGE_VALUE_CONVERTER, "X", nil, nil, nil, e))
    assert.equal(0, tonumber(e.kind))
    assert.equal(1, tonumber(op.skipped))
    e = failure(C.LC_FATAL, "out of memory")
    assert.equal(-1, C.lc_operator_failed(op, C.LC_STAGE_VALUE_CONVERTER, "X", nil, nil, nil, e))
    assert.equal("Unhandled exception in error handler", core.msg(e))
    C.lc_operator_close(op)
  end)

  it("does not retry without errors.retry.timeout", function()
    local op = operator {}
    local log = waits(op)
    local cb, calls = step(1, C.LC_RETRIABLE)
    assert.equal(-1, C.lc_operator_failed(op, C.LC_STAGE_KEY_CONVERTER, "X", nil, cb, nil, failure(C.LC_RETRIABLE, "x")))
    assert.equal(0, calls.n)
    assert.equal(0, #log)
    C.lc_operator_close(op)
  end)

  it("retries with 300 ms doubling until it works", function()
    local op = operator { ["errors.retry.timeout"] = "-1" }
    local log = waits(op)
    local cb, calls = step(3, C.LC_RETRIABLE)
    local e = failure(C.LC_RETRIABLE, "x")
    assert.equal(0, C.lc_operator_failed(op, C.LC_STAGE_KEY_CONVERTER, "X", nil, cb, nil, e))
    assert.equal(4, calls.n)
    assert.same({ 300, 600, 1200, 2400 }, log)
    assert.equal(4, tonumber(op.retries))
    assert.equal(4, tonumber(op.failures))
    assert.equal(0, tonumber(op.errors))
    assert.equal(0, tonumber(e.kind))
    C.lc_operator_close(op)
  end)

  it("keeps delays below errors.retry.delay.max.ms and ends at the deadline", function()
    local op = operator { ["errors.retry.timeout"] = "100000", ["errors.retry.delay.max.ms"] = "500" }
    local log = waits(op)
    local cb = step(6, C.LC_RETRIABLE)
    assert.equal(0, C.lc_operator_failed(op, C.LC_STAGE_KEY_CONVERTER, "X", nil, cb, nil, failure(C.LC_RETRIABLE, "x")))
    assert.equal(300, log[1])
    for i = 2, #log do assert.is_true(log[i] >= 0 and log[i] <= 500) end
    C.lc_operator_close(op)

    op = operator { ["errors.retry.timeout"] = "200" }
    log = waits(op)
    cb = step(1, C.LC_DATA) -- another kind of failure ends the retries
    local e = failure(C.LC_RETRIABLE, "x")
    assert.equal(-1, C.lc_operator_failed(op, C.LC_STAGE_KEY_CONVERTER, "X", nil, cb, nil, e))
    assert.is_true(log[1] <= 200)
    assert.matches("again", ffi.string(e.detail))
    C.lc_operator_close(op)
  end)

  it("gives a record up when the task is cancelled", function()
    local op = operator { ["errors.retry.timeout"] = "-1" }
    local log = waits(op)
    log.ends = C.LC_WAIT_CANCELLED
    local cb, calls = step(1, C.LC_RETRIABLE)
    assert.equal(1, C.lc_operator_failed(op, C.LC_STAGE_KEY_CONVERTER, "X", nil, cb, nil, failure(C.LC_RETRIABLE, "x")))
    assert.equal(0, calls.n)
    C.lc_operator_close(op)
  end)

  it("leaves a record alone when the task is stopped between two attempts", function()
    local op = operator { ["errors.retry.timeout"] = "-1", ["errors.tolerance"] = "all" }
    local log = waits(op)
    log.ends = C.LC_WAIT_STOPPED
    local cb, calls = step(1, C.LC_RETRIABLE)
    local e = failure(C.LC_RETRIABLE, "x")
    assert.equal(-1, C.lc_operator_failed(op, C.LC_STAGE_KEY_CONVERTER, "X", nil, cb, nil, e))
    assert.equal(0, calls.n)
    assert.equal("x", core.msg(e))
    assert.equal(0, tonumber(op.errors)) -- nothing was reported
    C.lc_operator_close(op)
  end)

  describe("log reporter", function()
    local b, r
    before_each(function()
      C.lc_log_set_level(nil, "error")
      b = C.lc_batch_new(1)
      r = C.lc_batch_add(b)
      r.topic = "t"
    end)
    after_each(function()
      C.lc_batch_unref(b)
      C.lc_log_set_level(nil, "off")
    end)

    it("says the stage and the class, and the record when asked", function()
      local op = operator({ ["errors.log.enable"] = "true", ["errors.tolerance"] = "all" }, true)
      local text = logged(function()
        C.lc_operator_failed(op, C.LC_STAGE_VALUE_CONVERTER, "org.example.Conv", r, nil, nil, failure(C.LC_DATA, "bad"))
      end)
      assert.matches("ERROR .*Error encountered in task c%-0%. Executing stage 'VALUE_CONVERTER' with class "
        .. "'org%.example%.Conv'%. org%.apache%.kafka%.connect%.errors%.DataException: bad", text)
      C.lc_operator_close(op)
      op = operator({ ["errors.log.enable"] = "true", ["errors.log.include.messages"] = "true",
        ["errors.tolerance"] = "all" }, true)
      r.u.snk.topic, r.u.snk.partition, r.u.snk.offset = "orig", 3, 9
      r.timestamp, r.timestamp_type = 1700000000001LL, 1
      text = logged(function()
        C.lc_operator_failed(op, C.LC_STAGE_TASK_PUT, "org.example.Conv", r, nil, nil, failure(C.LC_DATA, "bad"))
      end)
      assert.matches("with class 'org.example.Conv', where consumed record is {topic='orig', partition=3, offset=9, "
        .. "timestamp=1700000000001, timestampType=CreateTime}. ", text, 1, true)
      C.lc_operator_close(op)
    end)

    it("shows a source record as Java does", function()
      local p = C.lc_source_partition_new('{"filename":"/tmp/x"}', 21)
      b.offset_field = "position"
      r.u.src.partition = p
      r.u.src.offset.type, r.u.src.offset.u.i = C.LC_INT64, 4
      r.value = ffi.new("lc_value_t", { type = C.LC_STRING, len = 1 })
      r.value.u.s = "x"
      r.value_schema = C.lc_schema_string
      r.timestamp = 1795993533544LL
      local out = ffi.new "lc_buf_t"
      C.lc_record_describe(r, false, out)
      assert.equal("SourceRecord{sourcePartition={filename=/tmp/x}, sourceOffset={position=4}} ConnectRecord{topic='t', "
        .. "kafkaPartition=null, key=null, keySchema=null, value=x, valueSchema=Schema{STRING}, "
        .. "timestamp=1795993533544, headers=ConnectHeaders(headers=)}", ffi.string(out.p))
      C.lc_buf_free(out)
      r.u.src.partition = nil
      C.lc_source_partition_unref(p)
    end)
  end)
end)
