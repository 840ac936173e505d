-- What BigDecimal and BigInteger say of a text that is no number (core/convert/java_big.c): seen in traces of Kafka Connect
-- 4.3.1 on JDK 17 (MaskField with such a replacement).
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "convert/cast.h" }

local NO_MARK = 'Character array is missing "e" notation exponential mark.'
local function neither(c)
  return "Character " .. c .. ' is neither a decimal digit number, decimal point, nor "e" notation exponential mark.'
end
local function behind(n)
  return ("\nCaused by: java.lang.ArrayIndexOutOfBoundsException: Index %d out of bounds for length %d"):format(n, n)
end

local function causes(refused, text)
  local e = core.err()
  refused(text, #text, e)
  return (ffi.string(e.detail):gsub("\n$", ""))
end

describe("the exception of", function()
  for text, says in pairs { abc = neither "a", ["-"] = "No digits found.", ["."] = "No digits found.", ["e5"] = "No digits found.",
    ["1.2.3"] = "Character array contains more than one decimal point.", ["1x"] = neither "x", ["--1"] = neither "-",
    ["5 5"] = neither " ", ["\195\169"] = neither "\195\169", ["1234567890123456789x"] = NO_MARK, ["1,5"] = neither ",",
    ["1e5x"] = "Not a digit.", ["1e12345678901"] = "Too many nonzero exponent digits.", ["1e9999999999"] = "Exponent overflow.",
    ["1e-2147483649"] = "Exponent overflow.", ["1.5e-2147483647"] = "Scale out of range.",
    ["1e"] = behind(2), ["1e+"] = behind(3), [""] = behind(0) } do
    it("new BigDecimal('" .. text .. "')", function()
      local line = "Caused by: java.lang.NumberFormatException" .. (says:find "^\n" and says or ": " .. says)
      assert.equal(line, causes(C.lc_java_big_decimal_refused, text))
    end)
  end

  for text, says in pairs { [""] = "Zero length BigInteger", ["-"] = "Zero length BigInteger", ["1-1"] = "Illegal embedded sign character",
    ["--1"] = "Illegal embedded sign character", abc = 'For input string: "abc"', ["123456789x12"] = 'For input string: "456789x12"',
    ["000x"] = 'For input string: "x"', ["1.5"] = 'For input string: "1.5"' } do
    it("new BigInteger('" .. text .. "')", function()
      assert.equal("Caused by: java.lang.NumberFormatException: " .. says, causes(C.lc_java_big_integer_refused, text))
    end)
  end
end)
