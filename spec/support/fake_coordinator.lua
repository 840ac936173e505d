-- spec/support/fake_coordinator.lua: a broker of our own for the membership's errors (fake_coordinator.c).
local ffi = require "ffi"
local proc = require "spec.support.proc"
local lib = require("spec.support.compile").library(assert(proc.read "spec/support/fake_coordinator.c"), [[
typedef struct fake fake_t;
fake_t *fake_new(int port);
int fake_port(fake_t *f);
void fake_error(fake_t *f, int api, int code);
void fake_set(fake_t *f, int silent, int hang_up, int garbage, int leave_max);
void fake_lead(fake_t *f, const char *leader, const char *assignment, int len);
int fake_seen(fake_t *f, int api);
int fake_metadata(fake_t *f, char *out);
void fake_spoil(fake_t *f, int api, int how, int at);
int fake_spoils(fake_t *f);
void fake_other(fake_t *f, const char *id, const char *metadata, int len);
int fake_given(fake_t *f, char *out);
void fake_free(fake_t *f);
]])

local Fake = {}
Fake.__index = Fake
local _M = { FIND = 10, JOIN = 11, HEARTBEAT = 12, LEAVE = 13, SYNC = 14 }

function _M.new(port)
  local f = setmetatable({ f = lib.fake_new(port or 0) }, Fake)
  f.port = lib.fake_port(f.f)
  f.bootstrap = "127.0.0.1:" .. f.port
  return f
end

--- The next requests of this API are answered with these errors (0: none), one each.
function Fake:errors(api, ...)
  for _, code in ipairs { ... } do lib.fake_error(self.f, api, code) end
end

--- silent, hang_up: an API; garbage: that many bytes as every answer; leave_max: LeaveGroup's highest version.
function Fake:set(t) lib.fake_set(self.f, t.silent or 0, t.hang_up or 0, t.garbage or 0, t.leave_max or 3) end
function Fake:lead(leader, assignment) lib.fake_lead(self.f, leader, assignment, #assignment) end
function Fake:seen(api) return lib.fake_seen(self.f, api) end

--- The bytes of the first protocol's metadata in the last JoinGroup.
function Fake:metadata()
  local out = ffi.new "char[4096]"
  return ffi.string(out, lib.fake_metadata(self.f, out))
end

local SPOILS = { short = 1, length = 2, cut = 3, random = 4 }
--- Answers to `api` are spoiled: "short", "cut": one byte more each time until they are whole; "length": at is
--- the length they claim; "random": three bytes are other ones in the next `at` answers.
function Fake:spoil(api, how, at) lib.fake_spoil(self.f, api, SPOILS[how], at or 0) end
function Fake:spoils() return lib.fake_spoils(self.f) ~= 0 end

--- Another member with these metadata bytes appears when the asker leads.
function Fake:other(id, metadata) lib.fake_other(self.f, id, metadata, #metadata) end

--- The bytes the leader gave the other member.
function Fake:given()
  local out = ffi.new "char[4096]"
  return ffi.string(out, lib.fake_given(self.f, out))
end

function Fake:close() lib.fake_free(self.f) end

return _M
