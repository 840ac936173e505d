--- connect.testing: runs a declaration in a spec, without Kafka and without a worker. docs/authoring.md teaches it.
-- Values go in as plain tables or texts and come out as plain tables, so that assert.same compares them; in
-- between a plugin sees what the worker shows it (maps are connect.map, null is connect.null).
local connect = require "connect"
local values = require "connect.values"
local describe = require "connect.describe"
local declare = require "connect.declare"
local errors = require "connect.errors"
local sandbox = require "connect.sandbox"
local host = require "connect.host"

local null, Map = values.null, values.Map

local _M = {}

-- values ------------------------------------------------------------------------------------------
local function is_list(t) return connect.is_array(t) or #t > 0 end

--- A value as a plugin gets it without a schema: plain tables become maps (keys sorted) and marked arrays.
function _M.value(v)
  if v == nil then return null end
  if type(v) ~= "table" or v == null then return v end
  local mt = getmetatable(v)
  if mt == Map then return connect.copy(v) end
  if is_list(v) then
    local out = {}
    for i, x in ipairs(v) do out[i] = _M.value(x) end
    return connect.array(out)
  end
  if mt ~= nil then return v end
  local keys, out = {}, connect.map()
  for k in pairs(v) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, k in ipairs(keys) do out:set(k, _M.value(v[k])) end
  return out
end

--- The other way: plain tables, for assert.same.
function _M.plain(v)
  if type(v) ~= "table" or v == null then return v end
  local mt, out = getmetatable(v), {}
  if mt == Map then
    for k, x in v:pairs() do out[k] = _M.plain(x) end
    return out
  end
  if mt ~= nil and not connect.is_array(v) then return v end
  for k, x in pairs(v) do out[k] = _M.plain(x) end
  return out
end

local function show(v)
  if v == connect.drop then return "connect.drop" end
  local ok, text = pcall(function() return require("connect.json").encode(v) end)
  return ok and text or values.tostring(v)
end

-- configuration -----------------------------------------------------------------------------------
local function config_error(text)
  return errors.new("fatal", text, { class = "org.apache.kafka.common.config.ConfigException" })
end

local INTEGERS = { int = { -2 ^ 31, 2 ^ 31 - 1 }, short = { -32768, 32767 }, long = { -2 ^ 63, 2 ^ 63 } }

local function parse(row, v)
  if v == nil or v == null then return nil end
  local t = row.type or "string"
  local text = type(v) == "string" and v:match "^%s*(.-)%s*$" or v
  if t == "boolean" then
    if type(v) == "boolean" then return v end
    local low = tostring(text):lower()
    if low == "true" then return true elseif low == "false" then return false end
    return nil, "Expected value to be either true or false"
  elseif INTEGERS[t] then
    local n = tonumber(text)
    if not n or n ~= math.floor(n) or n < INTEGERS[t][1] or n > INTEGERS[t][2] then
      return nil, "Not a number of type " .. t:upper()
    end
    return n
  elseif t == "double" then
    local n = tonumber(text)
    if not n then return nil, "Not a number of type DOUBLE" end
    return n
  elseif t == "list" then
    if type(v) == "table" then return v end
    local out = {}
    if text ~= "" then
      for item in (text .. ","):gmatch "%s*(.-)%s*," do out[#out + 1] = item end
    end
    return values.array(out)
  end
  return values.tostring(text)
end

local function checked(row, v)
  if row.range and v ~= nil then
    local min, max = row.range.min or row.range[1], row.range.max or row.range[2]
    if v < min then return "Value must be at least " .. min end
    if max and v > max then return "Value must be no more than " .. max end
  end
  if row.non_empty and (v == "" or (type(v) == "table" and #v == 0)) then return "must not be empty" end
  if row.one_of and v ~= nil then
    for _, x in ipairs(type(v) == "table" and v or { v }) do
      local found
      for _, allowed in ipairs(row.one_of) do
        if x == allowed or (row.any_case and tostring(x):lower() == tostring(allowed):lower()) then found = true end
      end
      if not found then return "must be one of " .. table.concat(row.one_of, ", ") end
    end
  end
end

--- The config of texts (numbers, booleans and lists are fine, too) as the plugin gets it, and a list of
-- { key =, message = }: what GET .../validate would say against it.
function _M.validate(decl, config)
  local out, bad, problems = {}, {}, {}
  for k, v in pairs(config or {}) do out[k] = v end
  for _, row in ipairs(decl.config or {}) do
    local key, given = row[1], (config or {})[row[1]]
    local v, message
    if given == nil and row.default ~= nil then given = row.default end
    if given == nil and row.required then
      message = ('Missing required configuration "%s" which has no default value.'):format(key)
    else
      v, message = parse(row, given)
      message = message or checked(row, v)
      if message then
        message = ("Invalid value %s for configuration %s: %s"):format(values.tostring(given), key, message)
      end
    end
    if message then
      problems[#problems + 1] = { key = key, message = message }
      bad[key] = true
    end
    out[key] = v
  end
  for _, p in ipairs(describe.validate(decl, out, bad)) do
    problems[#problems + 1] = { key = p.key, message = p.whole and p.message
      or ("Invalid value %s for configuration %s: %s"):format(show(out[p.key]), p.key, p.message) }
  end
  return out, problems
end

local function configured(decl, config)
  local out, problems = _M.validate(decl, config)
  if problems[1] then error(config_error(problems[1].message), 0) end
  return out
end

-- records -----------------------------------------------------------------------------------------
local Record = {}
Record.__index = Record

local SETTABLE = { topic = 1, partition = 1, timestamp = 1, key = 1, value = 1, key_schema = 1, value_schema = 1,
  headers = 1 }

function Record:with(changes)
  local out = setmetatable({}, Record)
  for k, v in pairs(self) do out[k] = v end
  for k, v in pairs(changes) do
    if not SETTABLE[k] then error(("record:with: a record has no field %s to change"):format(tostring(k)), 2) end
    out[k] = v
  end
  return out
end

function Record:detach()
  local out = {}
  for k, v in pairs(self) do out[k] = v end
  return out
end

--- A record as a plugin gets it: fields that are missing are those of a record without key and headers.
function _M.record(fields)
  local r = setmetatable({}, Record)
  for k, v in pairs(fields or {}) do r[k] = v end
  r.topic = r.topic or "test"
  r.headers = r.headers or {}
  r.key = r.key_schema and connect.copy(r.key) or _M.value(r.key)
  r.value = r.value_schema and connect.copy(r.value) or _M.value(r.value)
  return r
end

local function plain_record(r)
  local out = {}
  for k, v in pairs(r) do out[k] = _M.plain(v) end
  return out
end

-- transforms, predicates, converters --------------------------------------------------------------
local function expect(decl, kind)
  if type(decl) ~= "table" or decl.kind ~= kind then
    error(("connect.testing: a declaration of connect.%s expected"):format(kind), 3)
  end
end

local function instance(decl, config)
  local c = configured(decl, config)
  local object = setmetatable({ config = c }, { __index = decl })
  if decl.configure then decl.configure(object, c) end
  return object
end

--- The transform as a function. One with apply_value: (value, schema, record) -> value, schema. One with apply:
-- a record in, a record out. connect.drop is returned as it is.
function _M.transform(decl, config)
  expect(decl, "transform")
  if decl.apply_cells then error(decl.name .. " ships with the program: try it with luaconnect try", 2) end
  local object = instance(decl, config)
  if decl.apply_value and decl.on then
    return function(value, schema, record)
      local given = schema and connect.copy(value) or _M.value(value)
      local whole = _M.record(record or { value = value, value_schema = schema })
      local v, s = decl.apply_value(object, given, schema, whole)
      if v == connect.drop then return v end
      if v == nil then v = null end
      return _M.plain(v), s
    end
  end
  return function(record)
    local r = decl.apply(object, _M.record(record))
    if r == connect.drop then return r end
    if type(r) ~= "table" or getmetatable(r) ~= Record then
      error(("%s: apply must return the record, record:with{...} or connect.drop"):format(decl.name), 2)
    end
    return plain_record(r)
  end
end

--- The predicate as a function: a record in, true or false out.
function _M.predicate(decl, config)
  expect(decl, "predicate")
  if decl.test_cells then error(decl.name .. " ships with the program: try it with luaconnect try", 2) end
  local object = instance(decl, config)
  return function(record)
    local yes = decl.test(object, _M.record(record))
    return yes ~= nil and yes ~= false and yes ~= null
  end
end

--- from_connect(topic, schema, value) -> bytes and to_connect(topic, bytes) -> schema, value. role: "key", "value"
-- (default) or "header".
function _M.converter(decl, config, role)
  expect(decl, "converter")
  local object = setmetatable({ role = role or "value", is_key = role == "key" }, { __index = decl })
  object.config = configured(decl, config)
  if decl.configure then decl.configure(object, object.config) end
  return {
    from_connect = function(topic, schema, value, header)
      local bytes = decl.from_connect(object, topic, schema, schema and value or _M.value(value), header)
      if bytes == nil or bytes == null then return nil end
      return tostring(bytes)
    end,
    to_connect = function(topic, bytes, header)
      local schema, value = decl.to_connect(object, topic, bytes, header)
      return schema, _M.plain(value)
    end,
  }
end

-- connectors --------------------------------------------------------------------------------------
local function canonical(t)
  if type(t) ~= "table" then return type(t) .. ":" .. values.tostring(t) end
  local out = {}
  for k, v in pairs(_M.plain(t)) do out[#out + 1] = tostring(k) .. "=" .. canonical(v) end
  table.sort(out)
  return "{" .. table.concat(out, ",") .. "}"
end

local function context(h, config)
  local ctx = { config = config, connector = "test", task = 0, log = {}, offsets = {} }
  for _, level in ipairs { "error", "warn", "info", "debug" } do
    ctx.log[level] = function(format, ...)
      h.log[#h.log + 1] = level .. ": " .. (select("#", ...) > 0 and format:format(...) or tostring(format))
    end
  end
  function ctx.offsets:get(partition) return connect.copy(h.offsets[canonical(partition)]) end
  function ctx.offsets:get_many(list)
    local out = {}
    for i, p in ipairs(list) do out[i] = self:get(p) or null end
    return out
  end
  function ctx:sleep() return h.stopped end
  function ctx:stopping() return h.stopped end
  function ctx:reconfigure() h.reconfigured = true end
  function ctx:raise(err) error(err, 0) end
  function ctx:request_commit() h.commit_requested = true end
  function ctx:timeout(ms) h.timeout_ms = ms end
  function ctx:report(record, err)
    h.reported[#h.reported + 1] = { record = record, error = errors.is(err) and err.message or values.tostring(err) }
  end
  function ctx:seek(tp, offset) h.seeks[#h.seeks + 1] = { tp = tp, offset = offset } end
  function ctx:pause(tps) h.paused = tps end
  function ctx:resume() h.paused = nil end
  function ctx:assignment() return h.assigned end
  return ctx
end

local Harness = {}
Harness.__index = Harness

local function harness(decl, config)
  return setmetatable({ decl = decl, config = configured(decl, config), offsets = {}, log = {}, seeks = {},
    reported = {}, pending = {}, sent = 0, assigned = {}, next_offset = {}, stopped = true }, Harness)
end

--- A new task starts; one that fails to is stopped, as in the worker.
function Harness:start()
  self:stop()
  self.stopped = false
  self.task, self.pending = setmetatable({}, { __index = self.decl.task }), {}
  if not self.task.start then return self end
  local ok, err = xpcall(self.task.start, function(e)
    return type(e) == "table" and e or debug.traceback(tostring(e))
  end, self.task, context(self, self.config))
  if not ok then
    pcall(self.stop, self)
    error(err, 0)
  end
  return self
end

--- Ends the task; harmless when there is none.
function Harness:stop()
  local task = self.task
  self.stopped, self.task = true, nil
  if task and task.stop then task:stop() end
end

--- Sources: what poll returned, or nil. Nothing is committed yet.
function Harness:poll()
  local records = self.task:poll()
  if records == nil then return nil end
  for _, r in ipairs(records) do self.pending[#self.pending + 1] = r end
  return records
end

--- Sources: all records polled so far are in Kafka: their offsets are what the next start reads.
function Harness:commit()
  for _, r in ipairs(self.pending) do
    if self.task.commit_record then
      self.task:commit_record(r, { topic = r.topic, partition = r.partition or 0, offset = self.sent })
      self.sent = self.sent + 1
    end
    if r.source_partition then self.offsets[canonical(r.source_partition)] = connect.copy(r.source_offset) end
  end
  self.pending = {}
  if self.task.commit then self.task:commit() end
end

--- Sinks: a partition more.
function Harness:assign(topic, partition)
  local tp = { topic = topic, partition = partition or 0, key = topic .. "-" .. (partition or 0) }
  self.assigned[#self.assigned + 1] = tp
  self.next_offset[tp.key] = self.next_offset[tp.key] or 0
  if self.task.open then self.task:open { tp } end
  return self
end

--- Sinks: values, or records made by testing.record, of the partition assigned last. Returns what put returned.
function Harness:put(list)
  local out = {}
  local last = self.assigned[#self.assigned]
  if not last then error("connect.testing: assign a partition first", 2) end
  for i, item in ipairs(list) do
    local r = getmetatable(item) == Record and item or _M.record { topic = last.topic, value = item }
    r.partition = r.partition or last.partition
    r.tp = r.topic .. "-" .. r.partition
    r.offset = self.next_offset[r.tp] or 0
    self.next_offset[r.tp] = r.offset + 1
    r.original_topic, r.original_partition = r.topic, r.partition
    out[i] = r
  end
  return self.task:put(out)
end

--- Sinks: the offsets that would be committed now.
function Harness:pre_commit()
  local given = {}
  for _, tp in ipairs(self.assigned) do given[tp.key] = self.next_offset[tp.key] end
  if self.task.pre_commit then return self.task:pre_commit(given) end
  if self.task.flush then self.task:flush(given) end
  return given
end

--- Sinks: partitions are lost and the task ends.
function Harness:close()
  if self.task and self.task.close then self.task:close(self.assigned) end
  self.assigned = {}
  self:stop()
end

--- A source: start, poll, commit, stop. Offsets stay from one start to the next.
function _M.source(decl, config)
  expect(decl, "source")
  return harness(decl, config)
end

--- A sink, started: assign, put, pre_commit, close.
function _M.sink(decl, config)
  expect(decl, "sink")
  return harness(decl, config):start()
end

-- loading -----------------------------------------------------------------------------------------

--- The declaration of a plugin file (with several: a list), in the sandbox it has in a worker. A path that does
-- not start with / is relative to the file that calls.
function _M.load(path)
  if path:sub(1, 1) ~= "/" then
    local here = debug.getinfo(2, "S").source:match "^@(.*/)"
    path = (here or "") .. path
  end
  local list = _M.load_list(path)
  return #list == 1 and list[1] or list
end

--- The declarations of a file; raises why it is no plugin. standard: it ships with the program.
function _M.load_list(path, standard)
  local folder = path:match "^(.*)/init%.lua$" or (path == "init.lua" and ".") or nil
  local name
  if folder then
    name = (folder:match "([^/]+)$" or folder)
    if name == "." or name == ".." then
      local p = io.popen(("cd '%s' && pwd"):format(folder:gsub("'", "'\\''")))
      name = p:read "*l":match "([^/]+)$"
      p:close()
    end
  else
    name = path:match "([^/]+)%.lua$" or path
  end
  local chunk = setfenv(host.load(path), sandbox.open(name, folder, standard))
  local list = declare.list(chunk(name), standard)
  describe.list(list) -- raises what is wrong with rows
  return list
end

return _M
