// JsonPath.java - json_path.c with org.apache.kafka.connect.json.JsonConverter: the same records, the same loops.
//   java JsonPath.java FILE true|false SECONDS ROUNDS
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;

public class JsonPath {
    static final int BATCH = 500;
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static volatile long blackhole;
    static Object sink;

    static void measure(String what, LongSupplier f, double seconds, int rounds) {
        // the compilers need seconds, whatever the rounds
        int warm = Math.max((rounds + 1) / 2, (int) Math.ceil(4 / seconds));
        for (int r = -warm; r < rounds; r++) {
            long wall = System.nanoTime(), cpu = THREADS.getCurrentThreadCpuTime(), n = 0, now;
            do {
                blackhole += f.getAsLong();
                n += BATCH;
                now = System.nanoTime();
            } while (now - wall < seconds * 1e9);
            cpu = THREADS.getCurrentThreadCpuTime() - cpu;
            if (r >= 0) System.out.printf("%s %.1f %.1f%n", what, (double) cpu / n, (double) (now - wall) / n);
        }
    }

    public static void main(String[] args) throws Exception {
        List<String> lines = Files.readAllLines(Path.of(args[0]));
        byte[][] texts = lines.stream().map(s -> s.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", args[1]), false);
        SchemaAndValue[] values = new SchemaAndValue[texts.length];
        long bytes = 0, hash = 0xcbf29ce484222325L;
        for (int i = 0; i < texts.length; i++) {
            values[i] = converter.toConnectData("t", texts[i]);
            byte[] out = converter.fromConnectData("t", values[i].schema(), values[i].value());
            bytes += out.length;
            for (byte b : out) hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
        }
        System.out.printf("written %d %016x%n", bytes, hash);
        measure("decode", () -> {
            long sum = 0;
            for (int i = 0; i < BATCH; i++) {
                SchemaAndValue v = converter.toConnectData("t", texts[i % texts.length]);
                sink = v;
                sum += System.identityHashCode(v.schema());
            }
            return sum;
        }, Double.parseDouble(args[2]), Integer.parseInt(args[3]));
        measure("encode", () -> {
            long sum = 0;
            for (int i = 0; i < BATCH; i++) {
                SchemaAndValue v = values[i % values.length];
                byte[] out = converter.fromConnectData("t", v.schema(), v.value());
                sink = out;
                sum += out.length + out[out.length / 2];
            }
            return sum;
        }, Double.parseDouble(args[2]), Integer.parseInt(args[3]));
        converter.close();
    }
}
