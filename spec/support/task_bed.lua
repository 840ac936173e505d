-- spec/support/task_bed.lua: what specs of running tasks share: librdkafka's mock cluster for all tests of a block, and for
-- each of them a topic, a worker, and a file into which its plugins say what happens to them.
local busted = require "busted"
local files = require "spec.support.files"
local mock = require "spec.support.mock_cluster"
local with = require "spec.support.with"
local worker = require "spec.support.worker"

local _M = {}

--- In front of a plugin's source (one line, which the source shares): say(path, text) adds a line to the file; path nil: nothing.
_M.say = [[local function say(path, text) local f = path and assert(io.open(path, "a")) ]]
  .. [[if f then f:write(text, "\n") f:close() end end ]]

local Bed = {}
Bed.__index = Bed

--- For the block that is being described. options: prefix of topics' names; topics = { "-dlq", ... }: endings of more topics;
-- plugins and config as worker.new has them, config may be a function of the topic. In a test there are .cluster, .worker,
-- .topic (one partition), .name (for a connector, new in each test, too) and .file (empty).
function _M.new(options)
  local bed, number = setmetatable({ options = options }, Bed), 0
  busted.setup(function() bed.cluster = mock.new() end)
  busted.teardown(function() bed.cluster:close() end)
  busted.before_each(function()
    number = number + 1
    bed.topic, bed.name, bed.file = options.prefix .. number, "c" .. number, os.tmpname()
    for _, ending in ipairs { "", unpack(options.topics or {}) } do bed.cluster:topic(bed.topic .. ending, 1) end
    bed:open()
  end)
  busted.after_each(function()
    bed.cluster:produce_fine()
    bed.worker = bed.worker:close()
    os.remove(bed.file)
  end)
  return bed
end

--- A worker in place of the one there is, with these settings besides (`bootstrap`: another cluster). Returns it.
function Bed:open(config, bootstrap)
  local base = self.options.config or {}
  if self.worker then self.worker:close() end
  self.worker = worker.new { plugins = self.options.plugins, bootstrap = bootstrap or self.cluster:bootstrap(),
    config = with(type(base) == "function" and base(self.topic) or base, config) }
  return self.worker
end

--- All that was said so far.
function Bed:said() return assert(files.read(self.file)) end

--- Waits for a pattern (or plain text) in it.
function Bed:wait_said(pattern, plain)
  worker.eventually(function() return self:said():find(pattern, 1, plain) end, function() return self:said() end)
end

--- What the group of the sink .name has committed of .topic.
function Bed:committed() return self.cluster:committed("connect-" .. self.name, self.topic) end

function Bed:wait_committed(n)
  worker.eventually(function() return self:committed() == n end, function() return "committed is " .. self:committed() end)
end

--- Waits until the source .name has stored {"n":n} for its partition {"p":"x"}.
function Bed:wait_offset(n)
  local function offset() return self.worker:offset(self.name, '{"p":"x"}') end
  worker.eventually(function() return offset() == '{"n":' .. n .. "}" end,
    function() return "offset is " .. tostring(offset()) end)
end

return _M
