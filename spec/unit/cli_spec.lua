-- cli_spec.lua: the program from outside: commands, exit statuses, signals, connector files; and the
-- readers of connector files through FFI.
local core = require "spec.support.core"
local proc = require "spec.support.proc"
local golden = require "spec.support.golden"
local standalone = require "spec.support.standalone"
local program = standalone.program
local C, ffi = core.load { "base/err.h", "base/props.h", "base/strv.h", "cli/connector_file.h",
  "cli/embedded_broker.h" }

local function run(args, seconds)
  local t = { program, name = "luaconnect" }
  for _, a in ipairs(args) do t[#t + 1] = a end
  local p = proc.start(t)
  return p:wait(seconds or 20), p:log()
end

describe("connector files", function()
  local function load(text)
    local path = proc.tmpdir "connector" .. "/c"
    proc.write(path, text)
    local f, err = ffi.new "lc_connector_file_t", core.err()
    if C.lc_connector_file_load(path, f, err) ~= 0 then
      local cls = err.cls ~= nil and ffi.string(err.cls) or nil
      local quoted = "'" .. path:gsub("%p", "%%%0") .. "'"
      return nil, (core.msg(err):gsub(quoted, "FILE")), cls
    end
    local out = { name = ffi.string(f.name), config = core.table(f.config), state = tonumber(f.initial_state) }
    C.lc_connector_file_free(f)
    return out
  end
  local missing = "Connector configuration at FILE is missing the mandatory 'name' configuration"

  it("JSON of strings", function()
    local c = load '{"name":"n","a":1.50,"b":true,"c":null}'
    assert.equal("n", c.name)
    assert.same({ name = "n", a = "1.50", b = "true", c = false }, c.config)
    assert.equal(tonumber(C.LC_TARGET_NONE), c.state)
  end)

  it("a create request; unknown properties are ignored", function()
    local c = load '{"name":"n","config":{"a":"1"},"initial_state":"stopped","more":[1]}'
    assert.same({ name = "n", a = "1" }, c.config)
    assert.equal(tonumber(C.LC_TARGET_STOPPED), c.state)
    local _, text = load '{"name":"n","config":{"name":"m"}}'
    assert.equal("Connector name configuration in 'config' doesn't match the one specified in 'name' at FILE", text)
  end)

  it("properties", function()
    local c = load "name=n\n# comment\na : 1 \\\n  2\n"
    assert.same({ name = "n", a = "1 2" }, c.config)
  end)

  it("what has no name", function()
    for _, text in ipairs { "", "{", "[]", "null", '{"a":"b"}', "a=b", '{"config":{}}', '{"name":null}',
      '{"name":"n","initial_state":"bogus","config":{}}' } do
      local _, message = load(text)
      assert.equal(missing, message, text)
    end
    assert.equal("", load("name=\n").name)
  end)

  it("what cannot be read", function()
    local f, err = ffi.new "lc_connector_file_t", core.err()
    assert.equal(-1, C.lc_connector_file_load("/nowhere/c.json", f, err))
    assert.equal("/nowhere/c.json (No such file or directory)", core.msg(err))
    assert.equal("java.io.FileNotFoundException", ffi.string(err.cls))
    local dir = proc.tmpdir "fifo"
    err = core.err()
    assert.equal(-1, C.lc_connector_file_load(dir, f, err))
    os.execute("mkfifo " .. dir .. "/fifo")
    err = core.err()
    assert.equal(-1, C.lc_connector_file_load(dir .. "/fifo", f, err))
    assert.matches("not a regular file", core.msg(err))
  end)
end)

describe("the embedded broker", function()
  it("has a port and creates the topics it is given", function()
    local topics, err = ffi.new "lc_strv_t", core.err()
    C.lc_strv_add(topics, "one")
    local b = C.lc_embedded_broker_new(topics, err)
    assert.is_true(b ~= nil, core.msg(err))
    assert.matches("^127%.0%.0%.1:%d+", ffi.string(C.lc_embedded_broker_bootstrap(b)))
    local p = core.props { ["bootstrap.servers"] = "x:1", ["consumer.session.timeout.ms"] = "7000" }
    C.lc_embedded_broker_configure(b, p)
    assert.equal("7000", core.table(p)["consumer.session.timeout.ms"])
    assert.matches("^127", core.table(p)["bootstrap.servers"])
    C.lc_embedded_broker_free(b)
    C.lc_strv_free(topics)
  end)
end)

describe("commands", function()
  it("help lists every command, also without arguments", function()
    local status, text = run { "help" }
    assert.equal(0, status)
    for _, c in ipairs { "distributed", "standalone", "plugins", "version", "help" } do
      assert.matches("\n  " .. c .. " ", text)
    end
    assert.equal(0, (run { "--help" }))
    assert.equal(1, (run {}))
  end)

  it("usage is status 1, as of Connect's main classes", function()
    for _, args in ipairs { { "distributed" }, { "distributed", "--help" }, { "standalone" },
      { "standalone", "--embedded-broker" }, { "standalone", "x", "--help" }, { "standalone", "--bogus", "x" } } do
      local status, text = run(args)
      assert.equal(1, status)
      assert.matches("Usage: luaconnect " .. args[1], text)
    end
    local status, text = run { "bogus" }
    assert.equal(1, status)
    assert.matches("unknown command 'bogus'", text)
  end)

  it("version", function()
    local status, text = run { "version" }
    assert.equal(0, status)
    assert.matches("^luaconnect %d+%.%d+%.%d+ %(Kafka Connect 4%.3%.1, librdkafka", text)
  end)

  it("plugins, as a table and as JSON, broken ones with their error", function()
    local dir = proc.tmpdir "plugins"
    proc.write(dir .. "/broken.lua", "this is no Lua")
    local status, text = run { "plugins", "--plugin-path=" .. dir }
    assert.equal(0, status)
    assert.matches("TYPE%s+CLASS%s+VERSION%s+LOCATION\n", text)
    assert.matches("org.apache.kafka.connect.json.JsonConverter", text, 1, true)
    assert.matches("not usable:\n[^\n]*broken", text)
    local out = proc.run(program .. " plugins --json --plugin-path=" .. dir .. " 2>/dev/null")
    local list, broken = golden.decode(out), 0
    for _, p in ipairs(list) do if p.error then broken = broken + 1 end end
    assert.equal(1, broken)
    assert.equal(2, (run { "plugins", "/nowhere/x.properties" }))
  end)
end)

describe("the life of a worker", function()
  local function start_with(t)
    t.dir = proc.tmpdir "worker"
    local file = t.dir .. "/worker.properties"
    proc.write(file, standalone.properties(t.dir, t.port or proc.free_port(), t.properties))
    local args = { program, t.mode or "standalone", name = "worker", dir = t.dir }
    if not t.no_broker then args[#args + 1] = "--embedded-broker" end
    args[#args + 1] = file
    for _, f in ipairs(t.files or {}) do args[#args + 1] = f end
    return proc.start(args)
  end

  it("stops on SIGTERM and on SIGINT with status 0", function()
    for _, signal in ipairs { "TERM", "INT" } do
      local w = standalone.start()
      w.healthy()
      w.process:signal(signal)
      assert.equal(0, w.process:wait(15))
      assert.matches("Kafka Connect stopped", w.process:log())
    end
  end)

  it("answers 404 pages, then serves", function()
    local w = standalone.start()
    local seen = {}
    proc.wait_for("/health", function()
      local status = w.request("GET", "/health")
      seen[status] = true
      return status == 200
    end, 30)
    for status in pairs(seen) do assert.is_true(status == 0 or status == 404 or status == 503 or status == 200) end
    assert.equal(0, w.process:stop())
  end)

  it("SIGTERM ends a start that waits for a broker", function()
    local p = start_with { no_broker = true }
    proc.wait_for("the start", function() return p:log():find("Advertised URI", 1, true) end, 20)
    p:signal "TERM"
    assert.equal(0, p:wait(60))
  end)

  it("status 2: what is wrong with the settings", function()
    local status, text = run { "standalone", "/nowhere/w.properties" }
    assert.equal(2, status)
    assert.matches("ERROR MAIN    Stopping due to error\n", text)
    assert.matches("java.nio.file.NoSuchFileException: /nowhere/w.properties", text, 1, true)
    for key, message in pairs {
      ["key.converter"] = 'Missing required configuration "key.converter" which has no default value.',
      ["offset.storage.file.filename"] = 'Missing required configuration "offset.storage.file.filename" which has no default value.'
    } do
      local p = start_with { properties = { [key] = false } }
      assert.equal(2, p:wait(60))
      assert.matches("org.apache.kafka.common.config.ConfigException: " .. message, p:log(), 1, true)
    end
    local p = start_with { properties = { ["value.converter"] = "no.such.Converter" } }
    assert.equal(2, p:wait(60))
    assert.matches("Invalid value no.such.Converter for configuration value.converter: Class no.such.Converter could not be found.",
      p:log(), 1, true)
  end)

  it("status 2: the port is taken, or needs TLS", function()
    local w = standalone.start()
    w.healthy()
    local p = start_with { port = w.port }
    assert.equal(2, p:wait(60))
    assert.matches("Unable to initialize REST server", p:log())
    assert.matches("Failed to bind to /127.0.0.1:" .. w.port, p:log(), 1, true)
    assert.matches("Address already in use", p:log())
    assert.equal(0, w.process:stop())
    p = start_with { properties = { listeners = "https://127.0.0.1:0" } }
    assert.equal(2, p:wait(60))
    assert.matches("https://127.0.0.1:0", p:log(), 1, true)
  end)

  it("status 3: a connector file that does not do", function()
    local dir = proc.tmpdir "files"
    for name, t in pairs {
      ["no-name"] = { "connector.class=FileStreamSource\n", "is missing the mandatory 'name' configuration" },
      ["bad-class"] = { "name=a\nconnector.class=x.Y\n", "Failed to find any class that implements Connector and which name matches x.Y" },
      ["no-class"] = { "name=a\ntopic=b\n", "contains no connector type" },
    } do
      local file = dir .. "/" .. name
      proc.write(file, t[1])
      local p = start_with { files = { file } }
      assert.equal(3, p:wait(20))
      assert.matches("Stopping after connector error", p:log())
      assert.matches(t[2], p:log(), 1, true)
    end
    local p = start_with { files = { dir .. "/nowhere" } }
    assert.equal(3, p:wait(20))
    assert.matches("FileNotFoundException: " .. dir .. "/nowhere", p:log(), 1, true)
  end)

  it("creates the connectors of its files before it is healthy, and moves lines", function()
    local dir = proc.tmpdir "lines"
    proc.write(dir .. "/in", "one\ntwo\n")
    proc.write(dir .. "/source.properties", "name=src\nconnector.class=FileStreamSource\nfile=" .. dir ..
      "/in\ntopic=t\n")
    proc.write(dir .. "/sink.json", '{"name":"snk","config":{"connector.class":"FileStreamSink","topics":"t","file":"' ..
      dir .. '/out"}}')
    local w = standalone.start { topics = { "t" }, files = { dir .. "/source.properties", dir .. "/sink.json" } }
    w.healthy()
    local _, _, names = w.request("GET", "/connectors")
    table.sort(names)
    assert.same({ "snk", "src" }, names)
    proc.wait_for("the lines", function() return proc.read(dir .. "/out") == "one\ntwo\n" end, 30)
    proc.append(dir .. "/in", "three\n")
    proc.wait_for("the third line", function() return proc.read(dir .. "/out") == "one\ntwo\nthree\n" end, 30)
    assert.equal(0, w.process:stop())
  end)
end)
