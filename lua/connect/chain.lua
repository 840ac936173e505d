-- connect/chain.lua: the transform chain of a task. All stages run over all records of a batch in one loop, made
-- for the stages there are so that LuaJIT compiles it to one trace. Private; core/script/chain.c calls it.
local fx = require "connect.ffi"
local cells = require "connect.cells"

local x = fx.exchange()

local _M = {}

-- The generated loop keeps stages in locals, of which a function has 200; longer chains take the plain loop.
local MOST_UNROLLED = 30

local function noop() end

-- for record i in [from, to): stages 1..n; x.index and x.stage say where an error was raised.
local function generate(stages)
  local out = { "local x, S = ...\nreturn function(from, to)\n  local records = x.batch.records\n" }
  local function add(text, ...) out[#out + 1] = text:format(...) end
  for k, s in ipairs(stages) do
    add("  local o%d, f%d = S[%d].object, S[%d].apply\n", k, k, k, k)
    if s.predicate then add("  local p%d, t%d = S[%d].predicate, S[%d].test\n", k, k, k, k) end
  end
  add "  for i = from, to - 1 do\n    local r = records + i\n    if r.state == 0 then\n      x.index = i\n"
  for k, s in ipairs(stages) do
    add("      x.stage = %d\n", k - 1)
    local call = ("if f%d(o%d, r, %q) then r.state = 1 goto next end"):format(k, k, s.slot)
    if s.predicate then
      add("      if %s t%d(p%d, r) then %s end\n", s.negate and "not" or "", k, k, call)
    else
      add("      %s\n", call)
    end
  end
  add "    end\n    ::next::\n  end\nend\n"
  return loadstring(table.concat(out), "=chain")(x, stages)
end

local function step(stages, i, from)
  local r = x.batch.records + i
  if r.state ~= 0 then return end
  x.index = i
  for k = from + 1, #stages do
    local s = stages[k]
    x.stage = k - 1
    local on = true
    if s.predicate then
      on = s.test(s.predicate, r) and true or false
      if s.negate then on = not on end
    end
    if on and s.apply(s.object, r, s.slot) then
      r.state = 1
      return
    end
  end
end

--- The functions of a chain's state. `load(path, root, folder, standard)` gives a file's declarations.
function _M.new(load, is_source)
  local stages, all, files = {}, {}, {}
  local run, author
  local R = {}
  cells.is_source = is_source

  local function scripted()
    author = author or require("connect.chain_author").new(is_source)
    return author
  end

  -- An instance of a declaration; its config is in self.config too.
  local function instance(path, root, folder, standard, index, config)
    local list = files[path]
    if not list then
      list = load(path, root, folder, standard)
      files[path] = list
    end
    local decl = list[index]
    local object = setmetatable({ config = config }, { __index = decl })
    return object, decl
  end

  --- The problems that checks of rows and validate find, as describe.validate returns them.
  function R.check(path, root, folder, standard, index, config)
    local _, decl = instance(path, root, folder, standard, index, config)
    return require("connect.describe").validate(decl, config, {})
  end

  --- Makes and configures an object: a number to name it by.
  function R.make(path, root, folder, standard, index, config)
    local object, decl = instance(path, root, folder, standard, index, config)
    all[#all + 1] = { object = object, decl = decl }
    if decl.configure then object:configure(config) end
    return #all
  end

  --- A stage of an object and, or nil, its predicate's.
  function R.stage(at, slot, predicate, negate)
    local object, decl = all[at].object, all[at].decl
    local s = { object = object, slot = slot or "value", negate = negate }
    s.apply = decl.apply_cells or scripted().apply(decl, slot)
    if predicate then
      local d = all[predicate].decl
      s.predicate = all[predicate].object
      s.test = d.test_cells or scripted().test(d)
    end
    stages[#stages + 1] = s
  end

  function R.finish()
    run = #stages <= MOST_UNROLLED and generate(stages) or function(from, to)
      for i = from, to - 1 do step(stages, i, 0) end
    end
  end

  --- Records [from, to) of x.batch; the first one goes on at `stage`.
  function R.run(from, stage, to)
    cells.next_run()
    if author then author.begin() end
    if stage > 0 then
      step(stages, from, stage)
      from = from + 1
    end
    run(from, to)
    if author then author.done() end
  end

  --- After a run that raised.
  function R.run_failed() if author then author.done() end end

  function R.close_all()
    local first
    for _, o in ipairs(all) do
      if o.decl.close then
        local ok, err = pcall(o.decl.close, o.object)
        if not ok and not first then first = err end
      end
    end
    all, stages, run = {}, {}, noop
    if first then error(first, 0) end
  end

  return R
end

return _M
