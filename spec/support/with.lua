-- spec/support/with.lua: settings over settings.

--- A new table: the first one's fields, and over them the second's (nil: none).
return function(t, more)
  local out = {}
  for k, v in pairs(t) do out[k] = v end
  for k, v in pairs(more or {}) do out[k] = v end
  return out
end
