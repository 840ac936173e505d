-- spec/support/rest_call.lua: one REST request through the pure part of core/rest, without a server.
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "rest/call.h", "rest/body.h", "rest/json_out.h",
  "rest/forward.h", "base/clock.h" }

local _M = { C = C, ffi = ffi }

--- A context as a distributed worker without plugins has it; `overrides` are fields of lc_rest_context_t.
function _M.context(overrides)
  local ctx = ffi.new "lc_rest_context_t"
  local keep = {
    plugins = ffi.new "lc_plugins_t",
    loggers = ffi.gc(C.lc_loggers_new "INFO", C.lc_loggers_free),
    filters = ffi.gc(C.lc_filters_new(overrides and overrides.origins, overrides and overrides.methods,
      overrides and overrides.headers, nil), C.lc_filters_free),
    cluster_id = "spec-cluster",
  }
  ctx.serving, ctx.distributed = true, true
  ctx.topic_tracking, ctx.topic_reset, ctx.admin = true, true, true
  for k, v in pairs(keep) do ctx[k] = v end
  for k, v in pairs(overrides or {}) do
    if k ~= "origins" and k ~= "methods" and k ~= "headers" then
      keep[k] = v
      ctx[k] = v
    end
  end
  return { ctx = ctx, keep = keep }
end

local function headers_of(answer)
  local out = {}
  for i = 0, tonumber(answer.headers.n) - 1 do
    local name, value = ffi.string(answer.headers.v[i]):match "^(.-): (.*)$"
    out[name] = value
  end
  return out
end

local function answer_of(call)
  local out = call.out
  return {
    status = out.status,
    type = out.content_type ~= nil and ffi.string(out.content_type) or nil,
    body = out.body.p ~= nil and ffi.string(out.body.p, out.body.len) or "",
    headers = headers_of(out),
    close = out.close,
  }
end

_M.answer_of = answer_of

local fields = {
  host = "host", accept = "accept", ["content-type"] = "content_type", origin = "origin",
  authorization = "authorization",
  ["access-control-request-method"] = "preflight", ["x-connect-authorization"] = "signature",
  ["x-connect-request-signature-algorithm"] = "signature_algorithm",
}

--- call(context, method, uri, headers, body): the answer, or nil and the call with its request for the
-- herder in .req. `herder(req)`, if given, fills the request in and the finished answer is returned; "late"
-- stands for a herder that does not answer.
function _M.call(context, method, uri, headers, body, herder)
  local call = ffi.gc(ffi.new "lc_rest_call_t", C.lc_rest_call_free)
  local keep = { method, uri, body or "" }
  call["in"].method, call["in"].uri = method, uri
  call["in"].body, call["in"].body_len = keep[3], #keep[3]
  for name, value in pairs(headers or {}) do
    local field = fields[name:lower()]
    if field then
      keep[#keep + 1] = value
      call["in"][field] = value
    end
  end
  local anchor = { call = call, keep = keep, context = context }
  if C.lc_rest_begin(context.ctx, call) == 0 then return answer_of(call), anchor end
  if not herder then return nil, anchor end
  if herder == "late" then
    C.lc_rest_late(context.ctx, call, "The worker is currently busy, which began at NOW.", context.ready == true)
  else
    herder(call.req, ffi, C)
    C.lc_rest_finish(context.ctx, call)
  end
  return answer_of(call), anchor
end

return _M
