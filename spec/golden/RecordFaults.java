// What Kafka Connect says of values that do not fit their schema: lines SCHEMA TAB TYPED LITERAL from stdin become
// JSON lines (spec/golden/faults.jsonl). Run by spec/golden/faults.lua, see there.
import java.io.*;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.*;
import com.fasterxml.jackson.databind.*;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.json.JsonConverter;

public class RecordFaults {
    static Object typed(JsonNode n, Schema s) {
        if (n.isNull()) return null;
        if (n.isTextual()) return n.textValue();
        if (n.isBoolean()) return n.booleanValue();
        if (n.isArray()) {
            List<Object> out = new ArrayList<>();
            for (JsonNode e : n) out.add(typed(e, s == null || s.type() != Schema.Type.ARRAY ? null : s.valueSchema()));
            return out;
        }
        String tag = n.fieldNames().next();
        JsonNode v = n.get(tag);
        switch (tag) {
            case "$int8": return (byte) v.longValue();
            case "$int16": return (short) v.longValue();
            case "$int32": return (int) v.longValue();
            case "$int64": return v.longValue();
            case "$float32": return Float.parseFloat(v.textValue());
            case "$float64": return Double.parseDouble(v.textValue());
            case "$bytes": return Base64.getDecoder().decode(v.textValue());
            case "$decimal": return new BigDecimal(v.textValue());
            case "$date": return new java.util.Date(v.longValue());
            case "$map": {
                boolean map = s != null && s.type() == Schema.Type.MAP;
                Map<Object, Object> out = new HashMap<>();
                for (JsonNode e : v) out.put(typed(e.get(0), map ? s.keySchema() : null), typed(e.get(1), map ? s.valueSchema() : null));
                return out;
            }
            case "$struct": {
                Struct out = new Struct(s);
                for (Field f : s.fields())
                    if (v.has(f.name())) {
                        Object o = typed(v.get(f.name()), f.schema());
                        if (o != null) out.put(f, o); // null is for validate()
                    }
                return out;
            }
            default: throw new IllegalArgumentException(tag);
        }
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonConverter json = new JsonConverter();
        json.configure(Map.of("schemas.enable", "true"), false);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        for (String line; (line = in.readLine()) != null; ) {
            String[] f = line.split("\t", -1);
            String message = null;
            try {
                Schema schema = json.asConnectSchema(mapper.readTree(f[0]));
                ConnectSchema.validateValue(schema, typed(mapper.readTree(f[1]), schema));
            } catch (Exception e) {
                message = e.getClass().getName() + ": " + e.getMessage();
            }
            out.println("{\"schema\":" + f[0] + ",\"typed\":" + f[1] + ",\"error\":" + mapper.writeValueAsString(message) + "}");
        }
        out.flush();
    }
}
