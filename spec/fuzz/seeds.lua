-- seeds.lua TARGET FOLDER: first inputs of a fuzz target, made from the recordings in spec/golden.
package.path = "./?.lua;" .. package.path
local files = require "spec.support.files"
local golden = require "spec.support.golden"

local target, folder = arg[1], arg[2]
local count = 0

local function seed(text)
  count = count + 1
  files.write(("%s/seed-%04d"):format(folder, count), text)
end

local function lines(path)
  local f = assert(io.open(path, "rb"))
  local next_line = f:lines()
  return function()
    local line = next_line()
    if not line then f:close() end
    return line
  end
end

local function read(path) return assert(files.read(path)) end

-- the `bytes` of a recorded case that are text
local function bytes(case) return type(case.bytes) == "string" and case.bytes or nil end

local function counted(s) return string.char(math.min(#s, 200)) .. s:sub(1, 200) end

local converters = "spec/golden/converters/"
local make = {}

function make.json()
  for line in lines(converters .. "JsonConverter-toConnect.jsonl") do
    local text = bytes(golden.decode(line))
    if text then seed("\0" .. text) seed("\3" .. text) end
  end
end

function make.envelope()
  for line in lines(converters .. "JsonConverter-toConnect.jsonl") do
    local case = golden.decode(line)
    local text = bytes(case)
    if text then
      local schemaless = (case.config or {})["schemas.enable"] == "false"
      seed("\1" .. (schemaless and "\4" or "\5") .. text)
    end
  end
end

function make.values()
  for line in lines(converters .. "SimpleHeaderConverter.jsonl") do
    local text = bytes(golden.decode(line))
    if text then seed(text) end
  end
end

function make.properties()
  for _, name in ipairs { "connect-distributed", "connect-standalone" } do
    local f = io.open("config/" .. name .. ".properties")
    if f then
      f:close()
      seed((name:find "standalone" and "\1" or "\0") .. read("config/" .. name .. ".properties"))
    end
  end
  seed "\0a=b\\\n  c\\u00e4\n! comment\nk : v\n"
end

function make.patterns()
  for line in lines "spec/golden/regexes.jsonl" do
    local case = golden.decode(line)
    local text = type(case.texts) == "table" and case.texts[1]
    seed("\0" .. counted(case.pattern) .. counted(text and text.replacement or "$1") .. (text and text.text or "ab"))
  end
  for line in lines "spec/golden/dates.jsonl" do
    local case = golden.decode(line)
    local text = type(case.parse) == "table" and case.parse[1]
    seed("\1" .. counted(case.pattern) .. ("\0"):rep(9) .. (text and text.text or "2020"))
  end
end

function make.plugin()
  local p = io.popen "ls lua/transforms/*.lua lua/predicates/*.lua connectors/*/init.lua"
  for path in p:lines() do seed(read(path)) end
  p:close()
end

-- The bytes of these only choose: long random ones reach more than what grows from an empty corpus.
local function random(n)
  local state = 12345
  for _ = 1, n do
    local out = {}
    for i = 1, 400 do
      state = state * 16807 % 2147483647
      out[i] = string.char(math.floor(state / 256) % 256)
    end
    seed(table.concat(out))
  end
end

function make.chain() random(200) end

function make.connector() random(100) end

-- Inputs that once went wrong, one file each: spec/fuzz/seeds/TARGET/NAME.
local found = io.popen(("ls spec/fuzz/seeds/%s 2>/dev/null"):format(target))
for name in found:lines() do seed(read(("spec/fuzz/seeds/%s/%s"):format(target, name))) end
found:close()

if make[target] then make[target]() end
