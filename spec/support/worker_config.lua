-- spec/support/worker_config.lua: the configuration of a worker (core/config/worker_config.c) that specs begin with.
local core = require "spec.support.core"
local with = require "spec.support.with"
local C = core.load { "base/err.h", "config/worker_config.h" }

local _M = {}

local json = "org.apache.kafka.connect.json.JsonConverter"

--- What a distributed worker cannot do without (there is no broker), with `more` over it.
function _M.settings(more)
  return with({ ["bootstrap.servers"] = "127.0.0.1:1", ["group.id"] = "g", ["key.converter"] = json, ["value.converter"] = json,
    ["config.storage.topic"] = "c", ["offset.storage.topic"] = "o", ["status.storage.topic"] = "s" }, more)
end

--- lc_worker_config_t * of these settings, for the caller to free.
function _M.new(more, standalone)
  local err = core.err()
  local wc = C.lc_worker_config_new(core.props(_M.settings(more)), standalone and C.LC_STANDALONE or C.LC_DISTRIBUTED, err)
  assert(wc ~= nil, core.msg(err))
  return wc
end

return _M
