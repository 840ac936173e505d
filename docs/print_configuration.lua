-- docs/print_configuration.lua: prints docs/configuration.md from the tables of the core.
--   luajit docs/print_configuration.lua > docs/configuration.md
-- spec/unit/configuration_page_spec.lua fails when the page and the tables differ.
package.path = "./?.lua;" .. package.path
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "config/worker_config.h", "config/connector_config.h",
  "config/client_table.h" }

local types = { [0] = "boolean", "string", "int", "short", "long", "double", "list", "class", "password" }
local importances = { [0] = "high", "medium", "low" }
local out = {}
local function add(...) out[#out + 1] = table.concat { ... } end
local function str(p) return p ~= nil and ffi.string(p) or nil end
local function cell(s) return (s:gsub("|", "\\|")) end
local function code(s) return "`" .. cell(s) .. "`" end

local function default(row)
  if row.required then return "(required)" end
  local d = str(row.def)
  if d == nil then return "null" end
  return d == "" and '""' or code(d)
end

local function rows_table(rows, from, to)
  add "| key | type | default | importance | meaning |"
  add "|---|---|---|---|---|"
  for i = from, to do
    local r = rows[i]
    add("| ", code(ffi.string(r.name)), " | ", types[tonumber(r.type)], " | ", default(r), " | ",
      importances[tonumber(r.importance)], " | ", cell(str(r.doc) or ""), " |")
  end
  add ""
end

local n = ffi.new "int[1]"
add "# Configuration"
add ""
add "Printed by docs/print_configuration.lua from the tables in core/config; do not edit."
add ""
add "## Worker file"
add ""
add [[
A worker file has Java's .properties syntax (`key=value`, `key: value`, `\` continues a line, `\uXXXX`, `#` and `!`
comments). Keys, defaults and checks are those of Kafka Connect 4.3; a file written for it is used unchanged.
Unknown keys are warned about. Values may hold variables, `${provider:path:key}`, of the config providers named in
the same file: FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider.
]]
local standalone = C.lc_worker_config_rows(1, n)
local standalone_n = n[0]
local own = 0 -- the first of luaconnect's own rows, which come last
while ffi.string(standalone[own].name) ~= "offset.storage.file.filename" do own = own + 1 end
own = own + 1
local common_n = own - 1
add "### Distributed and standalone"
add ""
rows_table(standalone, 0, common_n - 1)
add "### Standalone only"
add ""
rows_table(standalone, common_n, own - 1)
local distributed = C.lc_worker_config_rows(0, n)
add "### Distributed only"
add ""
rows_table(distributed, common_n, n[0] - 1 - (standalone_n - own))
add "### luaconnect's own"
add ""
rows_table(standalone, own, standalone_n - 1)
add "### Prefixes"
add ""
add [[
| prefix | goes to |
|---|---|
| `producer.` `consumer.` `admin.` | clients of connectors; see Client settings |
| `config.storage.` `offset.storage.` `status.storage.` | other suffixes are settings of that topic when it is created |
| `key.converter.` `value.converter.` `header.converter.` | settings of the worker's converters |
| `config.providers.NAME.param.` | parameters of a config provider |
| `listeners.https.` `admin.listeners.https.` `metrics.context.` | accepted, not used yet |
| `connector.client.config.override.allowlist` | keys that the Allowlist policy lets connectors override |
]]
add "## Connectors"
add ""
local source = C.lc_connector_config_rows(1, n)
local shared = 19
add "### All connectors"
add ""
rows_table(source, 0, shared - 1)
add "### Sources"
add ""
rows_table(source, shared, n[0] - 1)
local sink = C.lc_connector_config_rows(0, n)
add "### Sinks"
add ""
rows_table(sink, shared, n[0] - 1)
add [[
`topics.regex` is a Java expression and is matched with POSIX extended expressions. Classes, groups, counts and
`\Q..\E` mean the same in both; look-around, back references, possessive counts, inline flags, `\p{..}`, `\b` and
set operations are refused at validation.
]]
add "### Beyond Kafka Connect"
add ""
add [[
Off unless a connector's config has them, and shown by the validation only then. A Java worker ignores them.
]]
local ours = C.lc_connector_config_own_rows(n)
rows_table(ours, 0, n[0] - 1)
add "## Client settings"
add ""
add [[
Settings of Kafka's Java clients, given to librdkafka. They come, later ones winning, from Kafka Connect's defaults,
the worker's `producer.` `consumer.` `admin.` keys (internal clients: the plain keys) and the connector's
`producer.override.` `consumer.override.` `admin.override.` keys. P, C and A: producer, consumer, admin client.
"ours": luaconnect does it itself. "none": there is no counterpart, a warning says so once. Numbers outside of
librdkafka's range are cut to it.
]]
add "| Java | clients | librdkafka | range | remark |"
add "|---|---|---|---|---|"
local settings = C.lc_client_settings(n)
for i = 0, n[0] - 1 do
  local s = settings[i]
  local bit = require "bit"
  local families = (bit.band(s.families, 1) ~= 0 and "P" or "") .. (bit.band(s.families, 2) ~= 0 and "C" or "") ..
    (bit.band(s.families, 4) ~= 0 and "A" or "")
  local map = ffi.string(C.lc_client_map_name(s.map))
  local target = s.rd ~= nil and code(ffi.string(s.rd)) or map
  local range = s.hi > 0 and ("%d .. %d"):format(s.lo, s.hi) or ""
  local note = str(s.note) or ""
  if map == "lower case" or map == "KiB" then note = note == "" and map or map .. "; " .. note end
  add("| ", code(ffi.string(s.name)), " | ", families, " | ", target, " | ", range, " | ", cell(note), " |")
end
add ""
add [[
Not set by Java names: `partitioner=murmur2_random`, `socket.nagle.disable=true`, `socket.keepalive.enable=true`,
`queue.buffering.max.messages=50000`, `queued.max.messages.kbytes=4096`. Defaults that differ from Java's:
`batch.size` 1000000, `buffer.memory` 16 MB. Two more Java defaults are kept where librdkafka has others:
`isolation.level` read_uncommitted, `check.crcs` true.

TLS: PEM texts (`ssl.keystore.key`, `ssl.keystore.certificate.chain`, `ssl.truststore.certificates`), PEM files and
PKCS12 files. A JKS file can only be read by Java: convert it with keytool, the error text says how. SASL: PLAIN,
SCRAM-SHA-256, SCRAM-SHA-512 (librdkafka 2.6.1 or newer), GSSAPI, OAUTHBEARER with a token endpoint.]]
io.write(table.concat(out, "\n"), "\n")
