-- connect/rows.lua: config rows that several of the standard transforms have, word for word Java's. Only files under
-- lua/transforms and lua/predicates may require it.
return {
  replace_null_with_default = { "replace.null.with.default", type = "boolean", default = true, importance = "medium",
    doc = "Whether to replace fields that have a default value and that are null to the default value. When set to "
      .. "true, the default value is used, otherwise null is used." },
}
