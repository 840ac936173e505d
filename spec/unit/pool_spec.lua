-- Pool of threads for connector code (core/runtime/pool.c).
local core = require "spec.support.core"
local C = core.load { "base/clock.h", "runtime/pool.h" }
local ffi = require "ffi"
local probe = require("spec.support.compile").library([[
#include "base/clock.h"
#include "runtime/pool.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>
typedef struct probe { int id, sleep_ms, again_ms, times; volatile int gate; } probe_t;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[4096];
static int running, most;
static void note(const char *what, int id)
{
        size_t n = strlen(text);
        text[n] = what[0];
        text[n + 1] = (char)('0' + id);
        text[n + 2] = ' ';
        text[n + 3] = 0;
}
int probe_job(void *arg, bool dropped)
{
        probe_t *p = arg;
        pthread_mutex_lock(&lock);
        note(dropped ? "dropped" : "begin", p->id);
        if (++running > most)
                most = running;
        pthread_mutex_unlock(&lock);
        if (!dropped) {
                usleep((useconds_t)p->sleep_ms * 1000);
                while (__atomic_load_n(&p->gate, __ATOMIC_ACQUIRE))
                        usleep(1000);
        }
        pthread_mutex_lock(&lock);
        running--;
        if (!dropped)
                note("end", p->id);
        pthread_mutex_unlock(&lock);
        return !dropped && --p->times > 0 ? p->again_ms : -1;
}
const char *probe_text(void)
{
        static char copy[4096];
        pthread_mutex_lock(&lock);
        strcpy(copy, text);
        pthread_mutex_unlock(&lock);
        return copy;
}
int probe_most(void) { return most; }
void probe_reset(void) { text[0] = 0; running = most = 0; }
void probe_push(lc_strand_t *s, probe_t *p) { lc_strand_push(s, probe_job, p); }
void probe_once(lc_pool_t *s, probe_t *p) { lc_pool_push(s, probe_job, p); }
]], [[
typedef struct probe { int id, sleep_ms, again_ms, times; volatile int gate; } probe_t;
const char *probe_text(void);
int probe_most(void);
void probe_reset(void);
void probe_push(lc_strand_t *s, probe_t *p);
void probe_once(lc_pool_t *p, probe_t *job);
int usleep(unsigned us);
]])

local function text() return ffi.string(probe.probe_text()) end

local function wait_for(wanted)
  local stop = C.lc_now_ms() + 60000
  while C.lc_now_ms() < stop do
    if wanted(text()) then return end
    ffi.C.usleep(2000)
  end
  error("still: " .. text())
end

local function job(id, t)
  t = t or {}
  return ffi.new("probe_t", { id = id, sleep_ms = t.sleep or 0, again_ms = t.again or 0, times = t.times or 1,
    gate = t.gate or 0 })
end

describe("pool", function()
  local jobs = {} -- the collector must not take what threads look at
  local function make(...)
    local j = job(...)
    jobs[#jobs + 1] = j
    return j
  end
  before_each(function() probe.probe_reset() end)

  it("runs the jobs of a strand one at a time and in order", function()
    local p = C.lc_pool_new(4, 5000, 16)
    local s = C.lc_strand_new(p)
    for i = 1, 5 do probe.probe_push(s, make(i, { sleep = 6 - i })) end
    wait_for(function(t) return t:find "e5" end)
    assert.equal("b1 e1 b2 e2 b3 e3 b4 e4 b5 e5 ", text())
    C.lc_strand_close(s)
    C.lc_pool_free(p, 5000)
  end)

  it("runs strands side by side, up to its size", function()
    local p = C.lc_pool_new(2, 5000, 16)
    for i = 1, 6 do probe.probe_once(p, make(i, { sleep = 30 })) end
    wait_for(function(t) return select(2, t:gsub("e", "")) == 6 end)
    assert.equal(2, probe.probe_most())
    C.lc_pool_free(p, 5000)
  end)

  it("goes on without a job that does not return", function()
    local p = C.lc_pool_new(1, 50, 16)
    local stuck = make(1, { gate = 1 })
    probe.probe_once(p, stuck)
    wait_for(function(t) return t:find "b1" end)
    probe.probe_once(p, make(2))
    wait_for(function(t) return t:find "e2" end)
    stuck.gate = 0
    wait_for(function(t) return t:find "e1" end)
    C.lc_pool_free(p, 5000)
  end)

  it("runs a job again after its delay, or at once when kicked", function()
    local p = C.lc_pool_new(2, 5000, 16)
    local s = C.lc_strand_new(p)
    probe.probe_push(s, make(1, { times = 2, again = 20 }))
    probe.probe_push(s, make(2, { times = 2, again = 3600000 }))
    wait_for(function(t) return t:find "e2" end)
    assert.equal("b1 e1 b1 e1 b2 e2 ", text())
    C.lc_strand_kick(s)
    wait_for(function(t) return t:find "e2 b2 e2" end)
    C.lc_strand_close(s)
    C.lc_pool_free(p, 5000)
  end)

  it("drops what is queued or waits when a strand is closed, each job once", function()
    local p = C.lc_pool_new(2, 5000, 16)
    local s = C.lc_strand_new(p)
    local first = make(1, { gate = 1, times = 2, again = 10 })
    probe.probe_push(s, first)
    wait_for(function(t) return t:find "b1" end)
    probe.probe_push(s, make(2))
    probe.probe_push(s, make(3))
    C.lc_strand_close(s)
    assert.equal("b1 d2 d3 ", text())
    first.gate = 0
    wait_for(function(t) return t:find "d1" end) -- it wanted to come again
    C.lc_pool_free(p, 5000)
  end)

  it("drops what is left when it is freed", function()
    local p = C.lc_pool_new(1, 5000, 16)
    local first = make(1, { sleep = 50 })
    probe.probe_once(p, first)
    wait_for(function(t) return t:find "b1" end)
    probe.probe_once(p, make(2))
    C.lc_pool_free(p, 5000)
    assert.equal("b1 d2 e1 ", text())
  end)
end)
