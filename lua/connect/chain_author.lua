-- connect/chain_author.lua: transforms and predicates as authors write them, on C records: a view decodes what is
-- touched, and what comes back changed is encoded. Private; loaded by chains that have such a stage.
local fx = require "connect.ffi"
local connect = require "connect"
local host = require "connect.host"
local values = require "connect.values"
local record = require "connect.record"
local schema = require "connect.schema"

local x = fx.exchange()
local null = values.null
local Map, Data, Bytes, Float = values.Map, values.Data, values.Bytes, values.Float

local _M = {}

-- Is b, decoded anew, what a was when it was decoded? Scripts change tables in place too.
local function same(a, b, depth)
  if rawequal(a, b) then return true end
  local t = type(a)
  if t ~= type(b) then return false end
  if t == "cdata" then return a == b end
  if t == "number" then return a ~= a and b ~= b end
  if t ~= "table" or depth > 200 then return false end
  local mt = getmetatable(a)
  if mt ~= getmetatable(b) then return false end
  if mt == Data or mt == Bytes or mt == Float then return a == b end
  if mt == Map then
    local ka, na = values.map_flat(a)
    local kb, nb = values.map_flat(b)
    if na ~= nb then return false end
    for i = 1, 2 * na do
      if not same(ka[i], kb[i], depth + 1) then return false end
    end
    return true
  end
  for k, v in pairs(a) do
    if not same(v, b[k], depth + 1) then return false end
  end
  for k in pairs(b) do
    if a[k] == nil then return false end
  end
  return true
end

local SETTABLE = { topic = true, partition = true, timestamp = true, key = true, value = true, key_schema = true,
  value_schema = true, headers = true }

local With = {}
function With.__index(w, k)
  if k == "with" then return With.with end
  local changes = rawget(w, "_changes")
  if changes[k] ~= nil then return changes[k] end
  return rawget(w, "_view")[k]
end

local function check_changes(changes)
  if type(changes) ~= "table" then error("record:with: a table expected, got " .. type(changes), 3) end
  for k in pairs(changes) do
    if not SETTABLE[k] then error(("record:with: a record has no field %s to change"):format(tostring(k)), 3) end
  end
end

function With.with(w, changes)
  check_changes(changes)
  local merged = {}
  for k, v in pairs(rawget(w, "_changes")) do merged[k] = v end
  for k, v in pairs(changes) do merged[k] = v end
  return setmetatable({ _view = rawget(w, "_view"), _changes = merged }, With)
end

local View = {}

local function with(view, changes)
  check_changes(changes)
  local copy = {}
  for k, v in pairs(changes) do copy[k] = v end
  return setmetatable({ _view = view, _changes = copy }, With)
end

local COUNTED = { key = true, value = true, headers = true }

--- The functions of a chain whose records are a source's or a sink's.
function _M.new(is_source)
  local A = {}
  local handle -- of the batch that is run: views end with the run
  local getters = is_source and record.source_getters or record.sink_getters
  local detach = record.detacher(is_source)

  local function alive(view)
    local h = rawget(view, "_batch")
    if h.b == nil then error("this record's batch is gone: use record:detach() to keep a record", 3) end
    return h.b.records + rawget(view, "_at")
  end

  function View.__index(view, k)
    if k == "with" then return with end
    if k == "detach" then return detach end
    local getter = getters[k]
    if not getter then return nil end
    local v = getter(alive(view))
    if COUNTED[k] then x.decoded = x.decoded + 1 end
    if v == nil then return nil end
    rawset(view, k, v)
    rawget(view, "_seen")[k] = v
    return v
  end

  function View.__newindex(view, k, v)
    if not SETTABLE[k] then error(("a record has no field %s to change"):format(tostring(k)), 2) end
    if v == nil then v = null end
    rawset(view, k, v)
  end

  -- Of the record in hand.
  local function view_of()
    if not handle then handle = record.borrow(x.batch) end
    return setmetatable({ _batch = handle, _at = x.index, _seen = {} }, View)
  end

  function A.begin() if handle then A.done() end end

  function A.done()
    if handle then record.close(handle) end
    handle = nil
  end

  -- Write one slot. schema nil: the one it has; null: none.
  local function set_slot(slot, v, s)
    host.chain_value(slot, v, s)
    x.encoded = x.encoded + 1
  end

  local function number(r, field, v, least)
    if v == nil or v == null then
      r[field] = -1
    elseif type(v) == "cdata" and values.is_int64(v) then
      r[field] = v
    elseif type(v) == "number" and v == math.floor(v) and v >= least and v <= 2 ^ 53 then
      r[field] = v
    else
      error(connect.data_error(("record:with: %s: a whole number expected, got %s"):format(field, tostring(v))), 0)
    end
  end

  local function write_slot(r, slot, v, s)
    if v ~= nil then
      set_slot(slot, v, s)
    elseif s ~= nil then -- a schema alone: the value must fit it
      set_slot(slot, record.decode(r[slot]), s)
    end
  end

  local function write(r, changes)
    if changes.topic ~= nil then
      local t = changes.topic
      if type(t) ~= "string" or t == "" or t:find("\0", 1, true) then
        error(connect.data_error("record:with: topic: a text expected, got " .. values.tostring(t)), 0)
      end
      require("connect.cells").set_topic(r, t)
    end
    if changes.partition ~= nil then number(r, "partition", changes.partition, 0) end
    if changes.timestamp ~= nil then number(r, "timestamp", changes.timestamp, 0) end
    if changes.headers ~= nil then
      host.chain_headers(changes)
      x.encoded = x.encoded + 1
    end
    write_slot(r, "key", changes.key, changes.key_schema)
    write_slot(r, "value", changes.value, changes.value_schema)
  end

  local function look(r, view, seen, k, changes)
    local v, before = rawget(view, k), seen[k]
    if rawequal(v, before) and not (type(v) == "table" and COUNTED[k] and not same(v, getters[k](r), 0)) then
      return changes
    end
    changes = changes or {}
    if v == nil then v = null end -- record.value = nil
    changes[k] = v
    return changes
  end

  -- Fields that were assigned, or changed within, since they were decoded; nil: none.
  local function changes_of(r, view)
    local seen = rawget(view, "_seen")
    local changes = look(r, view, seen, "topic")
    changes = look(r, view, seen, "partition", changes)
    changes = look(r, view, seen, "timestamp", changes)
    changes = look(r, view, seen, "key", changes)
    changes = look(r, view, seen, "value", changes)
    changes = look(r, view, seen, "key_schema", changes)
    changes = look(r, view, seen, "value_schema", changes)
    return look(r, view, seen, "headers", changes)
  end

  local function finish(decl, r, view, result)
    if result == connect.drop then return true end
    if rawequal(result, view) then
      local changes = changes_of(r, view)
      if changes then write(r, changes) end
      return false
    end
    if type(result) == "table" and getmetatable(result) == With then
      if not rawequal(rawget(result, "_view"), view) then
        error(("%s: apply returned another record than it was given"):format(decl.name), 0)
      end
      local changes = changes_of(r, view) or {}
      for k, v in pairs(rawget(result, "_changes")) do changes[k] = v end
      write(r, changes)
      return false
    end
    error(("%s: apply must return the record, record:with{...} or connect.drop, got %s"):format(decl.name,
      type(result) == "table" and "another table" or type(result)), 0)
  end

  local schema_at, schema_object

  local function schema_of(p)
    if p == nil then return nil end
    if p ~= schema_at then
      schema_object = schema.read(p) -- holds a reference: the address is not used again
      schema_at = p
    end
    return schema_object
  end

  --- The function a stage calls for each record: true drops it.
  function A.apply(decl, slot)
    if decl.apply_value and slot then
      local field = slot .. "_schema"
      return function(object, r)
        local before, s = record.decode(r[slot]), schema_of(r[field])
        x.decoded = x.decoded + 1
        local v, new = decl.apply_value(object, before, s, view_of())
        if v == connect.drop then return true end
        if v == nil then v = null end
        if new ~= nil and rawequal(new, s) then new = nil end
        if new == nil and rawequal(v, before) and (type(v) ~= "table" or same(v, record.decode(r[slot]), 0)) then
          return false
        end
        if new == nil and v == null then host.chain_null(slot) return false end
        set_slot(slot, v, new)
        return false
      end
    end
    return function(object, r)
      local view = view_of()
      return finish(decl, r, view, decl.apply(object, view))
    end
  end

  function A.test(decl)
    return function(object, r)
      local yes = decl.test(object, view_of())
      return yes ~= nil and yes ~= false and yes ~= null
    end
  end

  return A
end

return _M
