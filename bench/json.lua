-- bench/json.lua: JsonConverter both ways over the same records, ours (json_path.c) beside Java's class of the same
-- jars (JsonPath.java). Part of ./dev bench smt; alone: ./dev bench json.
local proc = require "spec.support.proc"
local records = require "bench.json_records"

local home = os.getenv "LC_KAFKA_HOME" or (os.getenv "HOME" .. "/.cache/luaconnect/kafka-4.3.1")
local lib = os.getenv "LUACONNECT_LIB" or "build/libluaconnect.so"
local SECONDS, ROUNDS = 1, 5

local function run(command)
  local out, status = proc.run(command .. " 2>&1")
  if status ~= 0 then error(command .. ": " .. out, 0) end
  return out
end

local function build_ours()
  local program = proc.root .. "/json_path"
  run(("%s -std=c11 -D_GNU_SOURCE -O2 -Icore bench/json_path.c %s -Wl,-rpath,%s -o %s"):format(os.getenv "CC" or "cc",
    lib, lib:match "^(.*)/" or ".", program))
  return program
end

-- What runs the Java side, or nil and why it cannot.
local function build_java()
  if select(2, proc.run "java -version 2>&1") ~= 0 then return nil, "there is no java" end
  if not proc.read(home .. "/ready") then return nil, "no Kafka in " .. home end
  local java = ("java -Xmx1G -XX:+UseG1GC -Dlog4j2.configurationFile=%s/log4j2.yaml -cp '%s/lib/*%s' %s")
  local classes = proc.root .. "/classes"
  if select(2, proc.run "javac -version 2>&1") == 0 then
    run(("javac -cp '%s/lib/*' -d %s bench/JsonPath.java"):format(home, classes))
    return java:format(home, home, ":" .. classes, "JsonPath")
  end
  if not proc.run("java --list-modules 2>&1"):find "jdk%.compiler" then
    return nil, "this Java is a runtime without the module jdk.compiler"
  end
  return java:format(home, home, "", "bench/JsonPath.java")
end

local function median(t)
  table.sort(t)
  return t[math.floor(#t / 2) + 1]
end

-- One run of a side: a result line for each direction. Returns what it wrote when encoding: bytes and hash.
local function side(m, what, command, kind, file)
  local out = run(("%s %s %s %g %d"):format(command, file, tostring(kind == "struct"), SECONDS, ROUNDS))
  local cpu, wall = { decode = {}, encode = {} }, { decode = {}, encode = {} }
  for way, a, b in out:gmatch "(%a+) ([%d.]+) ([%d.]+)\n" do
    if cpu[way] then
      table.insert(cpu[way], tonumber(a))
      table.insert(wall[way], tonumber(b))
    end
  end
  for _, way in ipairs { "decode", "encode" } do
    local middle, middle_wall = median(cpu[way]), median(wall[way]) -- these sort
    m.result { bench = "json", what = ("%s-%s-%s"):format(what, way, kind), cpu_ns_per_record = m.round(middle, 0),
      best_cpu_ns = m.round(cpu[way][1], 0), records_per_s = m.round(1e9 / middle_wall, 0),
      best_records_per_s = m.round(1e9 / wall[way][1], 0) }
  end
  return out:match "written (%d+) (%x+)"
end

return function(m)
  local ours = build_ours()
  local java, why = nil, "LC_BENCH_JAVA=0"
  if m.java then java, why = build_java() end
  if not java then m.result { bench = "json", what = "java", left_out = why } end
  for _, kind in ipairs { "struct", "map" } do
    local file = proc.root .. "/" .. kind .. ".json"
    local bytes = records(file, kind == "struct")
    m.result { bench = "json", what = "records-" .. kind, payload_bytes = m.round(bytes, 0) }
    for _ = 1, m.rounds do
      local n, hash = side(m, "ours", ours, kind, file)
      if java then
        local n_java, hash_java = side(m, "java", java, kind, file)
        -- Java's maps have another order, so only their size can be the same
        assert(n == n_java and (kind == "map" or hash == hash_java), "the two do not write the same")
      end
    end
  end
  m.at_end(function()
    local t = { bench = "json", what = "ratios" }
    for _, way in ipairs { "decode", "encode" } do
      for _, kind in ipairs { "struct", "map" } do
        local function ratio(key, a, b)
          local name = "%s-" .. way .. "-" .. kind
          local x, y = m.median("json", name:format(a), key), m.median("json", name:format(b), key)
          return x and y and m.round(x / y)
        end
        t[way .. "_" .. kind .. "_rate_to_java"] = ratio("records_per_s", "ours", "java")
        t[way .. "_" .. kind .. "_rate_to_java_by_cpu"] = ratio("cpu_ns_per_record", "java", "ours")
      end
    end
    m.result(t)
  end)
end
