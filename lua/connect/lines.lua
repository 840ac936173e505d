-- connect/lines.lua: text files as batches of records and back, in C (core/file). No line enters Lua.
local fx = require "connect.ffi"
local record = require "connect.record"
local open_files = require "connect.open_files"

local ffi, C = fx.ffi, fx.C
local exchange = fx.exchange()

local _M = {}

local function is_open(x) return x.c ~= nil end

local function check_room(path)
  local full = path and open_files.full()
  if full then error(("lines: %s: %s"):format(path, full), 3) end
end

local Reader = {}
Reader.__index = Reader

--- A reader of lines: {file = path or nil for stdin, topic =, batch_size =, position = first byte,
-- skip_large = true to skip lines above the producer's max.request.size, timestamps = true to stamp records
-- with the wall clock (else they get the producer's time)}.
function _M.reader(options)
  local conf = ffi.new "lc_line_reader_conf_t"
  local file = options.file ~= "" and options.file or nil
  if type(options.topic) ~= "string" then error("lines.reader: topic is missing", 2) end
  check_room(file)
  conf.path, conf.topic = file, options.topic
  conf.position = options.position or 0
  conf.max_line = options.max_line or exchange.max_request_size
  local size = options.batch_size or 2000
  conf.batch_size = size < 1 and 1 or size
  conf.skip_large = options.skip_large or false
  conf.timestamps = options.timestamps or false
  conf.stop = exchange.stop
  return open_files.add(setmetatable({ c = ffi.gc(C.lc_line_reader_new(conf), C.lc_line_reader_free) }, Reader),
    is_open)
end

--- The next batch of lines, or nil: nothing now. Raises when the file cannot be read.
function Reader:poll()
  if not self.c then error("lines: the reader is closed", 2) end
  local handle, slot = self.handle, self.slot
  if not handle then handle, slot = record.empty() end
  self.handle = nil
  if C.lc_line_reader_poll(self.c, slot, fx.err()) < 0 then fx.raise() end
  if #handle > 0 then return handle end
  self.handle, self.slot = handle, slot -- for the next time
  return nil
end

--- Byte position behind the last line handed out.
function Reader:position() return tonumber(C.lc_line_reader_position(self.c)) end

--- Close the file; batches stay valid.
function Reader:close()
  if self.c then
    C.lc_line_reader_free(ffi.gc(self.c, nil))
    self.c = nil
  end
end

local Writer = {}
Writer.__index = Writer

--- A writer that appends to a file (nil or "": stdout).
function _M.writer(path)
  if path == "" then path = nil end
  check_room(path)
  local c = C.lc_line_writer_new(path, exchange.stop, fx.err())
  if c == nil then fx.raise() end
  return open_files.add(setmetatable({ c = ffi.gc(c, C.lc_line_writer_free) }, Writer), is_open)
end

--- One line a record of the batch. Raises a retriable error when the disk is full: then nothing of the batch
-- is in the file.
function Writer:write(batch)
  if not self.c then error("lines: the writer is closed", 2) end
  if not record.is_batch(batch) or batch.b == nil then error("lines: a batch expected, got " .. type(batch), 2) end
  if C.lc_line_writer_write(self.c, batch.b, fx.err()) < 0 then fx.raise() end
end

function Writer:close()
  if self.c then
    C.lc_line_writer_free(ffi.gc(self.c, nil))
    self.c = nil
  end
end

return _M
