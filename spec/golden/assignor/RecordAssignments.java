/*
 * RecordAssignments.java - Kafka Connect's own assignors driven through generated histories; their answers are
 * what spec/golden/assignor_spec.lua expects of ours.
 *
 *     ./dev kafka run spec/golden/assignor/RecordAssignments.java spec/golden/assignor
 *
 * writes cooperative.jsonl and eager.jsonl into that folder, the same bytes at each run. The members' metadata and
 * the answers pass through the wire format, members reach the assignor in the order of the group's answer.
 *
 * First line of a history: {"h":number,"max":scheduled.rebalance.max.delay.ms,"ids":[member ids]}; then a line a
 * round: "new" (a new assignor: the leader restarted), "p" protocol, "g" generation, "l" last completed generation
 * of the leader, "now", "off" config offset of the leader's newest snapshot, "w" configured work, "m" members
 * [number of the id, config offset, allocation], "a" answers in the same order [assigned, revoked, delay, error,
 * offset]. Configured work is "name=tasks name=tasks"; work is "name:*02 name:1": connector name with tasks 0 and
 * 2, task 1 of another one.
 */
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Supplier;

import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.distributed.ConnectAssignor;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocolCompatibility;
import org.apache.kafka.connect.runtime.distributed.EagerAssignor;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

public class RecordAssignments {
    static class Clock implements Time {
        long now = 1_000_000;

        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public void sleep(long ms) { now += ms; }
        public void waitObject(Object o, Supplier<Boolean> done, long deadline) { }
    }

    /* What the assignors ask of the coordinator. */
    static class Coordinator extends WorkerCoordinator {
        int generation, lastCompleted;
        ClusterConfigState snapshot, fresh;

        Coordinator(Time time) {
            super(new GroupRebalanceConfig(10000, 60000, 3000, "g", Optional.empty(), null, 100, 1000), new LogContext(),
                null, new Metrics(), "c", time, "http://leader/", null, null, ConnectProtocolCompatibility.SESSIONED, 0);
        }

        @Override public int generationId() { return generation; }
        @Override public int lastCompletedGenerationId() { return lastCompleted; }
        @Override public String memberId() { return "leader"; }
        @Override public ClusterConfigState configSnapshot() { return snapshot; }
        @Override public void configSnapshot(ClusterConfigState s) { snapshot = s; }
        @Override public ClusterConfigState configFreshSnapshot() { return fresh; }
    }

    static class Member {
        int number;
        String id, url;
        long offset;
        TreeSet<String> connectors = new TreeSet<>();
        TreeSet<ConnectorTaskId> tasks = new TreeSet<>();
    }

    final Random random;
    final boolean eager;
    final int maxDelay, maxWorkers, style;
    final Clock clock = new Clock();
    final Coordinator coordinator = new Coordinator(clock);
    final List<String> ids = new ArrayList<>(), lines = new ArrayList<>();
    final TreeMap<String, Integer> configured = new TreeMap<>();
    final List<Member> members = new ArrayList<>();
    final List<String> departed = new ArrayList<>();
    ConnectAssignor assignor;
    boolean restarted = true;
    int generation, lastCompleted = -1, names;
    long offset = 3;
    int lastDelay;

    RecordAssignments(long seed, boolean eager, int maxDelay, int maxWorkers, int style) {
        this.random = new Random(seed);
        this.eager = eager;
        this.maxDelay = maxDelay;
        this.maxWorkers = maxWorkers;
        this.style = style;
    }

    boolean chance(int percent) { return random.nextInt(100) < percent; }

    String newName() {
        int i = names++;
        switch (style) {
            case 0: return "c" + i;
            case 1: return (i % 2 == 0 ? "file-sink-" : "file-source-") + i;
            case 2: return new String[] {"\uff61z", "\ud83d\ude00y", "\u00e9x", "Zw", "_v"}[i % 5] + i / 5;
            default: return "a" + Integer.toString(i * 7919 % 1296 + 1296, 36);
        }
    }

    void create() {
        configured.put(newName(), random.nextInt(random.nextInt(9) + 1));
        offset += 3;
    }

    String someConnector() { return new ArrayList<>(configured.keySet()).get(random.nextInt(configured.size())); }

    void join(String url) {
        Member m = new Member();
        String host = url != null ? url : "http://127.0.0.1:" + (8083 + random.nextInt(1000)) + "/";
        m.url = host;
        m.id = "connect-" + host.substring(7, host.length() - 1) + "-" + new UUID(random.nextLong(), random.nextLong());
        m.number = ids.size();
        ids.add(m.id);
        members.add(m);
    }

    void leave() {
        Member m = members.remove(random.nextInt(members.size()));
        departed.add(m.url);
    }

    void newAssignor() {
        assignor = eager ? new EagerAssignor(new LogContext())
            : new IncrementalCooperativeAssignor(new LogContext(), clock, maxDelay);
        restarted = true;
    }

    void event() {
        int kind = random.nextInt(eager ? 80 : 100);
        if (kind < 14 && members.size() < maxWorkers) {
            join(null);
        } else if (kind < 28 && members.size() > 1) {
            leave();
        } else if (kind < 38 && !departed.isEmpty() && members.size() < maxWorkers) {
            join(departed.remove(departed.size() - 1));
        } else if (kind < 50 && configured.size() < 40) {
            for (int n = 1 + random.nextInt(4); n > 0; n--)
                create();
        } else if (kind < 58 && !configured.isEmpty()) {
            configured.remove(someConnector());
            offset += 2;
        } else if (kind < 70 && !configured.isEmpty()) {
            configured.put(someConnector(), random.nextInt(9));
            offset += 2;
        } else if (kind < 76 && members.size() > 1) { /* one goes, another comes, between two rounds */
            leave();
            join(chance(50) ? departed.remove(departed.size() - 1) : null);
        } else if (kind < 82) {
            newAssignor();
            lastCompleted = -1;
        } else if (kind < 87) { /* another member led some rounds */
            generation += 1 + random.nextInt(3);
            lastCompleted = generation;
        } else if (kind < 94 && members.size() > 1) { /* two believe to own the same */
            Member from = members.get(random.nextInt(members.size())), to = members.get(random.nextInt(members.size()));
            for (String c : from.connectors)
                if (chance(40))
                    to.connectors.add(c);
            for (ConnectorTaskId t : from.tasks)
                if (chance(30))
                    to.tasks.add(t);
        } else if (members.size() > 0) { /* lost what it had, as after a lost coordinator */
            Member m = members.get(random.nextInt(members.size()));
            m.connectors.clear();
            m.tasks.clear();
        }
    }

    ClusterConfigState state(long at) {
        Map<String, Map<String, String>> configs = new HashMap<>();
        for (String c : configured.keySet())
            configs.put(c, Map.of());
        return new ClusterConfigState(at, null, new HashMap<>(configured), configs, Map.of(), Map.of(), Map.of(), Map.of(),
            Map.of(), Set.of(), Set.of());
    }

    static void string(ByteBuffer to, String s) {
        byte[] bytes = s.getBytes(StandardCharsets.UTF_8);
        to.putShort((short) bytes.length).put(bytes);
    }

    static TreeMap<String, List<Integer>> byConnector(Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        TreeMap<String, List<Integer>> map = new TreeMap<>();
        for (String c : new TreeSet<>(connectors))
            map.computeIfAbsent(c, x -> new ArrayList<>()).add(-1);
        for (ConnectorTaskId t : new TreeSet<>(tasks))
            map.computeIfAbsent(t.connector(), x -> new ArrayList<>()).add(t.task());
        return map;
    }

    /* A member's metadata, its work in natural order. */
    byte[] metadata(Member m, short version) {
        ByteBuffer b = ByteBuffer.allocate(65536);
        b.putShort(version);
        string(b, m.url);
        b.putLong(m.offset);
        if (version > 0 && m.connectors.isEmpty() && m.tasks.isEmpty()) {
            b.putInt(-1);
        } else if (version > 0) {
            int at = b.position();
            b.putInt(0).putShort(version).putShort((short) 0);
            string(b, "leader");
            string(b, "http://leader/");
            b.putLong(m.offset);
            TreeMap<String, List<Integer>> work = byConnector(m.connectors, m.tasks);
            b.putInt(work.size());
            work.forEach((connector, tasks) -> {
                string(b, connector);
                b.putInt(tasks.size());
                tasks.forEach(b::putInt);
            });
            b.putInt(0).putInt(0);
            b.putInt(at, b.position() - at - 4);
        }
        byte[] out = new byte[b.position()];
        b.flip().get(out);
        return out;
    }

    static String text(Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        StringBuilder s = new StringBuilder();
        byConnector(connectors, tasks).forEach((connector, list) -> {
            s.append(s.length() == 0 ? "" : " ").append(connector).append(':');
            list.forEach(t -> s.append(t < 0 ? "*" : t.toString()));
        });
        return s.toString();
    }

    void round() {
        short version = (short) (eager ? 0 : 1 + style % 2);
        boolean ahead = chance(8), caught = chance(60);
        int leader = random.nextInt(members.size());

        generation++;
        for (Member m : members)
            m.offset = chance(70) ? offset : offset - random.nextInt(3);
        members.get(leader).offset = offset;
        coordinator.snapshot = coordinator.fresh = state(offset);
        if (ahead && members.size() > 1 && caught) { /* the leader has to look at its newest snapshot */
            members.get(leader).offset = offset - 3;
            members.get((leader + 1) % members.size()).offset = offset;
            coordinator.snapshot = new ClusterConfigState(offset - 3, null, Map.of(), Map.of(), Map.of(), Map.of(), Map.of(),
                Map.of(), Map.of(), Set.of(), Set.of());
        } else if (ahead && members.size() > 1) { /* it has not read as far as that member */
            members.get((leader + 1) % members.size()).offset = offset + 2;
        }
        coordinator.generation = generation;
        coordinator.lastCompleted = lastCompleted;

        List<JoinGroupResponseMember> joined = new ArrayList<>();
        StringBuilder m = new StringBuilder(), a = new StringBuilder(), w = new StringBuilder();
        for (Member member : members) {
            joined.add(new JoinGroupResponseMember().setMemberId(member.id).setMetadata(metadata(member, version)));
            m.append(m.length() == 0 ? "" : ",").append('[').append(member.number).append(',').append(member.offset)
                .append(",\"").append(text(member.connectors, member.tasks)).append("\"]");
        }
        configured.forEach((name, n) -> w.append(w.length() == 0 ? "" : " ").append(name).append('=').append(n));
        Map<String, ByteBuffer> answers = assignor.performAssignment(members.get(leader).id,
            ConnectProtocolCompatibility.fromProtocolVersion(version), joined, coordinator);
        for (Member member : members) {
            ByteBuffer bytes = answers.get(member.id);
            Collection<String> revokedConnectors = List.of();
            Collection<ConnectorTaskId> revokedTasks = List.of();
            ConnectProtocol.Assignment answer;
            int delay = 0;
            if (eager) {
                answer = ConnectProtocol.deserializeAssignment(bytes);
            } else {
                ExtendedAssignment e = IncrementalCooperativeConnectProtocol.deserializeAssignment(bytes);
                answer = e;
                revokedConnectors = e.revokedConnectors();
                revokedTasks = e.revokedTasks();
                delay = e.delay();
            }
            a.append(a.length() == 0 ? "" : ",").append("[\"").append(text(answer.connectors(), answer.tasks()))
                .append("\",\"").append(text(revokedConnectors, revokedTasks)).append("\",").append(delay).append(',')
                .append(answer.error()).append(',').append(answer.offset()).append(']');
            if (answer.error() == 0 && !chance(4)) { /* the others never hear of it */
                if (eager) {
                    member.connectors.clear();
                    member.tasks.clear();
                }
                member.connectors.removeAll(revokedConnectors);
                member.tasks.removeAll(revokedTasks);
                member.connectors.addAll(answer.connectors());
                member.tasks.addAll(answer.tasks());
            }
            lastDelay = delay;
        }
        lines.add("{" + (restarted ? "\"new\":true," : "") + "\"p\":" + version + ",\"g\":" + generation + ",\"l\":"
            + lastCompleted + ",\"now\":" + clock.now + ",\"off\":" + offset + ",\"w\":\"" + w + "\",\"m\":[" + m
            + "],\"a\":[" + a + "]}");
        restarted = false;
        if (!chance(4))
            lastCompleted = generation;
    }

    void passTime() {
        int kind = random.nextInt(10);
        if (kind < 4 || lastDelay == 0)
            clock.now += random.nextInt(3000);
        else if (kind < 8)
            clock.now += lastDelay;
        else if (kind < 9)
            clock.now += random.nextInt(lastDelay);
        else
            clock.now += lastDelay + 1 + random.nextInt(100000);
    }

    void history(int number, int workers, int connectors, int rounds, PrintWriter out) {
        newAssignor();
        for (int i = 0; i < workers; i++)
            join(null);
        for (int i = 0; i < connectors; i++)
            create();
        for (int i = 0; i < rounds; i++) {
            Collections.shuffle(members, random);
            round();
            passTime();
            if (chance(55))
                for (int n = 1 + random.nextInt(2); n > 0; n--)
                    event();
        }
        out.print("{\"h\":" + number + ",\"max\":" + maxDelay + ",\"ids\":[\"" + String.join("\",\"", ids) + "\"]}\n");
        lines.forEach(line -> out.print(line + "\n"));
    }

    static void record(Path file, boolean eager, int histories) throws Exception {
        int[] delays = {0, 10_000, 300_000, 1, 1_700, 64_000, 600_000};
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
            for (int h = 1; h <= histories; h++) {
                Random r = new Random(h * 31L + (eager ? 7 : 0));
                int maxDelay = h % 4 == 3 ? delays[3 + r.nextInt(4)] : delays[h % 4];
                int maxWorkers = h % 10 == 0 ? 30 : 6;
                int workers = 1 + r.nextInt(maxWorkers);
                int connectors = h % 5 == 0 ? r.nextInt(41) : r.nextInt(13);
                new RecordAssignments(h, eager, maxDelay, maxWorkers, h / 4 % 4)
                    .history(h, workers, connectors, 8 + r.nextInt(18), out);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        record(Path.of(args[0], "cooperative.jsonl"), false, 160);
        record(Path.of(args[0], "eager.jsonl"), true, 30);
    }
}
