-- spec/support/worker.lua: a worker (core/runtime) with memory stores and plugins written by the spec.
local core = require "spec.support.core"
local C, ffi = core.load { "base/clock.h", "base/log.h", "runtime/worker.h", "script/script.h" }
local files = require "spec.support.files"
local with = require "spec.support.with"
local worker_config = require "spec.support.worker_config"
local probe = require("spec.support.compile").library([[
#include "convert/json.h"
#include "runtime/ticket.h"
#include "runtime/worker.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lc_buf_t text;
static void take(lc_buf_t *b)
{
        pthread_mutex_lock(&lock);
        lc_buf_add(&text, b->p, b->len);
        pthread_mutex_unlock(&lock);
        lc_buf_free(b);
}
/* Called on pool threads: what happened, one line each. */
void spec_done(void *arg, const char *connector, const lc_err_t *err)
{
        lc_buf_t b = LC_BUF_INIT;
        lc_buf_printf(&b, "%s %s: %s\n", (const char *)arg, connector, err ? err->msg : "ok");
        take(&b);
}
void spec_configs(void *arg, const char *connector, lc_props_t **configs, int n, const lc_err_t *err)
{
        lc_buf_t b = LC_BUF_INIT;
        lc_buf_printf(&b, "%s %s: %s", (const char *)arg, connector, err ? err->msg : "");
        for (int i = 0; i < n; i++) {
                lc_json_write_props(&b, configs[i]);
                lc_props_free(configs[i]);
        }
        free(configs);
        lc_buf_addc(&b, '\n');
        take(&b);
}
void spec_reconfigure(void *arg, const char *connector)
{
        lc_buf_t b = LC_BUF_INIT;
        lc_buf_printf(&b, "%s %s\n", (const char *)arg, connector);
        take(&b);
}
int spec_text(char *out, int size)
{
        int n;
        pthread_mutex_lock(&lock);
        n = text.len < (size_t)size ? (int)text.len : size;
        if (n)
                memcpy(out, text.p, (size_t)n);
        pthread_mutex_unlock(&lock);
        return n;
}
void spec_clear(void)
{
        pthread_mutex_lock(&lock);
        lc_buf_free(&text);
        pthread_mutex_unlock(&lock);
}
void spec_start(lc_worker_t *w, const char *name, const lc_props_t *c, lc_target_state_t t)
{ lc_worker_start_connector(w, name, c, t, spec_done, "start"); }
void spec_target(lc_worker_t *w, const char *name, lc_target_state_t t)
{ lc_worker_connector_target(w, name, t, spec_done, "target"); }
void spec_generate(lc_worker_t *w, const char *name, const lc_props_t *c)
{ lc_worker_task_configs(w, name, c, spec_configs, "configs"); }
static int lease = 1;
static bool may_work(void *arg) { (void)arg; return __atomic_load_n(&lease, __ATOMIC_SEQ_CST) != 0; }
void spec_lease(int yes) { __atomic_store_n(&lease, yes, __ATOMIC_SEQ_CST); }
/* What exactly-once tasks are told: kinds of lc_err_kind_t, 0: fine; -1: nothing, ever. Each is used once, then
 * fine again. */
static int fence_answer, verify_answer;
static lc_ticket_t *unanswered;
static void say(int *answer, const char *what, const char *connector, int task, lc_ticket_t *ticket)
{
        int kind = __atomic_exchange_n(answer, 0, __ATOMIC_SEQ_CST);
        lc_buf_t b = LC_BUF_INIT;
        lc_err_t err = {0};
        lc_buf_printf(&b, "%s %s-%d\n", what, connector, task);
        take(&b);
        if (kind > 0)
                lc_err_set(&err, (lc_err_kind_t)kind, 0, "%s refused", what);
        if (kind >= 0)
                lc_ticket_answer(ticket, kind ? &err : NULL);
        else
                unanswered = ticket;
}
static void fence(void *arg, const char *connector, int task, lc_ticket_t *ticket)
{ (void)arg; say(&fence_answer, "fence", connector, task, ticket); }
static void verify(void *arg, const char *connector, int task, lc_ticket_t *ticket)
{ (void)arg; say(&verify_answer, "verify", connector, task, ticket); }
void spec_gate(int fencing, int verifying)
{
        if (unanswered)
                lc_ticket_answer(unanswered, NULL);
        unanswered = NULL;
        __atomic_store_n(&fence_answer, fencing, __ATOMIC_SEQ_CST);
        __atomic_store_n(&verify_answer, verifying, __ATOMIC_SEQ_CST);
}
void spec_deps(lc_worker_deps_t *d)
{
        d->fence = fence;
        d->verify = verify;
        spec_gate(0, 0);
        d->reconfigure = spec_reconfigure;
        d->may_work = may_work;
        d->arg = "reconfigure";
        spec_lease(1);
}
int spec_offset(lc_offset_store_t *s, const char *connector, const char *partition, char *out, int size)
{
        lc_buf_t b = LC_BUF_INIT;
        int rc = s->ops->get(s, connector, partition, &b, NULL);
        if (rc > 0 && (int)b.len < size)
                memcpy(out, b.p, b.len + 1);
        lc_buf_free(&b);
        return rc;
}
]], [[
void spec_start(lc_worker_t *w, const char *name, const lc_props_t *c, lc_target_state_t t);
void spec_target(lc_worker_t *w, const char *name, lc_target_state_t t);
void spec_generate(lc_worker_t *w, const char *name, const lc_props_t *c);
void spec_deps(lc_worker_deps_t *d);
void spec_lease(int yes);
void spec_gate(int fencing, int verifying);
int spec_text(char *out, int size);
void spec_clear(void);
int spec_offset(lc_offset_store_t *s, const char *connector, const char *partition, char *out, int size);
int usleep(unsigned us);
]])

local _M = {}
local Worker = {}
Worker.__index = Worker

_M.STARTED, _M.PAUSED, _M.STOPPED = C.LC_TARGET_STARTED, C.LC_TARGET_PAUSED, C.LC_TARGET_STOPPED

--- Wait until `f` returns something true; `what` may be a function for the message.
function _M.eventually(f, what, ms)
  local stop = C.lc_now_ms() + (ms or 60000)
  while true do
    local v = f()
    if v then return v end
    if C.lc_now_ms() > stop then error(type(what) == "function" and what() or what or "it never happened", 2) end
    ffi.C.usleep(5000)
  end
end

--- options: bootstrap, plugins = { ["probe.lua"] = source }, config = worker settings
function _M.new(options)
  local self = setmetatable({}, Worker)
  local err = core.err()
  if os.getenv "LC_SPEC_LOG" then C.lc_log_set_level(nil, os.getenv "LC_SPEC_LOG") else C.lc_log_set_level(nil, "off") end
  self.dir = files.tmpdir()
  os.execute("mkdir " .. self.dir .. "/plugins")
  for name, source in pairs(options.plugins or {}) do files.write(self.dir .. "/plugins/" .. name, source) end
  self.config = worker_config.new(with({
    ["bootstrap.servers"] = options.bootstrap, ["key.converter"] = "org.apache.kafka.connect.storage.StringConverter",
    ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter", ["offset.flush.interval.ms"] = "200",
    ["plugin.path"] = self.dir .. "/plugins",
  }, options.config))
  local path = ffi.new "lc_strv_t"
  C.lc_strv_add(path, self.dir .. "/plugins")
  self.plugins = C.lc_plugins_scan(".", path, err)
  assert(self.plugins ~= nil, core.msg(err))
  C.lc_strv_free(path)
  self.offsets, self.statuses = C.lc_offset_store_memory_new(), C.lc_status_store_memory_new()
  local zero = ffi.new "int[1]"
  assert(self.offsets.ops.start(self.offsets, zero, err) == 0)
  assert(self.statuses.ops.start(self.statuses, zero, err) == 0)
  self.deps = ffi.new("lc_worker_deps_t", { config = self.config, plugins = self.plugins, offsets = self.offsets,
    statuses = self.statuses, worker_id = "127.0.0.1:8083" })
  probe.spec_deps(self.deps)
  probe.spec_clear()
  self.w = C.lc_worker_new(self.deps, err)
  assert(self.w ~= nil, core.msg(err))
  C.lc_worker_set_generation(self.w, 7)
  return self
end

function Worker:close()
  C.lc_worker_free(self.w)
  probe.spec_gate(0, 0)
  probe.spec_clear()
  self.offsets.ops.stop(self.offsets)
  self.statuses.ops.stop(self.statuses)
  C.lc_plugins_free(self.plugins)
  C.lc_worker_config_free(self.config)
  files.rm(self.dir)
end

--- What was reported by callbacks so far.
function _M.events()
  local size = 65536
  local buf = ffi.new("char[?]", size)
  return ffi.string(buf, probe.spec_text(buf, size))
end

function _M.wait_event(pattern)
  return _M.eventually(function() return _M.events():match(pattern) end, function()
    return pattern .. " is not in: " .. _M.events()
  end)
end

function Worker:start(name, config, target)
  config.name = config.name or name
  probe.spec_start(self.w, name, core.props(config), target or _M.STARTED)
end

function Worker:target(name, target) probe.spec_target(self.w, name, target) end

function Worker:generate(name, config) probe.spec_generate(self.w, name, core.props(config)) end

function Worker:stop(name) C.lc_worker_stop_connector(self.w, name) end

function Worker:start_task(name, id, config, options)
  local err = core.err()
  options = options or {}
  config.name = config.name or name
  local p = core.props(config)
  local rc = C.lc_worker_start_task(self.w, name, id, p, options.count or id + 1, options.task and
    core.props(options.task) or p, options.target or _M.STARTED, err)
  return rc == 0, core.msg(err)
end

function Worker:stop_tasks(...)
  local work = ffi.new "lc_work_t"
  for _, item in ipairs { ... } do C.lc_work_add(work, item[1], item[2]) end
  C.lc_worker_stop_tasks(self.w, work)
  C.lc_work_free(work)
end

function _M.sleep(ms) ffi.C.usleep(ms * 1000) end

--- Milliseconds `f` took.
function _M.took(f)
  local t = C.lc_now_ms()
  f()
  return tonumber(C.lc_now_ms() - t)
end

--- What the next exactly-once tasks are told: "fatal", "retriable", "never"; nil: fine.
function _M.gate(fence, verify)
  local kinds = { fatal = 1, retriable = 2, never = -1 }
  probe.spec_gate(kinds[fence] or 0, kinds[verify] or 0)
end

--- What may_work answers to all tasks.
function _M.lease(yes) probe.spec_lease(yes and 1 or 0) end

function Worker:tasks_target(name, target) C.lc_worker_tasks_target(self.w, name, target) end

--- Status of a connector (task -1) or task: { state, trace, version, generation, worker_id } or nil
function Worker:status(name, task)
  local st = ffi.new "lc_status_t"
  if not self.statuses.ops.get(self.statuses, name, task or -1, st) then return nil end
  local function text(p) return p ~= nil and ffi.string(p) or nil end
  local out = { state = ffi.string(C.lc_state_name(st.state)), trace = text(st.trace), version = text(st.version),
    generation = st.generation, worker_id = text(st.worker_id) }
  C.lc_status_clear(st)
  return out
end

function Worker:wait_state(name, task, state, ms)
  return _M.eventually(function()
    local st = self:status(name, task)
    return st and st.state == state and st
  end, function()
    local st = self:status(name, task) or {}
    return ("%s %d is %s, not %s: %s"):format(name, task, st.state, state, st.trace)
  end, ms)
end

--- Stored offset of a partition as JSON, or nil
function Worker:offset(name, partition)
  local size = 4096
  local buf = ffi.new("char[?]", size)
  local rc = probe.spec_offset(self.offsets, name, partition, buf, size)
  return rc > 0 and ffi.string(buf) or nil
end

function Worker:topics(name)
  local v, out = ffi.new "lc_strv_t", {}
  self.statuses.ops.topics(self.statuses, name, v)
  for i = 0, tonumber(v.n) - 1 do out[#out + 1] = ffi.string(v.v[i]) end
  C.lc_strv_free(v)
  return out
end

function Worker:running()
  local work, out = ffi.new "lc_work_t", {}
  C.lc_worker_running(self.w, work)
  for i = 0, tonumber(work.n) - 1 do
    out[#out + 1] = ffi.string(work.v[i].connector) .. (work.v[i].task >= 0 and "/" .. work.v[i].task or "")
  end
  C.lc_work_free(work)
  return out
end

return _M
