import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.Collector;

/**
 * Flink CEP on our question: SEQ(A, B+) with skip-till-any-match, counted per key and tumbling window.
 *
 * followedByAny and allowCombinations list every trend, each as a match of its own, so that the work is exponential.
 * Arguments: EVENTS.csv (time in milliseconds, type, key) and the milliseconds of a window. Key and window are one
 * partition. Prints one JSON object: the seconds of the job alone, and the number of trends of each partition.
 */
public class FlinkTrends {
    static class OfType extends SimpleCondition<Tuple3<Long, String, String>> {
        private final String type;

        OfType(String type) {
            this.type = type;
        }

        @Override
        public boolean filter(Tuple3<Long, String, String> event) {
            return event.f1.equals(type);
        }
    }

    static class Partition extends PatternProcessFunction<Tuple3<Long, String, String>, String> {
        @Override
        public void processMatch(Map<String, List<Tuple3<Long, String, String>>> match, Context context,
                                 Collector<String> out) {
            out.collect(match.get("a").get(0).f2);
        }
    }

    public static void main(String[] arguments) throws Exception {
        long width = Long.parseLong(arguments[1]);
        List<Tuple3<Long, String, String>> events = Files.readAllLines(Path.of(arguments[0])).stream().map(line -> {
            String[] fields = line.split(",");
            long time = Long.parseLong(fields[0]);
            return Tuple3.of(time, fields[1], fields[2] + "," + time / width * width);
        }).toList();
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.getExecutionEnvironment();
        flink.setParallelism(1);
        flink.setRuntimeMode(RuntimeExecutionMode.STREAMING);
        DataStream<Tuple3<Long, String, String>> stream = flink
            .fromData(events, Types.TUPLE(Types.LONG, Types.STRING, Types.STRING))
            .assignTimestampsAndWatermarks(WatermarkStrategy
                .<Tuple3<Long, String, String>>forMonotonousTimestamps().withTimestampAssigner((event, time) -> event.f0));
        Pattern<Tuple3<Long, String, String>, ?> pattern = Pattern
            .<Tuple3<Long, String, String>>begin("a").where(new OfType("A"))
            .followedByAny("b").where(new OfType("B")).oneOrMore().allowCombinations();
        long begin = System.nanoTime();
        Map<String, Long> trends = new TreeMap<>();
        DataStream<String> matches = CEP.pattern(stream.keyBy(event -> event.f2, Types.STRING), pattern)
            .process(new Partition(), Types.STRING);
        try (CloseableIterator<String> found = matches.executeAndCollect()) {
            found.forEachRemaining(partition -> trends.merge(partition, 1L, Long::sum));
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        StringBuilder rows = new StringBuilder();
        trends.forEach((partition, count) ->
            rows.append(rows.length() > 0 ? ", " : "").append("[").append(partition).append(", ").append(count).append("]"));
        System.out.println("{\"query_s\": " + seconds + ", \"rows\": [" + rows + "]}");
    }
}
