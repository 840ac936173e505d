-- spec/fault/08_disk_full_spec.lua: the disk that holds the offset file, a sink's file and the log of a standalone worker is full
-- for a while (row 8 of the fault matrix): the old offset file stays whole, the log names the files, no task is FAILED,
-- nothing is lost or put twice, and all goes on when there is room again; a worker that is killed meanwhile goes on
-- where the old offset file says. On a small tmpfs where this user may mount one, else with writes that fail by
-- spec/support/fault_calls.lua (--all: both).
local fault_calls = require "spec.support.fault_calls"
local http = require "spec.support.http"
local kafka = require "spec.support.kafka"
local matrix = require "spec.support.matrix"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"
local standalone = require "spec.support.standalone"

local all = os.getenv "LC_ALL_TESTS"

local function tmpfs()
  local disk = { dir = proc.tmpdir "disk", env = {} }
  if os.execute("mount -t tmpfs -o size=512k none " .. disk.dir .. " 2>/dev/null") ~= 0 then return nil end
  function disk.fill() os.execute(("dd if=/dev/zero of=%s/filler bs=4k 2>/dev/null"):format(disk.dir)) end
  function disk.free() os.remove(disk.dir .. "/filler") end
  function disk.close() os.execute("umount " .. disk.dir) end
  return disk
end

local function failing_writes()
  local remote = fault_calls.remote()
  local disk = { dir = proc.tmpdir "disk", env = remote.env }
  function disk.fill() remote:arm { calls = "write", room = 700, path = disk.dir } end
  function disk.free() remote:disarm() end
  function disk.close() end
  return disk
end

describe("a disk that is full", function()
  local disk
  after_each(function()
    if disk then disk.close() end
    disk = nil
  end)

  local function run(t)
    local broker = kafka.broker()
    local dir, topic = proc.tmpdir "full", kafka.unique "full"
    local file, out, offsets, log = dir .. "/in.txt", disk.dir .. "/out.txt", disk.dir .. "/offsets", dir .. "/log"
    local count = 0
    local function write()
      proc.append(file, table.concat(oracle.lines("F", count + 1, count + 50), "\n") .. "\n")
      count = count + 50
    end
    write()
    proc.write(dir .. "/source.json", http.encode { name = "src", ["connector.class"] = "FileStreamSource", file = file,
      topic = topic, ["batch.size"] = 20 })
    proc.write(dir .. "/sink.json", http.encode { name = "snk", ["connector.class"] = "FileStreamSink", file = out,
      topics = topic, ["consumer.override.group.id"] = topic, ["consumer.override.session.timeout.ms"] = 6000 })
    local worker
    local function start()
      worker = standalone.start { dir = dir, log = log, env = disk.env, bootstrap = broker.bootstrap,
        files = { dir .. "/source.json", dir .. "/sink.json" },
        properties = { ["offset.flush.interval.ms"] = "200", ["offset.storage.file.filename"] = offsets } }
      worker.healthy()
    end
    local function lines()
      local list = {}
      for l in (proc.read(out) or ""):gmatch "[^\n]+" do list[#list + 1] = l end
      return list
    end
    local function arrived() return #oracle.check(lines(), "F", count).lost == 0 end
    local function states()
      local s = {}
      for _, name in ipairs { "src", "snk" } do
        local _, _, json = worker.request("GET", "/connectors/" .. name .. "/status")
        s[#s + 1] = json and json.tasks[1] and json.tasks[1].state
      end
      return table.concat(s, " ")
    end
    local function position()
      local _, _, json = worker.request("GET", "/connectors/src/offsets")
      return json and json.offsets[1] and json.offsets[1].offset.position
    end
    local function settled() return arrived() and position() == #proc.read(file) end
    start()
    proc.wait_for("the first lines", settled, 60)
    proc.wait_for("the offset file", function() return (proc.read(offsets) or ""):find(tostring(#proc.read(file)), 1, true) end)
    -- full
    disk.fill()
    for _ = 1, 10 do write() end -- more than the room that is left in the file's last page
    local old
    proc.stays("the worker", function()
      write()
      old = old or proc.read(offsets)
      return worker.request("GET", "/health") == 200 and states() == "RUNNING RUNNING"
    end, all and 5 or 2)
    for _, path in ipairs { offsets, out } do
      proc.wait_for(path .. " in the log", function()
        return proc.read(log):find(path .. ": No space left on device", 1, true)
      end)
    end
    assert.is_false(arrived())
    local kept = proc.read(offsets)
    assert.is_true(#kept == #old and kept:sub(1, 60) == old:sub(1, 60), "the offset file is not what it was")
    assert.is_nil(proc.read(offsets .. ".tmp"))
    local r = oracle.check(lines(), "F", count)
    assert.equal(0, r.duplicates + r.disorder)
    assert.equal("\n", proc.read(out):sub(-1)) -- no half line
    -- room again
    local began = proc.now()
    disk.free()
    write()
    proc.wait_for("all lines and the offset", settled, 90)
    t.seconds = proc.now() - began
    proc.wait_for("the offset file", function() return (proc.read(offsets) or ""):find(tostring(#proc.read(file)), 1, true) end)
    assert.equal("RUNNING RUNNING", states())
    r = oracle.check(lines(), "F", count)
    assert.equal(0, r.duplicates)
    assert.equal(0, r.disorder)
    if all then -- full again, the log on it, too, and killed meanwhile
      assert.equal(0, worker.process:stop())
      log = disk.dir .. "/log"
      start()
      disk.fill()
      for _ = 1, 10 do write() end
      proc.stays("the worker", function() return worker.process:alive() end, 2)
      worker.process:signal "KILL"
      worker.process:wait(60)
      disk.free()
      start()
      proc.wait_for("all lines after the death", settled, 90)
    end
    assert.equal(0, worker.process:stop())
    r = oracle.check(lines(), "F", count)
    assert.same({}, r.lost)
    t.lines, t.lost, t.duplicates, t.disorder = count, #r.lost, r.duplicates, r.disorder
  end

  it("takes no line of the log: the worker works", function()
    local dir = proc.tmpdir "log"
    local file = dir .. "/in.txt"
    proc.write(file, "1\n2\n")
    proc.write(dir .. "/source.json", http.encode { name = "src", ["connector.class"] = "FileStreamSource", file = file,
      topic = "t" })
    matrix.case({ row = 8, fault = "disk full", mode = "log" }, function()
      local worker = standalone.start { dir = dir, log = "/dev/full", topics = { "t" }, files = { dir .. "/source.json" },
        properties = { ["offset.flush.interval.ms"] = "200" } }
      proc.wait_for("the offset", function()
        assert.is_true(worker.process:alive())
        local _, _, json = worker.request("GET", "/connectors/src/offsets")
        return json and json.offsets and json.offsets[1] and json.offsets[1].offset.position == 4
      end)
      assert.equal(0, worker.process:stop())
    end)
  end)

  it("keeps old offsets, loses nothing, and all goes on when there is room", function()
    disk = tmpfs()
    if disk then matrix.case({ row = 8, fault = "disk full", mode = "tmpfs", limit = 30 }, run) end
    if disk and all then disk.close() end
    if disk and not all then return end
    disk = failing_writes()
    matrix.case({ row = 8, fault = "disk full", mode = "failing writes", limit = 30 }, run)
  end)
end)
