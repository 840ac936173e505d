-- herder.lua: the distributed herder between simulated neighbours (spec/unit/herder_sim.c), for herder_spec.lua and
-- herder_cluster_spec.lua. What happens is heard as lines of a trace.
local core = require "spec.support.core"
local library = require "spec.support.library"
local plugins = require "spec.support.plugins"
local with = require "spec.support.with"
local worker_config = require "spec.support.worker_config"
local C, ffi = core.load {
  "base/err.h", "base/props.h", "base/buf.h", "base/clock.h", "config/worker_config.h", "config/plugin.h",
  "base/log.h", "herder/herder.h", "herder/restart.h", "herder/session_key.h",
}
C.lc_log_set_level(nil, os.getenv "HERDER_LOG" or "off")

ffi.cdef [[
  lc_herder_t *sim_start(const lc_worker_config_t *wc, const lc_plugins_t *plugins, int protocol);
  void sim_record(const char *key, const char *value);
  void sim_fail(const char *start, const char *write);
  void sim_members(int second, int follower);
  void sim_turn(int protocol);
  void sim_coordinator(int gone);
  void sim_names(const char *ghost, const char *url2, const char *leader_url);
  void sim_back_after(int ms);
  void sim_back_wait(void);
  void sim_freeze(int frozen);
  bool sim_answer(const char *url, int status, const char *body);
  void sim_request_task(lc_request_t *req, const lc_props_t *task);
  void sim_request_text(lc_request_t *req, const char *what, const char *text);
  char *sim_gate(const char *what, const char *connector, int task);
  char *sim_take_trace(void);
  void sim_call(lc_herder_t *h, lc_request_t *req);
  bool sim_ready(lc_herder_t *h);
  void sim_stage(lc_herder_t *h, lc_buf_t *out);
  void sim_reconfigure(lc_herder_t *h, const char *name);
  void sim_set_offset(lc_herder_t *h, const char *connector, const char *partition, const char *offset);
  void sim_stop(lc_herder_t *h);
  void sim_fails(lc_herder_t *h, const char *name, int task, int ms);
  void sim_outdate(const char *connector, int task);
  lc_request_t *sim_request(int op, const char *connector);
  void sim_request_free(lc_request_t *req);
  void free(void *p);
]]

local H = { heard = "" } -- heard: the trace so far, since the last clear()

-- The herder's sources and the simulation, built once. See herder_sim.h for what binds where.
local lib
local function build_sim()
  if lib then return end
  local so = os.tmpname()
  local flags = os.getenv "LC_SPEC_CFLAGS" or ""
  local build = ([[LD_PRELOAD= %s -std=c11 -D_GNU_SOURCE -O1 -g %s -fPIC -shared -Icore -include spec/unit/herder_sim.h -o %s
    spec/unit/herder_sim.c $(ls core/herder/*.c | grep -v -e assignor)]])
    :format(os.getenv "CC" or "cc", flags, so):gsub("\n", " ")
  assert(os.execute(build) == 0, "the simulation does not compile")
  lib = library.load(so)
  os.remove(so)
end
local sim = setmetatable({}, { __index = function(_, name)
  build_sim()
  return lib[name]
end })
H.sim = sim

function H.wait(what, condition)
  local deadline = C.lc_now_ms() + 60000
  while not condition() do
    assert(C.lc_now_ms() < deadline, "waited too long for: " .. what)
    os.execute "sleep 0.005"
  end
end

local function str(p) return p ~= nil and ffi.string(p) or nil end

function H.listen()
  local t = sim.sim_take_trace()
  H.heard = H.heard .. ffi.string(t)
  ffi.C.free(t)
  return H.heard
end

function H.clear()
  H.listen()
  H.heard = ""
end

-- The lines one after the other, other lines in between.
local function in_order(lines)
  local at = 1
  for _, l in ipairs(lines) do
    local from, to = H.heard:find("\n" .. l .. "\n", at, true)
    if not from and H.heard:sub(1, #l + 1) == l .. "\n" and at == 1 then from, to = 1, #l + 1 end
    if not from then return false, l end
    at = to
  end
  return true
end

function H.expect(lines)
  local missing
  local ok = pcall(H.wait, "", function()
    H.listen()
    local yes
    yes, missing = in_order(lines)
    return yes
  end)
  assert(ok, ("did not see %q in\n%s"):format(tostring(missing), H.heard))
end

--- protocol: 0 to 2, -1 standalone. extra: worker settings.
function H.start(protocol, extra)
  H.wc = worker_config.new(extra, protocol == -1)
  H.set = plugins.set(plugins.standard())
  H.heard = ""
  H.h = sim.sim_start(H.wc, H.set, protocol or 1)
  assert(H.h ~= nil)
  H.wait("ready", function() return sim.sim_ready(H.h) end)
end

function H.stop()
  if H.h then sim.sim_stop(H.h) end
  if lib then H.clear() end
  if H.wc then C.lc_worker_config_free(H.wc) end
  H.h, H.wc = nil, nil
end

--- op: LC_REQ_... without its prefix; opt: fields of the request, config and nulls, tasks (a list of tables), and
--- the texts level, signature, algorithm, body. Returns the answer.
function H.call(op, name, opt)
  opt = opt or {}
  local r = sim.sim_request(C["LC_REQ_" .. op], name)
  if opt.config then r.config = C.lc_props_copy(core.props(opt.config)) end
  for _, k in ipairs(opt.nulls or {}) do C.lc_props_set(r.config, k, nil) end
  for _, t in ipairs(opt.tasks or {}) do sim.sim_request_task(r, core.props(t)) end
  for _, k in ipairs { "level", "signature", "algorithm", "body" } do
    if opt[k] then sim.sim_request_text(r, k, opt[k]) end
  end
  local fields = { "task", "include_tasks", "only_failed", "initial_state", "want_info", "want_status", "forward" }
  for _, k in ipairs(fields) do
    if opt[k] ~= nil then r[k] = opt[k] end
  end
  sim.sim_call(H.h, r)
  local a = { status = r.status, error = str(r.error), created = r.created, names = {} }
  a.forward_url, a.retry_after = str(r.forward_url), r.retry_after_s > 0 and r.retry_after_s or nil
  for i = 0, tonumber(r.names.n) - 1 do a.names[i + 1] = str(r.names.v[i]) end
  if r.info ~= nil and op ~= "LIST" then
    a.info = { name = str(r.info.name), ntasks = r.info.ntasks, type = str(r.info.type), config = {} }
    for i = 0, tonumber(C.lc_props_count(r.info.config)) - 1 do
      a.info.config[str(C.lc_props_key(r.info.config, i))] = str(C.lc_props_value(r.info.config, i))
    end
  end
  if r.state ~= nil and op ~= "LIST" then
    a.state = { connector = r.state.connector.state, tasks = {} }
    for i = 0, tonumber(r.state.ntasks) - 1 do a.state.tasks[i + 1] = tonumber(r.state.tasks[i].state) end
  end
  if r.ninfos > 0 then
    a.ninfos, a.has_info, a.has_state = tonumber(r.ninfos), r.info ~= nil, r.state ~= nil
  end
  a.reload = str(r.reload_json)
  a.offsets, a.infos = str(r.offsets_json), r.infos ~= nil
  sim.sim_request_free(r)
  return a
end

--- What a starting exactly-once task is told: "" for yes. what: "fence", "verify".
function H.gate(what, connector, task)
  local t = sim.sim_gate(what, connector, task)
  local text = str(t)
  ffi.C.free(t)
  return text
end

function H.source(more)
  return with({ ["connector.class"] = "FileStreamSource", topic = "t", file = "/tmp/f", ["tasks.max"] = "1" }, more)
end

function H.states_tasks(name)
  local a = H.call("STATUS", name)
  return a.state and a.state.tasks or {}
end

function H.states(name)
  local a = H.call("STATUS", name)
  return a.state and tonumber(a.state.connector), a.state and a.state.tasks
end

return H
