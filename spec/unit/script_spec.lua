-- Scripts in their roles, driven through script.h with a host made here.
local k = require "spec.support.connect"
local C, ffi = k.C, k.ffi

local scripts, sets

local function script(role, source, host, modules)
  local plugin, set = k.plugin(source, modules)
  local s = k.script(plugin, role, host)
  scripts[#scripts + 1], sets[#sets + 1] = s, set
  return s
end

local function source(body, host)
  return script("source", [[
    local connect = require "connect"
    local Task = {}
    ]] .. body .. [[
    return connect.source { name = "S", task = Task, config = {
      { "n", type = "int", default = 3 }, { "flag", type = "boolean", default = false },
      { "list", type = "list", default = "" }, { "big", type = "long", default = 1 },
      { "ratio", type = "double", default = 0.5 }, { "text" }, { "secret", type = "password" } } }]], host)
end

local function sink(body, host)
  return script("sink", [[
    local connect = require "connect"
    local Task = {}
    ]] .. body .. [[
    return connect.sink { name = "K", task = Task, config = { { "out", default = "" } } }]], host)
end

-- Runs `code` (a list of records, or a value) in poll; the batch.
local function poll_of(code, host)
  local s = source("function Task:poll() " .. code .. " end", host)
  s:start {}
  return s:poll()
end

local function failure(fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  return err
end

describe("script", function()
  before_each(function() scripts, sets = {}, {} end)
  after_each(function()
    for _, s in ipairs(scripts) do s:free() end
    scripts, sets = nil, nil
    collectgarbage()
  end)

  describe("source task", function()
    it("gives nothing, an empty list or records", function()
      local s = source [[
        local polls = 0
        function Task:poll()
          polls = polls + 1
          if polls == 2 then return {} end
          if polls == 3 then return { { topic = "t", value = "x" } } end
        end]]
      s:start {}
      assert.is_nil(s:poll())
      assert.is_nil(s:poll())
      local b = s:poll()
      assert.equal(1, b.n)
      assert.equal("x", k.value(b.records[0]))
      assert.is_true(b.records[0].value_schema == nil)
      assert.equal(-1, b.records[0].partition)
    end)

    it("fills every field of a record", function()
      local b = poll_of [[return {
        { topic = "a", partition = 3, key = 7, value = true, timestamp = 1600000000000, key_schema = "int32",
          value_schema = "optional_boolean", headers = { { "h1", "v" }, { name = "h2", value = 5, schema = "int8" } },
          source_partition = { z = "p", a = 1 }, source_offset = { pos = 12, name = "n" } },
        { topic = "a" }, { topic = "b" } }]]
      local r = b.records[0]
      assert.equal("a", ffi.string(r.topic))
      assert.is_true(r.topic == b.records[1].topic)
      assert.equal(3, r.partition)
      assert.same({ C.LC_INT32, 7 }, { r.key.type, tonumber(r.key.u.i) })
      assert.same({ C.LC_BOOLEAN, 1 }, { r.value.type, tonumber(r.value.u.i) })
      assert.is_true(r.value_schema.optional)
      assert.equal(1600000000000, tonumber(r.timestamp))
      assert.equal(2, r.nheaders)
      assert.same({ "h1", "h2" }, { ffi.string(r.headers[0].name), ffi.string(r.headers[1].name) })
      assert.equal(C.LC_INT8, r.headers[1].value.type)
      assert.equal('{"a":1,"z":"p"}', ffi.string(r.u.src.partition.json))
      assert.equal('{"name":"n","pos":12}', k.offset(r))
      assert.is_true(b.records[1].u.src.partition == nil)
    end)

    it("has one partition object for equal partitions, over batches", function()
      local s = source [[function Task:poll()
        return { { topic = "t", source_partition = { a = 1, b = "x" }, source_offset = { o = 1 } },
          { topic = "t", source_partition = { b = "x", a = 1 }, source_offset = { o = 2 } },
          { topic = "t", source_partition = { b = "y", a = 1 }, source_offset = { o = 3 } } } end]]
      s:start {}
      local b1, b2 = s:poll(), s:poll()
      local p = b1.records[0].u.src.partition
      assert.is_true(p == b1.records[1].u.src.partition)
      assert.is_true(p ~= b1.records[2].u.src.partition)
      assert.is_true(p == b2.records[0].u.src.partition)
    end)

    it("writes values of every kind", function()
      local b = poll_of [[
        local json = connect.json.decode
        local function v(x) return { topic = "t", value = x } end
        return { v(nil), v(connect.null), v(12), v(1.5), v(connect.float(2)), v(-0.0), v(2^53), v(2^60),
          v(json("9007199254740993")), v("text"), v(connect.bytes "\0\1"), v { 1, connect.null, 3 }, v(connect.array {}), v {},
          v { b = 1, a = { x = true } }, v(connect.map { k = 1 }), v(connect.data.timestamp(5)), v(json '{"z":1,"a":[1.0,2]}') }]]
      local types, ints = {}, {}
      for i = 0, b.n - 1 do types[i + 1], ints[i + 1] = b.records[i].value.type, b.records[i].value.u.i end
      assert.same({ C.LC_NULL, C.LC_NULL, C.LC_INT64, C.LC_FLOAT64, C.LC_FLOAT64, C.LC_FLOAT64, C.LC_INT64, C.LC_FLOAT64,
        C.LC_INT64, C.LC_STRING, C.LC_BYTES, C.LC_ARRAY, C.LC_ARRAY, C.LC_MAP, C.LC_MAP, C.LC_MAP, C.LC_TIMESTAMP,
        C.LC_MAP }, types)
      assert.is_true(ints[9] == 9007199254740993LL)
      local list = b.records[11].value
      assert.same({ 3, C.LC_NULL, 3 }, { list.len, list.u.items[1].type, tonumber(list.u.items[2].u.i) })
      assert.equal(0, b.records[12].value.len)
      local map = b.records[14].value -- plain tables are written sorted
      assert.same({ "a", C.LC_MAP, "b" }, { ffi.string(map.u.items[0].u.s, 1), map.u.items[1].type,
        ffi.string(map.u.items[2].u.s, 1) })
      assert.equal("z", ffi.string(b.records[17].value.u.items[0].u.s, 1)) -- maps in their order
    end)

    it("writes structs by their schema, with defaults of optional fields", function()
      local b = poll_of [[
        local S = connect.schema
        local inner = S.struct { { "x", "int32" }, optional = true }
        local schema = S.struct { { "id", "int64" }, { "name", "string", optional = true }, { "in", inner },
          { "tags", S.array "string" }, { "when", S.timestamp() }, name = "my.Order", version = 2 }
        return { { topic = "t", value_schema = schema,
          value = { id = 1, ["in"] = { x = 5 }, tags = { "a" }, when = connect.data.timestamp(77) } } }]]
      local r = b.records[0]
      assert.same({ C.LC_STRUCT, "my.Order", 2, 5 }, { r.value.type, ffi.string(r.value_schema.name), r.value_schema.version,
        r.value_schema.nfields })
      local f = r.value.u.st.fields
      assert.same({ C.LC_INT64, C.LC_NULL, C.LC_STRUCT, C.LC_ARRAY, C.LC_TIMESTAMP }, { f[0].type, f[1].type, f[2].type,
        f[3].type, f[4].type })
      assert.equal(77, tonumber(f[4].u.i))
    end)

    describe("is told which record is wrong:", function()
      local cases = {
        ["no topic"] = { "{ { topic = 't' }, { value = 1 } }", "record 2: topic: a text expected, got nil" },
        ["empty topic"] = { "{ { topic = '' } }", "record 1: topic: must not be empty" },
        ["NUL in topic"] = { "{ { topic = 'a\\0b' } }", "record 1: topic: must not contain a NUL character" },
        ["not a table"] = { "{ 5 }", "record 1: record: a table expected, got number" },
        ["no list"] = { "{ topic = 't', value = 1 }", "poll must return a list of records" },
        ["a text"] = { "'x'", "poll must return nil, a list of records or a batch" },
        ["int8 range"] = { "{ { topic = 't', value = 300, value_schema = 'int8' } }",
          "record 1: value: 300 does not fit int8" },
        ["int fraction"] = { "{ { topic = 't', key = 1.5, key_schema = 'int32' } }", "record 1: key: 1.5 does not fit int32" },
        ["text as int"] = { "{ { topic = 't', value = 'x', value_schema = 'int32' } }",
          "record 1: value: int32 expected, got string" },
        ["null"] = { "{ { topic = 't', value_schema = 'string' } }",
          "record 1: value: null used for required value, schema type: STRING" },
        ["schema name"] = { "{ { topic = 't', value = 1, value_schema = 'integer' } }", "no schema is named integer" },
        ["function"] = { "{ { topic = 't', value = print } }", "a function cannot be a value" },
        ["itself"] = { "(function() local t = {} t.t = t return { { topic = 't', value = t } } end)()",
          "nested deeper than 200 levels" },
        ["field"] = { "{ { topic = 't', value = { id = 1, x = 2 }, value_schema = connect.schema.struct { { 'id', 'int8' } } } }",
          "x is not a valid field name" },
        ["partition"] = { "{ { topic = 't', source_partition = 'x' } }", "record 1: source_partition: a table expected" },
        ["headers"] = { "{ { topic = 't', headers = { 'x' } } }", "record 1: headers: a list of {name, value} expected" },
        ["a hole"] = { "setmetatable({ { topic = 't', value = 1 }, nil, { topic = 't', value = 3 } }, nil)",
          "poll must return a list of records without holes: item 2 is nil, and 2 items are there" },
        ["a proxy"] = { "setmetatable({}, { __index = function() return { topic = 't', value = 1 } end })",
          "poll must return a plain list of records, not an object" },
        ["float32 beyond"] = { "{ { topic = 't', value = 1e300, value_schema = 'float32' } }", "is beyond float32" },
        ["mixed keys"] = { "{ { topic = 't', value = { a = 1, [5] = 2 } } }", "use connect.map" },
        ["holes"] = { "{ { topic = 't', value = connect.array { [5000000] = 1 } } }", nil },
      }
      for name, case in pairs(cases) do
        if case[2] then
          it(name, function()
            local err = failure(poll_of, "return " .. case[1])
            assert.equal("fatal", err.kind)
            assert.is_truthy(err.message:find(case[2], 1, true), err.message)
          end)
        end
      end
    end)

    it("passes a batch of lines through without touching it", function()
      local dir = k.tmpdir()
      k.write(dir .. "/f", "a\nb\n")
      local s = script("source", [[
        local connect, lines = require "connect", require "connect.lines"
        local Task = {}
        function Task:start(ctx) self.r = lines.reader { file = ctx.config.file, topic = "x" } end
        function Task:poll() return self.r:poll() end
        return connect.source { name = "L", task = Task, config = { { "file" } } }]])
      s:start { file = dir .. "/f" }
      local b = s:poll()
      assert.same({ "a", "b" }, { k.value(b.records[0]), k.value(b.records[1]) })
      assert.equal(1, b.refs)
      assert.is_nil(s:poll())
      k.rm(dir)
    end)

    it("sees its config parsed", function()
      local b
      local s = source [[
        function Task:start(ctx) self.c = ctx.config end
        function Task:poll()
          local c = self.c
          return { { topic = "t", value = table.concat({ type(c.n), c.n, tostring(c.flag), #c.list, c.list[2], c.ratio,
            connect.tostring(c.big), tostring(c.text), c.secret, c.other, c.name }, "|") } }
        end]]
      s:start { n = "42", flag = "TRUE", list = "a, b ,c", big = "9007199254740993", ratio = "2.25", secret = "pw",
        other = "raw", name = "me" }
      b = s:poll()
      assert.equal("number|42|true|3|b|2.25|9007199254740993|nil|pw|raw|me", k.value(b.records[0]))
      local err = failure(s.start, s, { n = "x" })
      assert.equal("Invalid value x for configuration n: Not a number of type INT", err.message)
      assert.equal("org.apache.kafka.common.config.ConfigException", err.class)
    end)

    it("reads offsets by canonical partitions, with all digits", function()
      local asked = {}
      local b = poll_of([[
        local o = self.ctx.offsets
        local a = o:get { z = 1, a = "x" }
        local many = o:get_many { { n = 1 }, { n = 2 } }
        return { { topic = "t", value = connect.tostring(a.position) .. "|" .. connect.tostring(a.big) .. "|"
          .. tostring(o:get { n = 3 }) .. "|" .. tostring(many[1] == connect.null) .. "|" .. many[2].position } }
        end function Task:start(ctx) self.ctx = ctx]], {
        offset_get = function(json)
          asked[#asked + 1] = json
          if json == '{"a":"x","z":1}' then return '{"position":36,"big":9007199254740993}' end
          if json == '{"n":2}' then return '{"position":5}' end
        end,
      })
      assert.equal("36|9007199254740993|nil|true|5", k.value(b.records[0]))
      assert.same({ '{"a":"x","z":1}', '{"n":1}', '{"n":2}', '{"n":3}' }, asked)
    end)

    it("hears of commits when it wants to", function()
      local s = source [[
        local seen = {}
        function Task:poll()
          if #seen > 0 then return { { topic = "t", value = table.concat(seen, ",") } } end
          return { { topic = "t", value = "v", source_partition = { p = 1 }, source_offset = { o = 9 } } }
        end
        function Task:commit() seen[#seen + 1] = "commit" end
        function Task:commit_record(r, m)
          seen[#seen + 1] = r.topic .. ":" .. r.value .. ":" .. r.source_partition.p .. ":" .. r.source_offset.o
            .. (m and ("@%s-%d:%d"):format(m.topic, m.partition, m.offset) or "")
        end]]
      s:start {}
      local b = s:poll()
      assert.is_true(C.lc_script_has_commit_record(s.s))
      assert.equal(0, C.lc_script_commit_record(s.s, b.records, ffi.new("lc_delivery_t", 3, 5000000000), nil))
      assert.equal(0, C.lc_script_commit_record(s.s, b.records, nil, nil)) -- not sent
      assert.equal(0, C.lc_script_commit(s.s, nil))
      assert.equal("t:v:1:9@t-3:5000000000,t:v:1:9,commit", k.value(s:poll().records[0]))
    end)

    it("stop is called once, also after a failed start", function()
      local host_log = k.logged(function()
        local s = source [[
          function Task:start(ctx) self.log = ctx.log.info error "no" end
          function Task:poll() end
          function Task:stop() self.log "stopped" end]]
        failure(s.start, s, {})
        s:stop()
        s:stop()
        local never = source [[function Task:poll() end function Task:stop() error "never started" end]]
        never:stop()
      end)
      local _, n = host_log:gsub("stopped", "")
      assert.equal(1, n)
    end)
  end)

  describe("errors", function()
    it("keep their kind", function()
      for kind, code in pairs { retriable = "connect.retriable('later')", data = "connect.data_error('bad')",
        fatal = "connect.fatal('broken')" } do
        local err = failure(poll_of, "error(" .. code .. ")")
        assert.equal(kind, err.kind)
        assert.matches("^%a+$", err.message)
      end
    end)
    it("of any other sort are fatal, with the Lua traceback", function()
      local err = failure(poll_of, "local t = nil; return t.x")
      assert.equal("fatal", err.kind)
      assert.matches("init.lua:%d+: attempt to index local 't'", err.message)
      assert.matches("stack traceback:.*init.lua:%d+: in function 'poll'", err.detail)
      err = failure(poll_of, "error { code = 5 }")
      assert.equal("error object is a table value", err.message)
      err = failure(poll_of, "error()")
      assert.equal("fatal", err.kind)
    end)
    it("in a traceback handler or out of memory do not end the program", function()
      local err
      for _, body in ipairs { "error 'again'", "return nil", "return {}" } do
        err = failure(poll_of, "error(setmetatable({}, { __tostring = function() " .. body .. " end }))")
        assert.equal("fatal", err.kind)
        assert.equal("error object is a table value", err.message)
        assert.matches("stack traceback:.*in function 'poll'", err.detail)
      end
      err = failure(poll_of, "local function f() return f() + 1 end return f()")
      assert.matches("stack overflow", err.message)
    end)
    it("that may be retried at a time tell the host", function()
      local ms
      local err = failure(poll_of, "error(connect.retriable('later', { after_ms = 250 }))", { timeout = function(t) ms = t end })
      assert.equal("retriable", err.kind)
      assert.equal(250, ms)
    end)
  end)

  describe("context", function()
    it("logs with formats, also int64", function()
      local log = k.logged(function()
        poll_of [[local l = self.ctx.log
          l.info("%s and %d", "a", 5) l.warn("100%") l.error("%s", connect.int64 "9007199254740993") l.debug("hidden")
          print("x", 1)
          end function Task:start(ctx) self.ctx = ctx]]
      end)
      assert.matches("INFO%s+.*SCRIPT%s+a and 5\n", log)
      assert.matches("WARN .* 100%%\n", log)
      assert.matches("9007199254740993\n", log)
      assert.not_matches("hidden", log)
      assert.matches("x\t1", log)
    end)
    it("logs a format that does not fit its arguments as it is", function()
      local log = k.logged(function()
        poll_of [[local l = self.ctx.log
          l.info("%s %d %q", "a") l.warn("%d", "x") l.error("%y %s", 1, nil)
          end function Task:start(ctx) self.ctx = ctx]]
      end)
      assert.matches("INFO .* %%s %%d %%q a\n", log)
      assert.matches("WARN .* %%d x\n", log)
      assert.matches("ERROR .* %%y %%s 1 nil\n", log)
    end)
    it("says which argument is wrong", function()
      for code, want in pairs {
        ["self.ctx:sleep 'x'"] = "ctx:sleep: milliseconds expected, got string",
        ["self.ctx:sleep()"] = "ctx:sleep: milliseconds expected, got nil",
        ["self.ctx:sleep(0/0)"] = "ctx:sleep: milliseconds expected, got nan",
        ["self.ctx.sleep(5)"] = "ctx:sleep: milliseconds expected, got nil",
      } do
        local err = failure(poll_of, code .. " end function Task:start(ctx) self.ctx = ctx")
        assert.equal("fatal", err.kind)
        assert.matches("init.lua:%d+: " .. want .. "$", err.message)
      end
    end)
    it("sleeps, but not when the task stops", function()
      local waker, stopping = ffi.new "lc_waker_t", ffi.new("int[1]", 0)
      C.lc_waker_init(waker)
      ffi.cdef "int64_t lc_now_ms(void);"
      local body = [[local early = self.ctx:sleep(%d)
        return { { topic = "t", value = tostring(early) .. tostring(self.ctx:stopping()) } }
        end function Task:start(ctx) self.ctx = ctx]]
      local t0 = C.lc_now_ms()
      local b = poll_of(body:format(60), { stop = waker, stopping = stopping })
      assert.equal("falsefalse", k.value(b.records[0]))
      assert.is_true(C.lc_now_ms() - t0 >= 59)
      C.lc_waker_wake(waker)
      stopping[0] = 1
      t0 = C.lc_now_ms()
      b = poll_of(body:format(60000), { stop = waker, stopping = stopping })
      assert.equal("truetrue", k.value(b.records[0]))
      assert.is_true(C.lc_now_ms() - t0 < 30000)
      C.lc_waker_close(waker)
    end)
    it("of a sink reaches its consumer", function()
      local calls = {}
      local function note(name) return function(x) calls[#calls + 1] = { name, x } end end
      local s = sink([[
        function Task:start(ctx)
          local a = ctx:assignment()
          ctx:pause { a[1], "t-2" } ctx:resume "a-b-3" ctx:seek("t-1", 77) ctx:timeout(500) ctx:request_commit()
          ctx.log.info("%s", a[2].key)
        end
        function Task:put() end]], { pause = note "pause", resume = note "resume", seek = note "seek", timeout = note "timeout",
        request_commit = note "commit", assignment = { { "t", 1 }, { "t", 2 } } })
      local log = k.logged(function() s:start {} end)
      assert.matches("t%-2", log)
      assert.same({ { "pause", { { topic = "t", partition = 1, offset = -1001 }, { topic = "t", partition = 2, offset = -1001 } } },
        { "resume", { { topic = "a-b", partition = 3, offset = -1001 } } }, { "seek", { topic = "t", partition = 1, offset = 77 } },
        { "timeout", 500 }, { "commit" } }, calls)
    end)
    it("says what is not there for a role", function()
      local err = failure(poll_of, "self.ctx:pause 't-1' end function Task:start(ctx) self.ctx = ctx")
      assert.matches("ctx:pause%(%) is not there for this kind of plugin", err.message)
    end)
  end)

  describe("sink task", function()
    it("gets a real list of records that read their fields when touched", function()
      local log = k.logged(function()
        local s = sink [[
          function Task:start(ctx) self.log = ctx.log.info end
          function Task:put(records)
            self.log("n=%d", #records)
            for i, r in ipairs(records) do
              self.log("%d %s %d %s %s %s", i, r.topic, r.offset, r.tp, tostring(r.value), tostring(r.key == connect.null))
            end
          end]]
        s:start {}
        s:put(k.sink_batch({ "one", nil }, 2))
        s:put(k.sink_batch {})
      end)
      assert.matches("n=2\n.*1 t 0 t%-0 one true\n.*2 t 1 t%-0 null true\n.*n=0", log)
    end)

    it("gets the whole batch with put_batch", function()
      local log = k.logged(function()
        local s = sink [[
          function Task:start(ctx) self.log = ctx.log.info end
          function Task:put_batch(batch)
            self.log("n=%d %s", #batch, batch[2].value)
            for i, r in batch:each() do self.log("each %d %s", i, r.value) end
            for i, r in ipairs(batch) do self.log("ipairs %d %s", i, r.value) end
            assert(batch[3] == nil and batch[0] == nil)
          end]]
        s:start {}
        s:put(k.sink_batch { "a", "b" })
      end)
      assert.matches("n=2 b.*each 1 a.*each 2 b.*ipairs 1 a.*ipairs 2 b", log)
    end)

    it("decodes values of every type", function()
      local b = k.sink_batch { "placeholder" }
      local doc = '{"i":1,"f":1.5,"big":9007199254740993,"s":"x","n":null,"l":[1,[]],"m":{}}'
      local root, err = ffi.new "lc_json_t *[1]", k.core.err()
      assert.equal(0, C.lc_json_parse(doc, #doc, 0, root, err))
      local function set(v, node)
        local t = tonumber(node.type)
        if t == C.LC_J_STRING then v.type, v.len, v.u.s = C.LC_STRING, node.len, C.lc_arena_dup(b.arena, node.s, node.len)
        elseif t == C.LC_J_NUMBER and node.integral then
          v.type, v.u.i = C.LC_INT64, C.lc_json_int64(node, ffi.new "bool[1]")
        elseif t == C.LC_J_NUMBER then v.type, v.u.f = C.LC_FLOAT64, C.lc_json_double(node)
        elseif t == C.LC_J_ARRAY or t == C.LC_J_OBJECT then
          local per = t == C.LC_J_OBJECT and 2 or 1
          local items = ffi.cast("lc_value_t *", C.lc_arena_more(b.arena, node.len * per * 16 + 16, 8))
          ffi.fill(items, node.len * per * 16 + 16)
          local child, i = node.child, 0
          while child ~= nil do
            if per == 2 then
              items[i].type, items[i].len = C.LC_STRING, child.key_len
              items[i].u.s = C.lc_arena_dup(b.arena, child.key, child.key_len)
              i = i + 1
            end
            set(items[i], child)
            i, child = i + 1, child.next
          end
          v.type, v.len, v.u.items = per == 2 and C.LC_MAP or C.LC_ARRAY, node.len, items
        end
      end
      set(b.records[0].value, root[0])
      C.lc_json_free(root[0])
      local log = k.logged(function()
        local s = sink [[
          function Task:start(ctx) self.log = ctx.log.info end
          function Task:put(records)
            local v = records[1].value
            assert(connect.is_map(v) and v.n == connect.null and connect.is_array(v.l) and connect.is_array(v.l[2]))
            assert(connect.is_map(v.m) and v.m:len() == 0)
            local keys = {}
            for key in v:pairs() do keys[#keys + 1] = key end
            self.log("%s %s", table.concat(keys, ","), connect.json.encode(v))
          end]]
        s:start {}
        s:put(b)
      end)
      assert.is_truthy(log:find("i,f,big,s,n,l,m " .. doc, 1, true), log)
    end)

    it("says which records failed", function()
      local s = sink [[
        function Task:put(records)
          return { { index = 2, error = connect.data_error("no good") }, { index = 3, error = "plain" },
            { index = 1, error = connect.retriable("later") } }
        end]]
      s:start {}
      assert.same({ { index = 1, kind = "data", message = "no good" }, { index = 2, kind = "data", message = "plain" },
        { index = 0, kind = "retriable", message = "later" } }, s:put(k.sink_batch { "a", "b", "c" }))
    end)

    it("refuses failures that say nothing of a record: none is taken for delivered", function()
      local cases = {
        ["{ nil, { index = 2, error = 'x' } }"] = "without holes: item 1 is nil",
        ["{ index = 2, error = 'x' }"] = "this table has the key",
        ["{ { index = 0, error = 'x' } }"] = "index 0 is none of the 3 records",
        ["{ { index = 4, error = 'x' } }"] = "index 4 is none of the 3 records",
        ["{ { index = 1.5, error = 'x' } }"] = "index 1.5 is none of the 3 records",
        ["{ { index = 1 } }"] = "item 1 of the failures has no error",
        ["{ 1 }"] = "item 1 of the failures is not {index =, error =}",
        ["'x'"] = "got string",
      }
      for returned, text in pairs(cases) do
        local s = sink("function Task:put() return " .. returned .. " end")
        s:start {}
        local err = failure(function() s:put(k.sink_batch { "a", "b", "c" }) end)
        assert.is_truthy(err.message:find(text, 1, true), returned .. ": " .. err.message)
      end
    end)

    it("refuses offsets of pre_commit that are none, and leaves out those of other partitions", function()
      local cases = { ["5"] = "got number", ["{ ['t-0'] = 1.5 }"] = "is 1.5, not a whole number",
        ["{ ['t-0'] = 0 / 0 }"] = "not a whole number", ["{ ['t-0'] = 'x' }"] = "not a whole number",
        ["{ ['t-0'] = -1 }"] = "not a whole number" }
      for returned, text in pairs(cases) do
        local s = sink("function Task:put() end function Task:pre_commit() return " .. returned .. " end")
        s:start {}
        local err = failure(function() s:pre_commit { { "t", 0, 7 } } end)
        assert.is_truthy(err.message:find(text, 1, true), returned .. ": " .. err.message)
      end
    end)

    it("opens, closes and commits what it says", function()
      local log = k.logged(function()
        local s = sink [[
          function Task:start(ctx) self.log = ctx.log.info end
          function Task:open(tps) self.log("open %s %d", tps[1].key, tps[1].offset) end
          function Task:close(tps) self.log("close %s", tps[2].key) end
          function Task:put() end
          function Task:pre_commit(offsets) return { ["t-0"] = offsets["t-0"] - 5 } end]]
        s:start {}
        s:open { { "t", 0, 12 } }
        s:close { { "t", 0 }, { "a-b", 7 } }
        assert.same({ ["t-0"] = 15, ["t-1"] = false }, s:pre_commit { { "t", 0, 20 }, { "t", 1, 30 } })
      end)
      assert.matches("open t%-0 12.*close a%-b%-7", log)
    end)
    it("without pre_commit flushes and leaves the offsets; nil commits nothing", function()
      local log = k.logged(function()
        local s = sink [[
          function Task:start(ctx) self.log = ctx.log.info end
          function Task:put() end
          function Task:flush(offsets) self.log("flush %d", offsets["t-0"]) end]]
        s:start {}
        assert.same({ ["t-0"] = 20 }, s:pre_commit { { "t", 0, 20 } })
        s = sink [[function Task:put() end function Task:pre_commit() end]]
        s:start {}
        assert.same({ ["t-0"] = false }, s:pre_commit { { "t", 0, 20 } })
      end)
      assert.matches("flush 20", log)
    end)

    it("keeps a batch as long as a record of it is kept, not longer", function()
      local s = sink [[
        local kept = {}
        function Task:put(records)
          if records[1].value == "keep" then kept[#kept + 1] = records[1] end
          if records[1].value == "detach" then kept[#kept + 1] = records[1]:detach() end
          if records[1].value == "read" then
            for _, r in ipairs(kept) do assert(r.offset == 0 and r.value ~= nil and r.topic == "t") end
          end
          if records[1].value == "drop" then kept = {} end
          collectgarbage() collectgarbage()
        end]]
      s:start {}
      local kept, detached, plain = k.sink_batch { "keep", "x" }, k.sink_batch { "detach" }, k.sink_batch { "other" }
      for _, b in ipairs { kept, detached, plain } do s:put(b) end
      s:put(k.sink_batch { "read" })
      assert.same({ 2, 1, 1 }, { kept.refs, detached.refs, plain.refs })
      s:put(k.sink_batch { "drop" })
      s:put(k.sink_batch { "read" })
      assert.equal(1, kept.refs)
      local last = k.sink_batch { "keep" }
      s:put(last)
      assert.equal(2, last.refs)
      s:free()
      assert.equal(1, last.refs)
    end)

    it("lets go of a batch at once when put_batch looked at no record, or failed", function()
      local s = sink [[
        function Task:put_batch(batch) self.last = batch if #batch == 2 then error(connect.retriable "again") end end
        function Task:stop() return #self.last end]]
      s:start {}
      local b, bad = k.sink_batch { "a" }, k.sink_batch { "a", "b" }
      s:put(b)
      assert.equal(1, b.refs)
      assert.equal("retriable", failure(s.put, s, bad).kind)
      assert.equal(1, bad.refs)
      s:stop() -- an empty handle is harmless
    end)

    it("does not pin batches by its garbage: 2,000 batches of 100 kB, a record of each looked at", function()
      local s = sink [[function Task:put(records) self.n = (self.n or 0) + #records[1].value end]]
      s:start {}
      local text, live, most = ("x"):rep(100000), 0, 0
      local freed = ffi.cast("void (*)(void *)", function() live = live - 1 end)
      for _ = 1, 2000 do
        local b = k.sink_batch { text }
        b.on_free = freed
        live = live + 1
        most = math.max(most, live)
        s:put(b)
        C.lc_batch_unref(ffi.gc(b, nil))
      end
      assert.is_true(most < 300, most .. " batches were pinned")
      s:free()
      assert.equal(0, live)
      freed:free()
    end)

    it("may keep one record of each of 10,000 batches", function()
      local s = sink [[
        local kept = {}
        function Task:put(records)
          kept[#kept + 1] = records[1]
          if #kept == 10000 then
            for i, r in ipairs(kept) do assert(r.value == "v" .. i and r.offset == 0 and r.tp == "t-0") end
          end
        end]]
      s:start {}
      for i = 1, 10000 do
        local b = k.sink_batch { "v" .. i, "other" }
        s:put(b)
        C.lc_batch_unref(ffi.gc(b, nil))
      end
    end)
  end)

  describe("connector", function()
    local function connector(fields, host)
      return script("connector", [[local connect = require "connect"
        return connect.source { name = "C", task = { poll = print }, config = { { "files", type = "list", default = "" },
        { "n", type = "int", default = 1 } }, ]] .. fields .. " }", host)
    end
    it("has one task with its config by default", function()
      local s = connector ""
      assert.same({ { files = "a , b", other = "x" } }, s:task_configs({ files = "a , b", other = "x" }, 5))
    end)
    it("spreads a list; other keys stay as they are written", function()
      local s = connector "task_configs = function(config, max) return connect.spread('files', config.files, max) end"
      assert.same({ { files = "a,c", other = "x" }, { files = "b", other = "x" } },
        s:task_configs({ files = "a, b, c", other = "x" }, 2))
      assert.same({}, s:task_configs({ files = "" }, 2))
    end)
    it("may set, keep and remove keys", function()
      local s = connector [[task_configs = function(config, max)
        return { config, { n = config.n + 1, flag = true, other = connect.null } } end]]
      assert.same({ { files = "a , b", n = "007", other = "x" }, { files = "a , b", n = "8", flag = "true" } },
        s:task_configs({ files = "a , b", n = "007", other = "x" }, 2))
    end)
    it("starts, asks for new tasks, fails itself, stops", function()
      local calls = {}
      local s = connector([[start = function(self, ctx) self.x = ctx.config.n ctx:reconfigure() ctx:raise("gone") end,
        stop = function(self) assert(self.x == 4) error(connect.fatal("stopped " .. self.x)) end]], {
        reconfigure = function() calls[#calls + 1] = "reconfigure" end,
        raise = function(m) calls[#calls + 1] = m end,
      })
      s:start { n = "4" }
      assert.same({ "reconfigure", "gone" }, calls)
      assert.equal("stopped 4", failure(s.stop, s).message)
    end)
    it("fails with the causes of an error from C", function()
      local message, detail
      local s = connector([[start = function(_, ctx)
        ctx:raise(select(2, pcall(require("connect.lines").writer, "/nonexistent/x"))) end]], {
        raise = function(m, d) message, detail = m, d end,
      })
      s:start {}
      assert.equal("Couldn't find or create file '/nonexistent/x' for FileStreamSinkTask", message)
      assert.equal("Caused by: java.nio.file.NoSuchFileException: /nonexistent/x: No such file or directory\n", detail)
    end)
    it("must return a list of tables", function()
      local s = connector "task_configs = function() return 5 end"
      assert.matches("task_configs must return a list of tables", failure(s.task_configs, s, {}, 1).message)
      s = connector "task_configs = function() return { { a = print } } end"
      assert.matches("the value of a is a function", failure(s.task_configs, s, {}, 1).message)
    end)
  end)

  it("of the wrong kind or without poll is refused", function()
    local err = failure(script, "sink", "return require 'connect'.source { name = 'X', task = { poll = print } }")
    assert.matches("X is a source connector, not a sink", err.message)
    err = failure(script, "source", "return require 'connect'.source { name = 'X', task = {} }")
    assert.matches("has no poll", err.message)
  end)

  it("of a file has the clock's time on its records where it can be seen", function()
    local set = k.scan()
    local path = os.tmpname()
    local function stamped(config)
      k.write(path, "a\n")
      local s = k.script(k.find(set, "FileStreamSource"), "source", { offset_get = function() end })
      config.file, config.topic = path, "t"
      s:start(config)
      local b
      for _ = 1, 100 do
        b = s:poll()
        if b then break end
      end
      local stamp = tonumber(b.records[0].timestamp)
      b = nil -- luacheck: ignore
      collectgarbage()
      s:free()
      if stamp == -1 then return false end
      assert.is_true(math.abs(stamp / 1000 - os.time()) < 600, stamp)
      return true
    end
    local log, messages, letters = "errors.log.enable", "errors.log.include.messages", "errors.deadletterqueue.source.topic.name"
    assert.is_false(stamped {})
    assert.is_false(stamped { [log] = "true" })
    assert.is_false(stamped { [log] = "false", [messages] = "true" })
    assert.is_false(stamped { [letters] = "" })
    assert.is_false(stamped { transforms = "t", ["transforms.t.type"] = "org.apache.kafka.connect.transforms.Cast$Value" })
    assert.is_true(stamped { [log] = "true", [messages] = "true" })
    assert.is_true(stamped { [log] = " TRUE ", [messages] = "True" })
    assert.is_true(stamped { [letters] = "t-letters" })
    os.remove(path)
  end)

  it("costs little memory when idle", function()
    local set = k.scan()
    local s = k.script(k.find(set, "FileStreamSource"), "source", { offset_get = function() end })
    s:start { file = "/no/such", topic = "t" }
    collectgarbage()
    assert.is_true(tonumber(C.lc_script_memory(s.s)) < 400 * 1024)
    s:free()
  end)
end)
