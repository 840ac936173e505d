-- docs/configuration.md is what docs/print_configuration.lua prints.
describe("docs/configuration.md", function()
  it("is up to date; ./dev docs writes it", function()
    local f = assert(io.open "docs/configuration.md")
    local page = f:read "*a"
    f:close()
    local printed = {}
    local script = assert(loadfile "docs/print_configuration.lua")
    setfenv(script, setmetatable({ io = { write = function(...) printed[#printed + 1] = table.concat { ... } end } },
      { __index = _G }))()
    assert.equal(page, table.concat(printed))
  end)
end)
