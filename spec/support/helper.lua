-- spec/support/helper.lua: loaded by busted before every run (--helper): what specs start ends with the suite.
package.path = "./?.lua;" .. package.path
local busted = require "busted"
local proc = require "spec.support.proc"

busted.subscribe({ "suite", "end" }, function()
  proc.stop_all()
  return nil, true
end)
