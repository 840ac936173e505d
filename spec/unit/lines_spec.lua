-- The line reader and writer of core/file, through C: bytes in, values and positions out.
local k = require "spec.support.connect"
local golden = require "spec.support.golden"
local C, ffi, core = k.C, k.ffi, k.core

ffi.cdef [[
int mkfifo(const char *path, unsigned mode);
int open(const char *path, int flags, ...);
int close(int fd);
ssize_t write(int fd, const void *p, size_t n);
int dup(int fd);
int dup2(int a, int b);
int pipe(int fds[2]);
struct lc_spec_rlimit { unsigned long cur, max; };
int setrlimit(int what, const struct lc_spec_rlimit *r);
int getrlimit(int what, struct lc_spec_rlimit *r);
void *signal(int sig, void *handler);
int64_t lc_now_ms(void);
]]
local O_WRONLY, O_RDWR, O_NONBLOCK = 1, 2, 2048

local function fatal(err) error({ kind = ffi.string(C.lc_err_kind_name(err.kind)), message = core.msg(err) }, 0) end

local dir, path, waker, readers

local function reader(options)
  options = options or {}
  local conf = ffi.new "lc_line_reader_conf_t"
  local file, topic = options.file or path, "t"
  conf.path, conf.topic = file, topic
  if options.stdin then conf.path = nil end
  conf.position = options.position or 0
  conf.batch_size = options.batch_size or 2000
  conf.max_line = options.max_line or 0
  conf.skip_large = options.skip_large or false
  conf.timestamps = options.timestamps or false
  conf.stop = waker
  local r = ffi.gc(C.lc_line_reader_new(conf), C.lc_line_reader_free)
  readers[#readers + 1] = r
  return r
end

local function poll(r)
  local out, err = ffi.new "lc_batch_t *[1]", core.err()
  if C.lc_line_reader_poll(r, out, err) < 0 then fatal(err) end
  if out[0] ~= nil then return ffi.gc(out[0], C.lc_batch_unref) end
end

local function values(b)
  local out = {}
  for i = 0, b and b.n - 1 or -1 do out[i + 1] = k.value(b.records[i]) end
  return out
end

-- What is there now: one empty poll ends it.
local function drain(r)
  return k.drain(function() return poll(r) end)
end

-- Polls (each may wait a second) until `n` more values came.
local function expect(r, n)
  local out, last = {}, nil
  local deadline = C.lc_now_ms() + 60000
  while #out < n do
    assert(C.lc_now_ms() < deadline, "lines did not come")
    local b = poll(r)
    if b then
      for _, v in ipairs(values(b)) do out[#out + 1] = v end
      last = k.offset(b.records[b.n - 1])
    end
  end
  return out, last
end

describe("lines", function()
  before_each(function()
    dir = k.tmpdir()
    path = dir .. "/f.txt"
    readers = {}
    waker = ffi.new "lc_waker_t"
    assert(C.lc_waker_init(waker) == 0)
  end)
  after_each(function()
    readers = nil
    collectgarbage()
    C.lc_waker_close(waker)
    k.rm(dir)
  end)

  describe("of recorded files", function()
    -- Bytes of a JSON string may be given as base64.
    local function bytes_of(v)
      if type(v) ~= "table" then return v end
      local p = io.popen("printf %s '" .. v.base64 .. "' | base64 -d")
      local s = p:read "*a"
      p:close()
      return s
    end
    -- What a converter makes of the bytes: U+FFFD for malformed UTF-8.
    local function utf8(s)
      local buf = ffi.new "lc_buf_t"
      C.lc_utf8_append(buf, s, #s)
      local out = buf.p ~= nil and ffi.string(buf.p, buf.len) or ""
      C.lc_buf_free(buf)
      return out
    end
    local seen = 0
    for _, case in ipairs(golden.cases "connectors/source.jsonl") do
      local made = type(case.file_bytes) == "string" and case.file_bytes:find "bytes: see"
      local converter = (case.config or {})["value.converter"] or ""
      local plain = converter:find "StringConverter" and not case.config.transforms
      if case.file_bytes and case.file_bytes ~= golden.null and not made and plain and case.config["producer.override.acks"] == nil then
        seen = seen + 1
        it(case.name, function()
          local bytes = bytes_of(case.file_bytes)
          k.write(path, bytes)
          local got, last = drain(reader { batch_size = tonumber(case.config["batch.size"]) })
          local want = {}
          for i, r in ipairs(case.records) do want[i] = r.value end
          if case.name == "batch-2" then want = { "1", "2", "3", "4", "5" } end -- Java keeps 3, 4 and 5 back
          for i, v in ipairs(got) do got[i] = utf8(v) end
          assert.same(want, got)
          if #want > 0 then
            -- Java counts UTF-16 units; the position is where the last complete line ends, in bytes
            local complete = bytes:match "^(.*[\n\r])" or ""
            if complete == bytes and bytes:sub(-1) == "\r" then complete = bytes:sub(1, -2):match "^(.*[\n\r])" end
            assert.equal(('{"position":%d}'):format(#complete), last)
          end
        end)
      end
    end
    it("were there", function() assert.is_true(seen >= 10 or os.getenv "GOLDEN" ~= nil) end)
  end)

  it("end with \\n, \\r\\n or \\r; the byte positions are behind the whole end", function()
    k.write(path, "a\nbb\r\nccc\r\r\n\ndddd\n")
    local b = poll(reader())
    assert.same({ "a", "bb", "ccc", "", "", "dddd" }, values(b))
    local offsets = {}
    for i = 0, 5 do offsets[i + 1] = k.offset(b.records[i]) end
    assert.same({ '{"position":2}', '{"position":6}', '{"position":10}', '{"position":12}', '{"position":13}',
      '{"position":18}' }, offsets)
    assert.equal('{"filename":"' .. path .. '"}', ffi.string(b.records[0].u.src.partition.json))
    assert.equal("t", ffi.string(b.records[0].topic))
    assert.equal(-1, tonumber(b.records[0].timestamp))
    assert.is_true(b.records[0].value_schema == ffi.cast("const lc_schema_t *", C.lc_schema_string))
    assert.is_true(b.records[0].key_schema == nil)
  end)

  it("are the same wherever reads cut them", function()
    local r = reader()
    local text = "one\r\ntwo\rthree\n\r\nfour\n\n\rfive\r\n"
    local got, last = {}, nil
    for i = 1, #text do
      k.write(path, text:sub(i, i), "ab")
      -- the reader looks when it is polled after its interval; a fresh reader at its position looks at once
      r = reader { position = tonumber(C.lc_line_reader_position(r)) }
      for _, v in ipairs(values(poll(r))) do got[#got + 1] = v end
      last = tonumber(C.lc_line_reader_position(r))
    end
    assert.same({ "one", "two", "three", "", "four", "", "", "five" }, got)
    assert.equal(#text, last)
  end)

  it("hold back a \\r until the next byte, and a line without end", function()
    k.write(path, "a\nb")
    local r = reader()
    assert.same({ "a" }, (drain(r)))
    k.write(path, "c\r", "ab")
    assert.is_nil(poll(r))
    k.write(path, "\nd\n", "ab")
    local got, last = expect(r, 2)
    assert.same({ "bc", "d" }, got)
    assert.equal('{"position":8}', last)
  end)

  it("come at once when they are complete: no batch leaves any behind", function()
    local lines = {}
    for i = 1, 5000 do lines[i] = "line " .. i end
    k.write(path, table.concat(lines, "\n") .. "\n")
    local r = reader { batch_size = 7 }
    local t0 = C.lc_now_ms()
    local got = drain(r)
    assert.same(lines, got)
    assert.is_true(C.lc_now_ms() - t0 < 60000) -- a second each would be 700
    k.write(path, "one\n")
    local first = poll(reader { batch_size = 0 }) -- as Java: at least one
    assert.equal(1, first.n)
  end)

  it("fill a batch from as many blocks as it takes, and no more than it may have", function()
    local lines = {}
    for i = 1, 12345 do lines[i] = ("%d:"):format(i) .. ("x"):rep(90 + i % 20) end -- 1.3 MB, blocks of 256 kB
    k.write(path, table.concat(lines, "\n") .. "\n")
    local r, sizes, got, held = reader { batch_size = 5000 }, {}, {}, {}
    for b in function() return poll(r) end do
      sizes[#sizes + 1] = b.n
      held[#held + 1] = b
    end
    assert.same({ 5000, 5000, 2345 }, sizes)
    r = nil -- batches keep their blocks
    collectgarbage()
    for _, b in ipairs(held) do
      for _, v in ipairs(values(b)) do got[#got + 1] = v end
    end
    assert.same(lines, got)
    assert.equal(('{"position":%d}'):format(#table.concat(lines, "\n") + 1), k.offset(held[3].records[held[3].n - 1]))
  end)

  it("end a batch before a line that is too large, and say so next", function()
    local lines = {}
    for i = 1, 4000 do lines[i] = ("%d:"):format(i) .. ("x"):rep(95) end
    lines[3000] = ("y"):rep(300000)
    k.write(path, table.concat(lines, "\n") .. "\n")
    local r = reader { batch_size = 100000, max_line = 200000 }
    assert.equal(2999, poll(r).n)
    assert.has_error(function() poll(r) end)
    r = reader { batch_size = 100000, max_line = 200000, skip_large = true }
    local first = poll(r)
    assert.equal(2999, first.n)
    assert.equal(1000, poll(r).n)
  end)

  it("of many blocks keep bytes and positions, while batches of before are still held", function()
    local parts, size = {}, 0
    for i = 1, 60000 do
      parts[i] = ("%d:"):format(i) .. ("x"):rep(i % 37)
      size = size + #parts[i] + 1
    end
    k.write(path, table.concat(parts, "\n") .. "\n")
    local r, held, n, at = reader(), {}, 0, 0
    while true do
      local b = poll(r)
      if not b then break end
      held[#held + 1] = b
    end
    for _, b in ipairs(held) do
      for i = 0, b.n - 1 do
        n = n + 1
        at = at + #parts[n] + 1
        assert(k.value(b.records[i]) == parts[n] and tonumber(b.records[i].u.src.offset.u.i) == at)
      end
    end
    assert.equal(60000, n)
    assert.equal(size, at)
  end)

  it("may be 100 MB long, holding any bytes", function()
    local piece = ("\0\1\255\254abc"):rep(150000)
    local f = io.open(path, "wb")
    f:write "before\n"
    for _ = 1, 100 do f:write(piece) end
    f:write "\nafter\n"
    f:close()
    local r = reader { max_line = 200 * 1024 * 1024 }
    local sizes, last = {}, nil
    local t0 = C.lc_now_ms()
    while #sizes < 3 do
      local b = poll(r)
      for i = 0, b and b.n - 1 or -1 do
        sizes[#sizes + 1] = tonumber(b.records[i].value.len)
        last = k.offset(b.records[i])
        if #sizes == 2 then
          assert.equal(piece, ffi.string(b.records[i].value.u.s + #piece * 99, #piece))
        end
      end
    end
    assert.same({ 6, #piece * 100, 5 }, sizes)
    assert.equal(('{"position":%d}'):format(7 + #piece * 100 + 1 + 6), last)
    assert.is_true(C.lc_now_ms() - t0 < 60000, "rescanning")
  end)

  describe("above max.request.size", function()
    before_each(function() k.write(path, "before\n" .. ("y"):rep(1000001) .. "\r\nafter\n") end)

    it("fail the task with size, file and position, after the lines before", function()
      local r = reader { max_line = 1000000 }
      assert.same({ "before" }, values(poll(r)))
      for _ = 1, 2 do
        local ok, err = pcall(poll, r)
        assert.is_false(ok)
        assert.equal("fatal", err.kind)
        assert.equal("A line of 1000001 bytes at position 7 of " .. path
          .. " is larger than max.request.size (1000000 bytes)", err.message)
      end
    end)
    it("are skipped with a warning when errors are tolerated", function()
      local r = reader { max_line = 1000000, skip_large = true }
      local got, last
      local log = k.logged(function() got, last = drain(r) end)
      assert.same({ "before", "after" }, got)
      assert.equal('{"position":1000016}', last)
      assert.matches("A line of 1000001 bytes at position 7 of .* skipped", log)
    end)
    it("are found before their end has come", function()
      k.write(path, ("z"):rep(3000000))
      local ok, err = pcall(poll, reader { max_line = 1000000 })
      assert.is_false(ok)
      assert.matches("^A line of at least %d+ bytes at position 0 of", err.message)
    end)
    it("pass when just as long as allowed", function()
      k.write(path, ("z"):rep(1000) .. "\r\n" .. ("z"):rep(1001) .. "\n")
      assert.same({ 1000 }, { #values(poll(reader { max_line = 1000 }))[1] })
    end)
  end)

  it("start at a stored position, in bytes", function()
    k.write(path, "ünï\n日本\n😀\nab\n")
    local r = reader()
    local _, last = drain(r)
    assert.equal('{"position":21}', last)
    assert.same({ "😀", "ab" }, (drain(reader { position = 13 })))
  end)

  it("start at 0 with a warning when the position is beyond the file", function()
    k.write(path, "a\n")
    local r = reader { position = 100 }
    local got
    local log = k.logged(function() got = drain(r) end)
    assert.same({ "a" }, got)
    assert.matches("is shorter %(2 bytes%) than the stored position 100", log)
  end)

  it("start at 0 with a warning when the position is negative", function()
    k.write(path, "a\n")
    local r = reader { position = -5 }
    local got, last
    local log = k.logged(function() got, last = drain(r) end)
    assert.same({ "a" }, got)
    assert.equal('{"position":2}', last)
    assert.matches("stored position %-5 of file " .. path:gsub("%p", "%%%0") .. " is negative", log)
  end)

  it("of a file that appears later come; until then a warning, no error", function()
    local r = reader()
    local log = k.logged(function() assert.is_nil(poll(r)) end)
    assert.matches("WARN .*Couldn't find file " .. path:gsub("%p", "%%%0")
      .. " for FileStreamSourceTask, sleeping to wait for it to be created", log)
    k.write(path, "l1\nl2\n")
    assert.same({ "l1", "l2" }, (expect(r, 2)))
  end)

  it("of a truncated file are read from its beginning", function()
    k.write(path, "a1\na2\na3\n")
    local r = reader()
    assert.same({ "a1", "a2", "a3" }, (drain(r)))
    k.write(path, "b1\n")
    local got, last
    local log = k.logged(function() got, last = expect(r, 1) end)
    assert.same({ "b1" }, got)
    assert.equal('{"position":3}', last)
    assert.matches("became shorter %(3 bytes%) than what was read %(9%)", log)
    k.write(path, "b2\n", "ab")
    assert.same({ "b2" }, (expect(r, 1)))
  end)

  it("of a replaced file come after the rest of the old one", function()
    k.write(path, "a1\na2\n")
    local r = reader()
    assert.same({ "a1", "a2" }, (drain(r)))
    local old = io.open(path, "ab")
    k.write(path .. ".new", "n1\nn2\nn3\n")
    os.rename(path .. ".new", path)
    old:write "a3\nunfinished"
    old:close()
    local got, last
    local log = k.logged(function() got, last = expect(r, 4) end)
    assert.same({ "a3", "n1", "n2", "n3" }, got)
    assert.equal('{"position":9}', last)
    assert.matches("its last line %(10 bytes, no line end%) is not read", log)
  end)

  it("of a deleted file go on, then those of the new one", function()
    k.write(path, "a1\n")
    local r = reader()
    assert.same({ "a1" }, (drain(r)))
    local f = io.open(path, "ab")
    os.remove(path)
    local log = k.logged(function() poll(r) poll(r) end)
    assert.matches("was deleted", log)
    f:write "a2\n"
    f:close()
    assert.same({ "a2" }, (expect(r, 1)))
    k.write(path, "c1\n")
    assert.same({ "c1" }, (expect(r, 1)))
  end)

  it("of a folder: nothing, with a warning that names it", function()
    local r = reader { file = dir }
    local log = k.logged(function() assert.is_nil(poll(r)) end)
    assert.matches(dir:gsub("%p", "%%%0") .. " is a folder", log)
  end)

  it("of what cannot be opened: a fatal error with the path", function()
    local name = dir .. "/" .. ("n"):rep(300)
    local ok, err = pcall(poll, reader { file = name })
    assert.is_false(ok)
    assert.equal("fatal", err.kind)
    assert.matches("Cannot open file " .. name:gsub("%p", "%%%0") .. " for FileStreamSourceTask: File name too long",
      err.message)
  end)

  it("of a fifo come without offsets; neither opening nor waiting blocks", function()
    local fifo = dir .. "/fifo"
    assert(C.mkfifo(fifo, 384) == 0) -- 0600
    local r = reader { file = fifo }
    local t0 = C.lc_now_ms()
    assert.is_nil(poll(r))
    local w = ffi.C.open(fifo, O_WRONLY + O_NONBLOCK)
    assert.is_true(w >= 0)
    assert.is_nil(poll(r))
    assert.is_true(C.lc_now_ms() - t0 < 30000)
    ffi.C.write(w, "f1\nf2\npar", 9)
    local b
    for _ = 1, 50 do
      b = poll(r)
      if b then break end
    end
    assert.same({ "f1", "f2" }, values(b))
    assert.is_true(b.records[0].u.src.partition == nil)
    ffi.C.write(w, "tial\n", 5)
    ffi.C.close(w)
    b = nil
    for _ = 1, 50 do
      b = poll(r)
      if b then break end
    end
    assert.same({ "partial" }, values(b))
    C.lc_waker_wake(waker) -- stopping: no wait at all, else a second each
    t0 = C.lc_now_ms()
    for _ = 1, 30 do assert.is_nil(poll(r)) end
    assert.is_true(C.lc_now_ms() - t0 < 20000)
  end)

  it("of stdin come without offsets", function()
    local fds, saved = ffi.new "int[2]", ffi.C.dup(0)
    ffi.C.pipe(fds)
    ffi.C.dup2(fds[0], 0)
    ffi.C.write(fds[1], "in1\nin2\n", 8)
    local r = reader { stdin = true }
    local b = poll(r)
    ffi.C.dup2(saved, 0)
    for _, fd in ipairs { fds[0], fds[1], saved } do ffi.C.close(fd) end
    assert.same({ "in1", "in2" }, values(b))
    assert.is_true(b.records[0].u.src.partition == nil)
  end)

  it("end their waits when the task stops", function()
    local r = reader()
    k.logged(function() poll(r) end) -- the file is missing: the next look is a second away
    C.lc_waker_wake(waker)
    local t0 = C.lc_now_ms()
    for _ = 1, 30 do assert.is_nil(poll(r)) end
    assert.is_true(C.lc_now_ms() - t0 < 20000)
  end)

  it("outlive their reader", function()
    k.write(path, "kept\n")
    local r = reader()
    local b = poll(r)
    readers = {}
    C.lc_line_reader_free(ffi.gc(r, nil))
    assert.same({ "kept" }, values(b))
    assert.equal('{"filename":"' .. path .. '"}', ffi.string(b.records[0].u.src.partition.json))
  end)
end)

describe("line writer", function()
  local function writer(file)
    local err = core.err()
    local w = C.lc_line_writer_new(file, waker, err)
    if w == nil then fatal(err) end
    return ffi.gc(w, C.lc_line_writer_free)
  end
  local function write(w, batch)
    local err = core.err()
    if C.lc_line_writer_write(w, batch, err) < 0 then fatal(err) end
  end

  before_each(function()
    dir = k.tmpdir()
    path = dir .. "/out.txt"
    waker = ffi.new "lc_waker_t"
    assert(C.lc_waker_init(waker) == 0)
  end)
  after_each(function()
    collectgarbage()
    C.lc_waker_close(waker)
    k.rm(dir)
  end)

  it("appends one line a record to what is there", function()
    k.write(path, "preexisting content\n")
    local w = writer(path)
    write(w, k.sink_batch({ "m2-a", "a\nb", nil, "", "\255\254a" }, 5))
    assert.equal("preexisting content\nm2-a\na\nb\nnull\n\n\239\191\189\239\191\189a\n", k.read(path))
  end)

  -- golden/connectors/sink.jsonl: texts of values read by JsonConverter or StringConverter
  describe("prints recorded values as Java:", function()
    local classes = { ["org.apache.kafka.connect.storage.StringConverter"] = true,
      ["org.apache.kafka.connect.json.JsonConverter"] = true }
    for _, case in ipairs(golden.cases "connectors/sink.jsonl") do
      local config = case.config or {}
      local class = config["value.converter"] or "org.apache.kafka.connect.json.JsonConverter"
      local values_given = type(case.topic_values) == "table" and case.topic_values ~= golden.null
      if values_given and type(case.output) == "string" and classes[class] and not config.transforms then
        it(case.name, function()
          local err = core.err()
          local cls = C.lc_converter_class_find(class)
          local props = core.props { ["schemas.enable"] = config["value.converter.schemas.enable"] or "true" }
          local cv = cls.create(cls, props, "value", err)
          local b = ffi.gc(C.lc_batch_new(8), C.lc_batch_unref)
          for _, v in ipairs(case.topic_values) do
            local r = C.lc_batch_add(b)
            local bytes = v
            if type(v) == "table" and v ~= golden.null then
              local p = io.popen("printf %s '" .. v.base64 .. "' | base64 -d")
              bytes = p:read "*a"
              p:close()
            end
            local slice = ffi.new "lc_slice_t"
            if v ~= golden.null then
              slice.p, slice.len = ffi.cast("char *", C.lc_arena_dup(b.arena, bytes, #bytes)), #bytes
            end
            local schema = ffi.new "const lc_schema_t *[1]"
            if cls.to_connect(cv, "t", nil, slice, b.arena, schema, r.value, err) < 0 then fatal(err) end
            r.value_schema = schema[0]
            C.lc_batch_hold_schema(b, schema[0])
          end
          write(writer(path), b)
          assert.equal((case.output:gsub("@HASH", "@")), (k.read(path):gsub("@%x+", "@")))
          cls.destroy(cv)
        end)
      end
    end
  end)

  it("leaves dropped records out", function()
    local b = k.sink_batch { "a", "b", "c" }
    b.records[1].state = C.LC_REC_DROPPED
    write(writer(path), b)
    assert.equal("a\nc\n", k.read(path))
  end)

  it("says which file it cannot make", function()
    for _, name in ipairs { dir .. "/no/such/x", dir } do
      local ok, err = pcall(writer, name)
      assert.is_false(ok)
      assert.equal("fatal", err.kind)
      assert.equal(("Couldn't find or create file '%s' for FileStreamSinkTask"):format(name), err.message)
    end
  end)

  it("is retriable on a full disk, with the path", function()
    local w = writer "/dev/full"
    local ok, err = pcall(write, w, k.sink_batch { "a" })
    assert.is_false(ok)
    assert.equal("retriable", err.kind)
    assert.equal("Cannot write to /dev/full: No space left on device", err.message)
  end)

  it("takes a batch back that did not fit, and writes it whole when there is room", function()
    k.write(path, "old\n")
    local w = writer(path)
    local RLIMIT_FSIZE, SIGXFSZ = 1, 25
    local big = {}
    for i = 1, 300 do big[i] = ("%03d"):format(i) .. ("x"):rep(9997) end
    local batch = k.sink_batch(big)
    local was = ffi.new "struct lc_spec_rlimit"
    ffi.C.getrlimit(RLIMIT_FSIZE, was)
    ffi.C.signal(SIGXFSZ, ffi.cast("void *", 1)) -- ignored: write fails with EFBIG
    ffi.C.setrlimit(RLIMIT_FSIZE, ffi.new("struct lc_spec_rlimit", 1500000, was.max))
    local ok, err = pcall(write, w, batch)
    ffi.C.setrlimit(RLIMIT_FSIZE, was)
    assert.is_false(ok)
    assert.equal("retriable", err.kind)
    assert.equal("old\n", k.read(path))
    write(w, batch)
    assert.equal("old\n" .. table.concat(big, "\n") .. "\n", k.read(path))
  end)

  it("prints to stdout without a file", function()
    local fds, saved = ffi.new "int[2]", ffi.C.dup(1)
    io.stdout:flush()
    ffi.C.pipe(fds)
    ffi.C.dup2(fds[1], 1)
    local ok, err = pcall(function() write(writer "", k.sink_batch { "out" }) end)
    ffi.C.dup2(saved, 1)
    ffi.cdef "ssize_t read(int fd, void *p, size_t n);"
    local buf = ffi.new "char[100]"
    local n = ffi.C.read(fds[0], buf, 100)
    for _, fd in ipairs { fds[0], fds[1], saved } do ffi.C.close(fd) end
    assert(ok, err)
    assert.equal("out\n", ffi.string(buf, n))
  end)

  it("waits for a slow reader of a pipe, but not when stopping; a gone reader is an error, not a signal", function()
    local fifo = dir .. "/fifo"
    assert(C.mkfifo(fifo, 384) == 0)
    local ok, err = pcall(writer, fifo)
    assert.is_false(ok)
    assert.equal("retriable", err.kind) -- nobody reads it
    local rd = ffi.C.open(fifo, O_RDWR + O_NONBLOCK)
    local w = writer(fifo)
    C.lc_waker_wake(waker)
    ok, err = pcall(write, w, k.sink_batch { ("x"):rep(200000) })
    assert.is_false(ok)
    assert.equal("retriable", err.kind)
    ffi.C.close(rd)
    ok, err = pcall(write, w, k.sink_batch { "y" })
    assert.is_false(ok)
    assert.matches("Broken pipe", err.message)
  end)
end)
