-- authoring_spec.lua: every snippet of docs/authoring.md and README's section on the kit. Lua files are written in
-- the page's order, commands are run beside them and must print what stands below them.
local proc = require "spec.support.proc"
local standalone = require "spec.support.standalone"
local program = standalone.program

if program:sub(1, 1) ~= "/" then program = os.getenv "PWD" .. "/" .. program end

-- The code of a page: a list of { kind =, text =, line = }. A block without a kind is one, too.
local function blocks(path)
  local out, open, number = {}, nil, 0
  local prose = true -- a line of four blanks is code only after an empty line
  for line in io.lines(path) do
    number = number + 1
    if line:find "^```" then
      if open then
        open = nil
      else
        open = { kind = line:match "^```(%S*)", text = "", line = number }
        out[#out + 1] = open
      end
      prose = false
    elseif open then
      open.text = open.text .. line .. "\n"
    elseif line:find "^    %S" and not prose then
      local last = out[#out]
      if last and last.kind == "indented" and last.upto == number - 1 then
        last.text, last.upto = last.text .. line:sub(5) .. "\n", number
      else
        out[#out + 1] = { kind = "indented", text = line:sub(5) .. "\n", line = number, upto = number }
      end
    else
      prose = line:find "%S" ~= nil
    end
  end
  assert(not open, path .. ": a block is not closed")
  return out
end

-- Commands and what they print: a list of { command =, output = }.
local function commands(text)
  local out = {}
  for line in text:gmatch "(.-)\n" do
    local command = line:match "^%$ (.*)$"
    if command then
      out[#out + 1] = { command = command, output = "" }
    else
      assert(out[1], "output before the first command: " .. line)
      out[#out].output = out[#out].output .. line .. "\n"
    end
  end
  return out
end

-- "..." stands for any text, a line of it for any lines.
local function fits(want, got)
  local pattern = want:gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0")
  pattern = pattern:gsub("\n%%%.%%%.%%%.\n", "\n%%.%%.%%."):gsub("%%%.%%%.%%%.", ".-")
  return got:find("^" .. pattern .. "$") ~= nil
end

local worker, dir

local function run(command)
  if command:find("localhost:8083", 1, true) then
    if not worker then
      worker = standalone.start { properties = { ["plugin.path"] = dir } }
      worker.healthy()
      return nil -- the change is made with the worker there: again
    end
    command = command:gsub("localhost:8083", "127.0.0.1:" .. worker.port)
  end
  local out = proc.run(("cd %s && PATH=%s/bin:$PATH timeout -k 5 60 bash -c %s 2>&1"):format(dir, dir .. "/..",
    proc.quote(command)))
  return (out == "" or out:find "\n$") and out or out .. "\n"
end

describe("docs/authoring.md", function()
  local page = blocks "docs/authoring.md"
  setup(function()
    local root = proc.tmpdir "authoring"
    dir = root .. "/page"
    os.execute(("mkdir -p %s %s/bin && ln -s %s %s/bin/luaconnect"):format(dir, root, program, root))
  end)
  teardown(function() if worker then worker.process:stop(30) end end)

  it("has only snippets that are run", function()
    local files, lines = 0, 0
    for _, b in ipairs(page) do
      local where = "docs/authoring.md:" .. b.line
      if b.kind == "lua" then
        assert.is_truthy(b.text:match "^%-%- file: %S+%.lua\n", where .. ": a Lua snippet begins with -- file: NAME")
        files = files + 1
      else
        assert.equal("console", b.kind, where .. ": snippets are lua (a file) or console (commands)")
        assert.is_true(#commands(b.text) > 0, where)
        lines = lines + #commands(b.text)
      end
    end
    assert.is_true(files >= 10 and lines >= 20)
    -- each command of the kit is taught
    for _, name in ipairs { "new", "try", "test", "lint", "repl", "docs", "plugins" } do
      local found = false
      for _, b in ipairs(page) do
        found = found or (b.kind == "console" and b.text:find("luaconnect " .. name, 1, true) ~= nil)
      end
      assert.is_true(found, name)
    end
  end)

  it("they load, and print what the page says", function()
    -- the worker reads plugin files when it starts: before the first change that it is to notice
    local needs
    for _, b in ipairs(page) do needs = needs or (b.text:find("localhost:8083", 1, true) and b) end
    for _, b in ipairs(page) do
      local where = "docs/authoring.md:" .. b.line
      if b.kind == "lua" then
        local name = b.text:match "^%-%- file: (%S+)"
        os.execute(("mkdir -p %s/%s"):format(dir, name:match "^(.*)/" or "."))
        proc.write(dir .. "/" .. name, b.text)
        if not name:find "_spec%.lua$" then
          assert(loadfile(dir .. "/" .. name), where)
        end
      else
        if b == needs then run "localhost:8083" end
        for _, c in ipairs(commands(b.text)) do
          local got = run(c.command)
          if not fits(c.output, got) then
            error(("%s: $ %s\nprints\n%s\nnot\n%s"):format(where, c.command, got, c.output), 0)
          end
        end
      end
    end
  end)

  it("its plugins can be used, all of them", function()
    local out = proc.run(("cd %s && %s plugins --plugin-path . 2>&1"):format(dir, program))
    assert.is_nil(out:find("not usable", 1, true), out)
    for _, b in ipairs(page) do
      local name = b.kind == "lua" and b.text:match "^%-%- file: (%S+)"
      if name and not name:find "_spec%.lua$" and not name:find "/names%.lua$" then
        assert.is_truthy(out:find("./" .. name:gsub("/init%.lua$", ""), 1, true), name)
      end
    end
  end)
end)

describe("README.md", function()
  it("its lines on trying print what they say", function()
    local text = proc.read "README.md"
    local section = assert(text:match "\n## Try a transform\n(.-)\n## ")
    local n = 0
    for command, want in section:gmatch "    %$ ([^\n]+)\n    ([^\n]+)\n" do
      n = n + 1
      local got = proc.run((command:gsub("luaconnect", program)))
      assert.is_true(fits(want .. "\n", got), command .. ": " .. got)
    end
    assert.is_true(n >= 1)
    -- names no command that is not there
    for name in section:gmatch "`luaconnect (%l+)" do
      assert.equal(0, (select(2, proc.run(program .. " " .. name .. " --help"))), name)
    end
  end)
end)
