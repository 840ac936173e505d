// What Kafka Connect's converters do with bad bytes: lines of
//   NAME TAB CONVERTER TAB ROLE TAB CONFIG (k=v;k=v) TAB BYTES (base64, "-" for null)
// from stdin become JSON lines (spec/golden/bad_values.jsonl). Run by spec/golden/bad_values.lua, see there.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.*;

public class RecordBadValues {
    static final ObjectMapper MAPPER = new ObjectMapper();
    static final JsonConverter SCHEMAS = new JsonConverter();

    // JSON text of a string, the same as spec/support/data.lua's quote(): only controls, quote and backslash escaped
    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            boolean lone = Character.isSurrogate(c) && !(Character.isHighSurrogate(c) && i + 1 < s.length()
                && Character.isLowSurrogate(s.charAt(i + 1))) && !(Character.isLowSurrogate(c) && i > 0
                && Character.isHighSurrogate(s.charAt(i - 1)));
            if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
                b.append(String.format("\\u%04x", (int) c));
            else
                b.append(lone ? '?' : c);
        }
        return b.append('"').toString();
    }

    static String tagged(String tag, String text) {
        return tag + "(" + text + ")";
    }

    // The text that spec/support/data.lua's show() makes of the same value
    static String show(Object v) {
        if (v == null) return "null";
        if (v instanceof Byte) return tagged("$int8", v.toString());
        if (v instanceof Short) return tagged("$int16", v.toString());
        if (v instanceof Integer) return tagged("$int32", v.toString());
        if (v instanceof Long) return tagged("$int64", v.toString());
        if (v instanceof Float) return tagged("$float32", v.toString());
        if (v instanceof Double) return tagged("$float64", v.toString());
        if (v instanceof Boolean) return v.toString();
        if (v instanceof String) return quote((String) v);
        if (v instanceof byte[]) return tagged("$bytes", Base64.getEncoder().encodeToString((byte[]) v));
        if (v instanceof java.util.Date) return tagged("$date", String.valueOf(((java.util.Date) v).getTime()));
        if (v instanceof java.math.BigDecimal) return tagged("$decimal", v.toString());
        if (v instanceof java.math.BigInteger) return tagged("$bigint", v.toString());
        List<String> out = new ArrayList<>();
        if (v instanceof List) {
            for (Object o : (List<?>) v) out.add(show(o));
            return tagged("$list", String.join(",", out));
        }
        if (v instanceof Map) {
            for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) out.add(show(e.getKey()) + "=" + show(e.getValue()));
        } else if (v instanceof Struct) {
            for (Field f : ((Struct) v).schema().fields())
                out.add(f.name() + "=" + show(((Struct) v).getWithoutDefault(f.name())));
        } else {
            return "class " + v.getClass().getName();
        }
        // sorted by UTF-8 bytes, as Lua sorts
        out.sort((a, b) -> Arrays.compareUnsigned(a.getBytes(StandardCharsets.UTF_8), b.getBytes(StandardCharsets.UTF_8)));
        return tagged(v instanceof Map ? "$map" : "$struct", String.join(",", out));
    }

    // Long texts as their start and a digest
    static String brief(String s) throws Exception {
        byte[] b = s.getBytes(StandardCharsets.UTF_8);
        if (b.length <= 400) return s;
        long h = 0;
        for (byte x : b) h = (h * 31 + (x & 0xff)) % 1000000007L;
        return new String(Arrays.copyOf(b, 60), StandardCharsets.ISO_8859_1).replaceAll("[^ -~]", "?") + "... " + b.length + " bytes, hash " + h;
    }

    static Map<String, Object> failure(Throwable t) throws Exception {
        Map<String, Object> e = new LinkedHashMap<>();
        e.put("class", t.getClass().getName());
        e.put("message", t.getMessage() == null ? null : brief(t.getMessage()));
        if (t.getCause() != null && t.getCause() != t) e.put("cause", failure(t.getCause()));
        return e;
    }

    static Object written(byte[] b) throws Exception {
        if (b == null) return null;
        String text = new String(b, StandardCharsets.UTF_8);
        boolean plain = Arrays.equals(text.getBytes(StandardCharsets.UTF_8), b);
        return brief(plain ? text : "base64:" + Base64.getEncoder().encodeToString(b));
    }

    // null; "deep" where Jackson refuses to write it
    static String schemaText(Schema schema) throws Exception {
        try {
            return schema == null ? null : brief(SCHEMAS.asJsonSchema(schema).toString());
        } catch (RuntimeException e) {
            return "deep";
        }
    }

    static Map<String, Object> run(String converter, String role, Map<String, String> config, byte[] bytes) throws Exception {
        Map<String, Object> out = new LinkedHashMap<>();
        Object cv = Class.forName(converter).getDeclaredConstructor().newInstance();
        config.put("converter.type", role);
        try {
            if (role.equals("header")) ((HeaderConverter) cv).configure(config);
            else ((Converter) cv).configure(config, role.equals("key"));
            SchemaAndValue got = role.equals("header") ? ((HeaderConverter) cv).toConnectHeader("topic", "H", bytes)
                : ((Converter) cv).toConnectData("topic", bytes);
            if (got == null) got = new SchemaAndValue(null, null);
            out.put("schema", schemaText(got.schema()));
            out.put("value", brief(show(got.value())));
            try {
                out.put("back", written(role.equals("header")
                    ? ((HeaderConverter) cv).fromConnectHeader("topic", "H", got.schema(), got.value())
                    : ((Converter) cv).fromConnectData("topic", got.schema(), got.value())));
            } catch (Throwable t) {
                out.put("back_error", failure(t));
            }
        } catch (Throwable t) {
            out.clear();
            out.put("error", failure(t));
        }
        return out;
    }

    // a stack that no nesting fills: the same answers at each run
    public static void main(String[] args) throws Exception {
        Thread t = new Thread(null, () -> {
            try {
                record();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, "record", 1L << 30);
        t.start();
        t.join();
    }

    static void record() throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        SCHEMAS.configure(Map.of("schemas.enable", "true"), false);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream stdout = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            String[] f = line.split("\t", -1);
            Map<String, String> config = new LinkedHashMap<>();
            for (String kv : f[3].split(";"))
                if (!kv.isEmpty()) config.put(kv.substring(0, kv.indexOf('=')), kv.substring(kv.indexOf('=') + 1));
            byte[] bytes = f[4].equals("-") ? null : Base64.getDecoder().decode(f[4]);
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("name", f[0]);
            row.put("converter", f[1].substring(f[1].lastIndexOf('.') + 1));
            row.put("role", f[2]);
            row.put("config", f[3]);
            row.putAll(run(f[1], f[2], config, bytes));
            stdout.println(MAPPER.writeValueAsString(row));
        }
        stdout.flush();
    }
}
