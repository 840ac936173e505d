-- spec/support/chain.lua: chains of transforms for specs: made from a connector's config, run over batches.
local k = require "spec.support.connect"
local C, ffi, core = k.C, k.ffi, k.core

local _M = {}

local Chain = {}
Chain.__index = Chain

local function failure(err)
  return { kind = k.text(C.lc_err_kind_name(err.kind)), message = core.msg(err), class = k.text(err.cls),
    detail = k.text(err.detail) }
end

--- A chain of the plugins in set (lc_plugins_t *) for a config; nil and {kind, class, message, detail}.
function _M.new(set, config, source)
  local err = core.err()
  local host = ffi.new "lc_script_host_t"
  host.connector = "spec"
  local c = C.lc_script_chain_new(set, core.props(config), source or false, host, err)
  if c == nil then return nil, failure(err) end
  return setmetatable({ c = c, host = host, set = set }, Chain)
end

--- Run it over records [from, to) of a batch; true, or nil and the failure with .at and .stage (from 0).
function Chain:run(batch, from, stage, to)
  local err, at, failed = core.err(), ffi.new "uint32_t[1]", ffi.new "size_t[1]"
  if C.lc_script_chain_run(self.c, batch, from or 0, stage or 0, to or batch.n, at, failed, err) == 0 then return true end
  local f = failure(err)
  f.at, f.stage = at[0], tonumber(failed[0])
  return nil, f
end

--- How many values were decoded into Lua and encoded back.
function Chain:counts()
  local d, e = ffi.new "uint64_t[1]", ffi.new "uint64_t[1]"
  C.lc_script_chain_counts(self.c, d, e)
  return tonumber(d[0]), tonumber(e[0])
end

function Chain:class(i) return k.text(C.lc_script_chain_class(self.c, i)) end

function Chain:free()
  if self.c ~= nil then C.lc_script_chain_free(self.c) end
  self.c = nil
end

return _M
