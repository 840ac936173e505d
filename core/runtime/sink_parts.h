/*
 * sink_parts.h - the partitions a sink task owns and their three offsets.
 *
 * Threads:   the task's.
 * Ownership: topics are copied; arrays from collect() are the caller's, their topics borrowed.
 * Tests:     spec/unit/sink_task_spec.lua
 */
#ifndef LC_RUNTIME_SINK_PARTS_H
#define LC_RUNTIME_SINK_PARTS_H
#include "kafka/consumer.h"

enum { LC_NO_OFFSET = -1001 }; /* RD_KAFKA_OFFSET_INVALID */

typedef struct lc_sink_part {
        char *topic;
        int32_t partition;
        bool user_paused;  /* by the task itself */
        int64_t committed; /* last committed, or the position when assigned */
        int64_t current;   /* delivered: what may be committed */
        int64_t consumed;  /* of the batch in hand, delivered or not */
        int64_t rewind;    /* to seek to before the next poll */
        int64_t from;      /* first record of the batch in hand */
} lc_sink_part_t;

typedef struct lc_sink_parts {
        lc_sink_part_t *v;
        size_t n;
} lc_sink_parts_t;

lc_sink_part_t *lc_sink_parts_find(lc_sink_parts_t *p, const char *topic, int32_t partition);
lc_sink_part_t *lc_sink_parts_add(lc_sink_parts_t *p, const char *topic, int32_t partition);
void lc_sink_parts_remove(lc_sink_parts_t *p, const char *topic, int32_t partition);
void lc_sink_parts_free(lc_sink_parts_t *p);
/* Those that `want` accepts (NULL: all) with their current offsets. malloc'ed. */
lc_topic_partition_t *lc_sink_parts_collect(const lc_sink_parts_t *p,
                                            bool (*want)(const lc_sink_part_t *part), size_t *n);

#endif
