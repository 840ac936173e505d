-- kit_spec.lua: the authoring kit as a user runs it: luaconnect try, and the completion. No Kafka, no worker.
local proc = require "spec.support.proc"
local standalone = require "spec.support.standalone"
local program = standalone.program

-- Runs `luaconnect ARGS` in a shell with `input`: stdout, status, stderr.
local function try(args, input)
  local dir = proc.tmpdir "kit"
  proc.write(dir .. "/in", input or "")
  local status = os.execute(("%s %s < %s/in > %s/out 2> %s/err"):format(program, args, dir, dir, dir))
  if status > 255 then status = math.floor(status / 256) end
  return proc.read(dir .. "/out"), status, proc.read(dir .. "/err")
end

local MASK = "-t 'MaskField$Value:fields=ssn'"

describe("luaconnect try", function()
  it("JSON lines through a transform", function()
    local out, status, err = try("try " .. MASK, '{"ssn":1,"id":7}\n\n{"ssn":"x","n":1.0,"big":9007199254740993}')
    assert.equal('{"ssn":0,"id":7}\n{"ssn":"","n":1.0,"big":9007199254740993}\n', out)
    assert.equal(0, status)
    assert.equal("", err)
  end)

  it("bad records are told with line and step, the rest comes out", function()
    local out, status, err = try("try " .. MASK, '{"ssn":1}\n{bad\n"text"\n{"ssn":2}\n')
    assert.equal('{"ssn":0}\n{"ssn":0}\n', out)
    assert.equal(1, status)
    assert.matches("stdin:2: JsonParseException: Unexpected character", err, 1, true)
    assert.matches("stdin:3: step 1 (MaskField$Value): DataException: Only Map objects supported", err, 1, true)
  end)

  it("envelopes are taken by what they are, and printed with --schemas", function()
    local envelope = '{"schema":{"type":"struct","fields":[{"field":"a","type":"int32"}]},"payload":{"a":1}}\n'
    local cast = " -t 'Cast$Value:spec=a:int64'"
    assert.equal('{"a":1}\n', (try("try" .. cast, envelope)))
    assert.matches('"type":"int64"', (try("try --schemas" .. cast, envelope)), 1, true)
    local like = '{"schema":"not one","payload":1}\n'
    assert.equal(like, (try("try", like)))
    local null = '{"schema":null,"payload":{"a":1}}\n'
    assert.equal('{"a":1}\n', (try("try", null)))
    assert.equal(null, (try("try --schemaless", null)))
  end)

  it("values are shown as they are: null stays null where there is a default", function()
    local envelope = '{"schema":{"type":"struct","fields":[{"field":"d","type":"int32","optional":true,"default":3}]},'
      .. '"payload":{"d":null}}\n'
    assert.equal('{"d":null}\n', (try("try", envelope)))
    assert.equal("null\n", (try("try -t 'ExtractField$Value:field=d;replace.null.with.default=false'", envelope)))
    assert.equal("3\n", (try("try -t 'ExtractField$Value:field=d'", envelope)))
  end)

  it("records are a sink's without a connector, in a file too", function()
    local dir = proc.tmpdir "kit"
    local steps = "transforms=x\ntransforms.x.type=InsertField$Value\ntransforms.x.offset.field=off\n"
    proc.write(dir .. "/steps.properties", steps)
    proc.write(dir .. "/source.properties", steps .. "connector.class=FileStreamSource\n")
    proc.write(dir .. "/sink.properties", steps .. "connector.class=FileStreamSink\ntopics=t\n")
    assert.equal('{"off":0}\n', (try("try -t 'InsertField$Value:offset.field=off'", "{}")))
    assert.equal('{"off":0}\n', (try(("try %s/steps.properties"):format(dir), "{}")))
    assert.equal('{"off":0}\n', (try(("try %s/sink.properties"):format(dir), "{}")))
    local _, status, err = try(("try %s/source.properties"):format(dir), "{}")
    assert.equal(1, status)
    assert.matches("Only SinkRecord supported", err, 1, true)
  end)

  it("an empty list of a config is a list, and print goes to stderr everywhere", function()
    local dir = proc.tmpdir "kit"
    proc.write(dir .. "/l.lua", [[
local connect = require "connect"
print "loaded"
return connect.transform { name = "L", doc = "d", config = { { "l", type = "list", default = "", doc = "d" } },
  apply = function(self, r)
    print "applied"
    return r:with { value = { l = self.config.l } }
  end,
  examples = { { config = {}, input = { value = 1 }, output = { value = { l = connect.array {} } } } } }
]])
    assert.equal('{"l":[]}\n', (try(("try --plugin-path %s/l.lua -t L"):format(dir), "1")))
    for _, command in ipairs { "docs", "lint", "test", "plugins --json --plugin-path" } do
      local out, status, err = try(("%s %s/l.lua"):format(command, dir))
      assert.equal(0, status, err)
      assert.is_nil(out:find("loaded", 1, true), out)
      assert.is_nil(out:find("applied", 1, true), out)
    end
  end)

  it("raw text with topic, key and headers; --full goes in again with --records", function()
    local out = try("try --raw --topic tt --key 7 --header n=7 --header s=x --full -t 'HoistField$Value:field=line'",
      "a\r\nb\n")
    local line = '{"topic":"tt","partition":0,"key":"7","value":{"line":"%s"},"headers":[{"name":"n","value":7},'
      .. '{"name":"s","value":"x"}],"timestamp":null}\n'
    assert.equal(line:format "a" .. line:format "b", out)
    assert.equal(out, (try("try --records --full", out)))
    local _, status, err = try("try --records", '{"valeu":1}\n')
    assert.equal(1, status)
    assert.matches("a record has no member 'valeu'", err, 1, true)
  end)

  it("the transforms and predicates of connector files, in each shape", function()
    local map = { ["transforms"] = "m", ["transforms.m.type"] = "MaskField$Value", ["transforms.m.fields"] = "ssn",
      ["transforms.m.predicate"] = "p", ["predicates"] = "p", ["predicates.p.type"] = "TopicNameMatches",
      ["predicates.p.pattern"] = "orders", ["topics"] = "orders" }
    local json, properties = {}, {}
    for k, v in pairs(map) do
      json[#json + 1] = ("%q:%q"):format(k, v)
      properties[#properties + 1] = k .. "=" .. v
    end
    local dir = proc.tmpdir "files"
    local body = "{" .. table.concat(json, ",") .. "}"
    proc.write(dir .. "/a.json", body)
    proc.write(dir .. "/b.json", '{"name":"c","config":' .. body .. "}")
    proc.write(dir .. "/c.properties", table.concat(properties, "\n"))
    for _, f in ipairs { "a.json", "b.json", "c.properties" } do
      assert.equal('{"ssn":0}\n', (try("try " .. dir .. "/" .. f, '{"ssn":1}\n')))
      assert.equal('{"ssn":1}\n', (try("try --topic other " .. dir .. "/" .. f, '{"ssn":1}\n')))
    end
    -- more transforms behind those of the file
    assert.equal('{"ssn":0,"x":"y"}\n',
      (try("try " .. dir .. "/a.json -t 'InsertField$Value:static.field=x;static.value=y'", '{"ssn":1}\n')))
    proc.write(dir .. "/bad.json", '{"a":')
    local _, status, err = try("try " .. dir .. "/bad.json", "{}")
    assert.equal(2, status)
    assert.matches("bad.json: ", err, 1, true)
  end)

  it("-p, negate, filtering; escapes in -t", function()
    local p = " -p 'p=TopicNameMatches:pattern=tr.*'"
    assert.equal('{"ssn":1}\n', (try("try -t 'MaskField$Value:fields=ssn;predicate=p;negate=true'" .. p, '{"ssn":1}')))
    assert.equal("", (try("try -t 'Filter:predicate=p'" .. p, '{"ssn":1}')))
    assert.equal('{"a":1,"x":"p;q:r"}\n',
      (try([[try -t 'InsertField$Value:static.field=x;static.value=p\;q\:r']], '{"a":1}')))
    assert.equal('{"a":"1","b":"2"}\n', (try("try -t 'Cast$Value:spec=a:string,b:string'", '{"a":1,"b":2}')))
  end)

  it("--each: old -> new of every step, no colours in a pipe", function()
    local out = try("try --each " .. MASK .. " -t 'Cast$Value:spec=id:string' -t 'RegexRouter:regex=(.*);replacement=x-$1'"
      .. " -t 'InsertHeader:header=h;value.literal=1' -t 'MaskField$Value:fields=none'", '{"ssn":1,"id":7}\n')
    assert.equal([[
line 1
  1 MaskField$Value
      value.ssn: 1 -> 0
  2 Cast$Value
      value.id: 7 -> "7"
  3 RegexRouter
      topic: try -> x-try
  4 InsertHeader
      header h: (absent) -> 1
  5 MaskField$Value
      value.none: (absent) -> null
  = {"ssn":0,"id":"7","none":null}
]], out)
    out = try("try --each -t 'Filter'", "{}\n")
    assert.matches("1 Filter: filtered out\n", out, 1, true)
  end)

  it("transforms of one's own; a mistake in one shows where", function()
    local dir = proc.tmpdir "own"
    proc.write(dir .. "/twice.lua", [[
local connect = require "connect"
return connect.transform { name = "Twice", on = { "key", "value" }, config = { { "field", required = true, doc = "x" } },
  apply_value = function(self, value, schema)
    local out = connect.copy(value)
    out[self.config.field] = out[self.config.field] * 2
    return out, schema
  end }
]])
    local args = "try --plugin-path " .. dir .. " -t 'Twice$Value:field=n'"
    local out, status, err = try(args, '{"n":4}\n{"n":"x"}\n{"n":5}\n')
    assert.equal('{"n":8}\n{"n":10}\n', out)
    assert.equal(1, status)
    assert.matches("stdin:2: step 1 (Twice$Value): ", err, 1, true)
    assert.matches("twice.lua:5", err, 1, true)
  end)

  it("what is wrong with the call is status 2", function()
    for args, message in pairs {
      ["-t 'Nope:a=b'"] = "Class Nope could not be found",
      ["-t 'MaskField$Value'"] = 'Missing required configuration "fields"',
      ["-t 'MaskField$Value:fields'"] = "'fields' is not key=value",
      ["-p 'Filter'"] = "is not name=Class",
      ["--header x"] = "is not name=value",
      ["--bogus"] = "unknown option --bogus",
      ["-n x"] = "needs a number",
      ["/nowhere.json"] = "cannot read /nowhere.json: No such file",
      ["--input /nowhere"] = "cannot read /nowhere: No such file",
      ["--raw --records"] = "--raw goes with neither",
    } do
      local out, status, err = try("try " .. args, "{}\n")
      assert.equal(2, status, args)
      assert.equal("", out)
      assert.matches(message, err, 1, true)
    end
    local _, status, err = try("try -t 'MaskField$Value:fields=a;feilds=b'", "{}\n")
    assert.equal(0, status)
    assert.matches("MaskField$Value has no setting 'feilds'", err, 1, true)
  end)

  it("-n stops; a closed pipe and a signal end it quietly", function()
    assert.equal("1\n2\n", (try("try -n 2", "1\n2\n3\n")))
    local dir = proc.tmpdir "pipe"
    os.execute(("yes '{}' | %s try 2> %s/err | head -1 > %s/out"):format(program, dir, dir))
    assert.equal("{}\n", proc.read(dir .. "/out"))
    assert.equal("", proc.read(dir .. "/err"))
  end)

  it("follows a pipe: a line comes out before the next goes in", function()
    local dir = proc.tmpdir "follow"
    os.execute("mkfifo " .. dir .. "/in")
    local p = proc.start { "/bin/sh", "-c", ("exec %s try < %s/in > %s/out"):format(program, dir, dir), name = "try" }
    local f = assert(io.open(dir .. "/in", "w"))
    f:setvbuf "no"
    f:write "1\n"
    proc.wait_for("the first line", function() return proc.read(dir .. "/out") == "1\n" end, 30)
    f:write "2\n"
    proc.wait_for("the second line", function() return proc.read(dir .. "/out") == "1\n2\n" end, 30)
    f:close()
    assert.equal(0, p:wait(20))
  end)

  it("--watch runs again when the config changes", function()
    local dir = proc.tmpdir "watch"
    proc.write(dir .. "/in", '{"a":1,"b":2}\n')
    proc.write(dir .. "/c.properties", "transforms=m\ntransforms.m.type=MaskField$Value\ntransforms.m.fields=a\n")
    local p = proc.start { "/bin/sh", "-c", ("exec %s try --watch %s/c.properties < %s/in > %s/out"):format(program, dir,
      dir, dir), name = "watch" }
    proc.wait_for("a run", function() return (proc.read(dir .. "/out") or ""):find('{"a":0,"b":2}', 1, true) end, 30)
    proc.write(dir .. "/c.properties", "transforms=m\ntransforms.m.type=MaskField$Value\ntransforms.m.fields=a,b\n")
    proc.wait_for("the next", function() return proc.read(dir .. "/out"):find('{"a":0,"b":0}', 1, true) end, 30)
    p:signal "TERM"
    p:wait(20)
  end)
end)

-- The subcommands, as help lists them.
local function commands()
  local out = {}
  for name in (try "help"):gmatch "\n  (%l+)" do out[#out + 1] = name end
  return out
end

describe("luaconnect help", function()
  it("of each command: usage, what it does, its options", function()
    local list = commands()
    assert.is_true(#list >= 12)
    for _, name in ipairs(list) do
      local out, status = try(name .. " --help")
      -- the workers' status is that of Connect's main classes
      assert.equal((name == "distributed" or name == "standalone") and 1 or 0, status, name)
      assert.matches("Usage: luaconnect " .. name, out, 1, true)
      assert.matches("\n\n%u?%l[^\n]+\n", out)
      assert.equal(out, (try("help " .. name)))
    end
    assert.equal(2, (select(2, try "help nope")))
    assert.equal(2, (select(2, try "version nope")))
    assert.equal(1, (select(2, try "nope")))
  end)
end)

describe("luaconnect completion", function()
  local dir
  setup(function()
    dir = proc.tmpdir "completion"
    for _, shell in ipairs { "bash", "zsh" } do proc.write(dir .. "/c." .. shell, (try("completion " .. shell))) end
  end)

  local function complete(words)
    return proc.run(([[bash -c 'source %s/c.bash; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _luaconnect;]]
      .. [[ echo ${COMPREPLY[@]}']]):format(dir, words))
  end

  it("bash: commands, options, files; every one of the table", function()
    assert.equal("try\n", complete "luaconnect tr")
    assert.equal("bash zsh\n", complete 'luaconnect completion ""')
    assert.equal("source sink\n", complete 'luaconnect new s')
    local all = " " .. complete 'luaconnect ""':gsub("\n", " ")
    local for_help = " " .. complete 'luaconnect help ""':gsub("\n", " ")
    for _, name in ipairs(commands()) do
      assert.matches(" " .. name .. " ", all, 1, true)
      assert.matches(" " .. name .. " ", for_help, 1, true)
      local offered = " " .. complete("luaconnect " .. name .. " -"):gsub("\n", " ")
      assert.matches(" --help ", offered, 1, true)
      for line in (try("help " .. name)):gmatch "[^\n]+" do
        local letter, long = line:match "^  (%-%a), (%-%-[%l-]+)"
        long = long or line:match "^      (%-%-[%l-]+)"
        for _, option in ipairs { long or letter, letter } do
          assert.matches(" " .. option:gsub("%p", "%%%0") .. "[ =]", offered, 1, false, name)
        end
      end
    end
    assert.matches("--source", complete "luaconnect try --so", 1, true)
    proc.write(dir .. "/some.json", "")
    assert.equal(dir .. "/some.json\n", complete("luaconnect try --sink " .. dir .. "/so"))
    assert.equal(2, select(2, try "completion tcsh"))
    assert.equal(2, select(2, try "completion"))
  end)

  it("zsh", function()
    assert.matches("^#compdef luaconnect", proc.read(dir .. "/c.zsh") or "")
    if os.execute "command -v zsh > /dev/null" ~= 0 then return pending "no zsh here" end
    os.execute(("mkdir -p %s/f && cp %s/c.zsh %s/f/_luaconnect"):format(dir, dir, dir))
    proc.write(dir .. "/t.zsh", ([[
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'fpath=(%s/f $fpath); autoload -U compinit; compinit -u -D; echo REA''DY'
zpty -r -m z out '*READY*'
zpty -w -n z 'luaconnect comple'$'\t'
zpty -r -m z out '*completion*'
zpty -w -n z ' zs'$'\t'
zpty -r -m z out '*zsh*'
print found
]]):format(dir))
    assert.matches("found", (proc.run("timeout -k 1 60 zsh -f " .. dir .. "/t.zsh 2>&1")), 1, true)
  end)
end)
