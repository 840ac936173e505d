-- The watch of plugin folders: with inotify and without it.
local core = require "spec.support.core"
local proc = require "spec.support.proc"
local C, ffi = core.load { "base/err.h", "base/strv.h", "base/watch.h" }
local probe = require("spec.support.compile").library([[
#include "base/watch.h"
static int told;
static void changed(void *arg) { (void)arg; __atomic_add_fetch(&told, 1, __ATOMIC_SEQ_CST); }
lc_watch_t *spec_watch(const lc_strv_t *folders, int quiet_ms, bool poll_only)
{
        lc_err_t err = {0};
        told = 0;
        return lc_watch_new(folders, quiet_ms, poll_only, changed, NULL, &err);
}
int spec_told(void) { return __atomic_load_n(&told, __ATOMIC_SEQ_CST); }
]], [[
lc_watch_t *spec_watch(const lc_strv_t *folders, int quiet_ms, bool poll_only);
int spec_told(void);
]])

for name, poll_only in pairs { inotify = false, times = true } do
  describe("a watch by " .. name, function()
    local dir, w

    before_each(function()
      dir = proc.tmpdir "watch"
      os.execute("mkdir -p " .. dir .. "/a/sub")
      local folders = ffi.new "lc_strv_t"
      C.lc_strv_add(folders, dir .. "/a")
      C.lc_strv_add(folders, dir .. "/not-yet")
      w = probe.spec_watch(folders, 100, poll_only)
      C.lc_strv_free(folders)
      assert.is_true(w ~= nil)
      proc.wait_for("the first call", function() return probe.spec_told() == 1 end)
    end)
    after_each(function() C.lc_watch_free(w) end)

    local function told(what, f)
      local before = probe.spec_told()
      f()
      proc.wait_for(what, function() return probe.spec_told() > before end)
      proc.stays("quiet after " .. what, function() return probe.spec_told() <= before + 2 end, 0.3)
    end

    it("tells of files that come, change, are renamed and go, also in folders below", function()
      told("a new file", function() proc.write(dir .. "/a/x.lua", "1") end)
      told("a change", function() proc.write(dir .. "/a/x.lua", "12") end)
      told("a file below", function() proc.write(dir .. "/a/sub/y.lua", "1") end)
      told("a new folder", function()
        os.execute("mkdir -p " .. dir .. "/tmp && echo 1 >" .. dir .. "/tmp/z.lua && mv " .. dir .. "/tmp " .. dir .. "/a/")
      end)
      told("a change in it", function() proc.write(dir .. "/a/tmp/z.lua", "123") end)
      told("a rename", function() os.rename(dir .. "/a/x.lua", dir .. "/a/w.lua") end)
      told("a removal", function() os.remove(dir .. "/a/w.lua") end)
      told("a folder that was missing", function()
        os.execute("mkdir -p " .. dir .. "/not-yet && echo 1 >" .. dir .. "/not-yet/n.lua")
      end)
    end)

    it("tells nothing of other files", function()
      local before = probe.spec_told()
      proc.write(dir .. "/a/notes.txt", "1")
      proc.write(dir .. "/a/.x.lua.swp", "1")
      proc.stays("no call", function() return probe.spec_told() == before end, 1.5)
    end)
  end)
end
