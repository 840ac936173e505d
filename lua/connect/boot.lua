-- connect/boot.lua: the first Lua of a state. Makes the sandbox a plugin lives in and returns the functions
-- core/script calls by name. Called with the plugin's root name, its folder (nil: a single file) and whether
-- it ships with the program; a chain's state has no plugin of its own (all nil).
local root, folder, standard = ...

-- The real string table serves methods on strings, so what it must not offer is taken out before anything
-- else runs.
rawset(string, "dump", nil)

local host = require "connect.host"
require "connect.strings"
local values = require "connect.values"
local errors = require "connect.errors"
local declare = require "connect.declare"
local connect = require "connect"
local sandbox = require "connect.sandbox"

local real_ipairs, real_next, floor = ipairs, next, math.floor

-- loading -----------------------------------------------------------------------------------------
local list, decl

local R = {}

-- The declarations of a plugin's file, run in a sandbox of its own.
local function load(path, name, dir, ships)
  local chunk = setfenv(host.load(path, not ships), sandbox.open(name, dir, ships))
  return declare.list(chunk(name), ships)
end

--- Without a name: the plugin of this state; else another one (the scan of what ships).
function R.load(path, name, dir, ships)
  if name then list = load(path, name, dir, ships) else list = load(path, root, folder, standard) end
end

function R.describe() return require("connect.describe").list(list) end

function R.select(index) decl = list[index] end

function R.validate(config, bad) return require("connect.describe").validate(decl, config, bad) end

function R.exactly_once(config)
  if type(decl.exactly_once) == "function" then return decl.exactly_once(config) end
  return decl.exactly_once
end

function R.boundaries(config)
  if type(decl.transaction_boundaries) == "function" then return decl.transaction_boundaries(config) end
  return decl.transaction_boundaries
end

R.int64 = values.int64

-- the context -------------------------------------------------------------------------------------
local log = {}
for _, level in real_ipairs { "error", "warn", "info", "debug" } do
  log[level] = function(format, ...)
    if select("#", ...) == 0 then return host.log(level, tostring(format)) end
    local args, n = {}, select("#", ...)
    for i = 1, n do
      local v = select(i, ...)
      args[i] = (type(v) == "number" or type(v) == "string") and v or values.tostring(v)
    end
    format = tostring(format)
    local ok, text = pcall(string.format, format, unpack(args, 1, n))
    if not ok then -- a line in the log is no reason to fail
      for i = 1, n do args[i] = tostring(args[i]) end
      text = format .. " " .. table.concat(args, " ", 1, n)
    end
    host.log(level, text)
  end
end

local offsets = {}

--- The stored offset of a source partition as a table, nil when there is none. `options.floats`: a number with a
-- fraction or an exponent comes as connect.float, so that 3.0 is not 3.
function offsets.get(_, partition, options)
  if type(partition) ~= "table" then error("ctx.offsets:get: a table expected, got " .. type(partition), 2) end
  local text = host.offset_get(host.canonical(partition))
  if text == nil then return nil end
  local v, err = connect.json.decode(text, true, options and options.floats)
  if v == nil then error("the stored offset is not JSON: " .. err, 2) end
  if v == values.null then return nil end
  return v
end

--- A list of offsets (connect.null where there is none) for a list of partitions.
function offsets.get_many(self, partitions)
  local out = {}
  for i, p in real_ipairs(partitions) do out[i] = self:get(p) or values.null end
  return out
end

-- Sources that set their own transaction boundaries (transaction.boundary=connector). Records that are named are
-- found again in what poll returns.
local transaction, asked = {}, setmetatable({}, { __mode = "k" })

local function ask(abort, record, name)
  if record == nil then return host.transaction(abort) end
  if type(record) ~= "table" then error(name .. ": a record expected, got " .. type(record), 3) end
  asked[record] = asked[record] or {}
  asked[record][abort and "abort" or "commit"] = true
end

--- Commit the open transaction behind the batch that poll returns next, or behind one record of it.
function transaction.commit(_, record) return ask(false, record, "ctx.transaction:commit") end

--- Give up what the open transaction holds, up to and with that batch or record. Its offsets are committed all the
-- same: the records do not come again.
function transaction.abort(_, record) return ask(true, record, "ctx.transaction:abort") end

local function boundaries(records)
  if not host.has_transaction or next(asked) == nil then return end
  for i, r in real_ipairs(records) do
    local a = asked[r]
    if a then
      asked[r] = nil
      if a.commit then host.transaction(false, i) end
      if a.abort then host.transaction(true, i) end
    end
  end
end

local Context = {}
Context.__index = Context

--- Wait; ends early, and returns true, when the task is stopping.
function Context:sleep(ms)
  if type(ms) ~= "number" or ms ~= ms then
    error("ctx:sleep: milliseconds expected, got " .. (ms == ms and type(ms) or "nan"), 2)
  end
  return host.sleep(ms)
end

function Context:stopping() return host.stopping() end

--- Ask the worker to call task_configs again.
function Context:reconfigure() return host.reconfigure() end

--- Fail the connector from outside a call: an error of connect's, or a text.
function Context:raise(err)
  if errors.is(err) then return host.raise(err.kind, err.message, err.detail) end
  return host.raise("fatal", tostring(err))
end

-- A partition as {topic=, partition=} or "topic-partition".
local function to_tp(v, offset)
  local topic, partition
  if type(v) == "table" then
    topic, partition = v.topic, v.partition
  elseif type(v) == "string" then
    topic, partition = v:match "^(.*)%-(%d+)$"
    partition = tonumber(partition)
  end
  if type(topic) ~= "string" or type(partition) ~= "number" then
    error('a partition is {topic =, partition =} or "topic-partition"', 3)
  end
  return { topic = topic, partition = partition, offset = offset }
end

local function to_tps(v)
  if type(v) == "string" or (type(v) == "table" and v.topic) then v = { v } end
  if type(v) ~= "table" then error("a list of partitions expected, got " .. type(v), 3) end
  local out = {}
  for i, x in real_ipairs(v) do out[i] = to_tp(x) end
  return out
end

--- Sinks: the partitions this task reads.
function Context:assignment()
  local tps = host.assignment()
  for _, tp in real_ipairs(tps) do tp.key = tp.topic .. "-" .. tp.partition end
  return tps
end

function Context:pause(tps) host.pause(to_tps(tps)) end

function Context:resume(tps) host.resume(to_tps(tps)) end

--- Read this partition from `offset` on, before the next put.
function Context:seek(tp, offset)
  if type(offset) ~= "number" then error("ctx:seek: an offset expected, got " .. type(offset), 2) end
  host.seek { to_tp(tp, offset) }
end

--- Once: wait this long before the next put (or the retry of this one).
function Context:timeout(ms) host.timeout(ms) end

function Context:request_commit() host.request_commit() end

local record, exchange -- with the FFI, when first needed

local function fast()
  if not record then
    record = require "connect.record"
    exchange = require("connect.ffi").exchange()
  end
end

--- Sinks: this record of put failed for good: errors.tolerance and the dead letter queue, as if put had returned it.
-- `err`: an error of connect's, or a text. Raises when the tolerance is exceeded. Also of a record that was kept.
function Context:report(r, err)
  fast()
  local batch, at = record.place(r)
  if not batch then
    local got = type(r) == "table" and "not a copy of one" or "got " .. type(r)
    error("ctx:report: a record of put expected, " .. got, 2)
  end
  local own = errors.is(err)
  local before = exchange.batch
  exchange.batch, exchange.index = batch, at
  local ok, why = pcall(host.report, own and err.kind or "data_error", own and err.message or values.tostring(err),
    own and err.detail or nil, own and err.class or nil)
  exchange.batch = before
  if not ok then error(why, 0) end
end

local function context(config)
  return setmetatable({ config = config, log = log, offsets = offsets, connector = host.connector, task = host.task,
    transaction = host.has_transaction and transaction or nil }, Context)
end

-- roles -------------------------------------------------------------------------------------------
local object, role

--- An instance for a role: "connector", "source" or "sink".
function R.new(which)
  role = which
  local class = decl
  if role ~= "connector" then
    class = decl.task
    if role ~= decl.kind then error(("%s is a %s connector, not a %s"):format(decl.name, decl.kind, role), 0) end
    if role == "source" and not class.poll then error(("the task of %s has no poll"):format(decl.name), 0) end
    if role == "sink" and not (class.put or class.put_batch) then
      error(("the task of %s has no put"):format(decl.name), 0)
    end
  end
  object = setmetatable({}, { __index = class })
  return {
    commit = role == "source" and class.commit ~= nil,
    commit_record = role == "source" and class.commit_record ~= nil,
    pre_commit = role == "sink" and class.pre_commit ~= nil,
  }
end

local function call(name, ...)
  local f = object[name]
  if f then return f(object, ...) end
end

function R.start(config) call("start", context(config)) end

function R.stop() call("stop") end

function R.task_configs(config, max)
  if not decl.task_configs then return { {} } end
  return require("connect.describe").task_configs(decl.task_configs(config, max), config)
end

-- A hole ends a list for Lua: what comes after it would be lost without a word.
local function list_length(t, what)
  local count, n = 0, #t
  for k in real_next, t do
    if type(k) ~= "number" or k < 1 or k ~= floor(k) then
      error(("%s: this table has the key %s"):format(what, values.tostring(k)), 0)
    end
    count = count + 1
    if k > n then n = k end
  end
  if count ~= n then
    for i = 1, n do
      if rawget(t, i) == nil then
        error(("%s without holes: item %d is nil, and %d items are there"):format(what, i, count), 0)
      end
    end
  end
  return n
end

-- source
function R.poll()
  local r = object:poll()
  if r == nil then return end
  local t = type(r)
  if t == "cdata" then
    fast()
    if record.is_batch(r) then
      exchange.batch = record.release(r)
      return
    end
  elseif t == "table" then
    if list_length(r, "poll must return a list of records") > 0 then
      host.batch(r)
      boundaries(r)
    elseif getmetatable(r) ~= nil and not values.is_array(r) then
      error("poll must return a plain list of records, not an object", 0)
    end
    return
  end
  error("poll must return nil, a list of records or a batch of connect.lines, got " .. t, 0)
end

function R.commit() call("commit") end

function R.commit_record()
  fast()
  local metadata
  if exchange.sent then
    local sent = exchange.batch.records[exchange.index]
    metadata = { topic = require("connect.ffi").ffi.string(sent.topic), partition = exchange.to.partition,
      offset = tonumber(exchange.to.offset) }
  end
  object:commit_record(record.source_record(record.borrow(exchange.batch), exchange.index), metadata)
end

-- sink
function R.open(tps) call("open", tps) end

function R.close(tps) call("close", tps) end

-- n: how many records put was given.
local function failures(returned, n)
  if returned == nil then return nil end
  if type(returned) ~= "table" then
    error("put must return nil or a list of {index =, error =}, got " .. type(returned), 0)
  end
  local out = {}
  for i = 1, list_length(returned, "put must return a list of {index =, error =}") do
    local f = returned[i]
    if type(f) ~= "table" or type(f.index) ~= "number" then
      error(("put: item %d of the failures is not {index =, error =}"):format(i), 0)
    end
    if f.index < 1 or f.index > n or f.index ~= floor(f.index) then -- the record that it means would be lost
      error(("put: item %d of the failures: index %s is none of the %d records"):format(i,
        values.tostring(f.index), n), 0)
    end
    local e = f.error
    if e == nil then error(("put: item %d of the failures has no error"):format(i), 0) end
    local own = errors.is(e)
    out[i] = own and { index = f.index, kind = e.kind, message = e.message, class = e.class, detail = e.detail }
      or { index = f.index, kind = "data_error", message = values.tostring(e) }
  end
  return out
end

local current -- the batch handle of the running put

function R.put()
  fast()
  current = record.borrow(exchange.batch)
  local n = #current
  if object.put_batch then return failures(object:put_batch(current), n) end
  return failures(object:put(record.records(current)), n)
end

--- After put, also a failed one: the batch goes unless records of it were kept.
function R.put_done()
  if current then record.done(current) end
  current = nil
end

--- true: the offsets are fine as they are.
function R.pre_commit(tps)
  local given = {}
  for _, tp in real_ipairs(tps) do given[tp.key] = tp.offset end
  if not object.pre_commit then
    call("flush", given)
    return true
  end
  local returned = object:pre_commit(given)
  if returned == nil then return nil end
  if type(returned) ~= "table" then
    error("pre_commit must return nil or a table {[partition] = offset}, got " .. type(returned), 0)
  end
  local out = {}
  for tp, offset in pairs(returned) do
    if given[tp] == nil then
      log.warn("pre_commit: %s is no partition that this task has: its offset is left out", values.tostring(tp))
    elseif not (values.is_int64(offset) or type(offset) == "number" and offset == floor(offset)) or offset < 0 then
      error(("pre_commit: the offset of %s is %s, not a whole number"):format(tp, values.tostring(offset)), 0)
    else
      out[tp] = tonumber(offset)
    end
  end
  return out
end

-- converter
function R.converter(config, which)
  fast()
  object = setmetatable({ config = config, role = which, is_key = which == "key" }, { __index = decl })
  local problem = require("connect.describe").validate(decl, config, {})[1]
  if problem then
    local text = problem.whole and problem.message
      or ("Invalid value %s for configuration %s: %s"):format(values.tostring(config[problem.key]), problem.key,
        problem.message)
    error(errors.new("fatal", text, { class = "org.apache.kafka.common.config.ConfigException" }), 0)
  end
  if decl.configure then decl.configure(object, config) end
end

-- schema and value are pointers to C's.
function R.from_connect(topic, schema, value, header)
  local ffi = require("connect.ffi").ffi
  local s = require("connect.schema").read(ffi.cast("const lc_schema_t *", schema))
  local v = record.decode(ffi.cast("lc_value_t *", value))
  local bytes = object:from_connect(topic, s, v, header)
  if bytes == nil or bytes == values.null then return nil end
  if type(bytes) == "string" then return bytes end
  if type(bytes) == "table" and getmetatable(bytes) == values.Bytes then return bytes[1] end
  error(("%s: from_connect must return a string, connect.bytes or nil, got %s"):format(decl.name, type(bytes)), 0)
end

function R.to_connect(topic, bytes, header) return object:to_connect(topic, bytes, header) end

-- examples
function R.example_configs() return require("connect.examples").configs(decl) end

function R.example_converter(i) return require("connect.examples").converter(decl, i, object) end

--- In the state of a chain that was made for the example.
function R.example_chain(path, name, dir, ships, index, i)
  return require("connect.examples").chain(load(path, name, dir, ships)[index], i, R.run, R.run_failed)
end

-- chain of transforms
function R.chain(is_source)
  for name, f in pairs(require("connect.chain").new(load, is_source)) do R[name] = f end
end

return R
