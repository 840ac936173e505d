/* sink_parts.c - see sink_parts.h. The task's thread only. */
#include "runtime/sink_parts.h"
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

lc_sink_part_t *lc_sink_parts_find(lc_sink_parts_t *p, const char *topic, int32_t partition)
{
        for (size_t i = 0; i < p->n; i++)
                if (p->v[i].partition == partition && !strcmp(p->v[i].topic, topic))
                        return &p->v[i];
        return NULL;
}

lc_sink_part_t *lc_sink_parts_add(lc_sink_parts_t *p, const char *topic, int32_t partition)
{
        lc_sink_part_t *part = lc_sink_parts_find(p, topic, partition);
        char *name;

        if (!part) {
                p->v = lc_realloc(p->v, (p->n + 1) * sizeof(*p->v));
                part = &p->v[p->n++];
                part->topic = NULL;
        }
        name = part->topic ? part->topic : lc_strdup(topic);
        *part = (lc_sink_part_t){.topic = name,
                                 .partition = partition,
                                 .committed = LC_NO_OFFSET,
                                 .current = LC_NO_OFFSET,
                                 .consumed = LC_NO_OFFSET,
                                 .rewind = LC_NO_OFFSET,
                                 .from = LC_NO_OFFSET};
        return part;
}

void lc_sink_parts_remove(lc_sink_parts_t *p, const char *topic, int32_t partition)
{
        lc_sink_part_t *part = lc_sink_parts_find(p, topic, partition);

        if (!part)
                return;
        free(part->topic);
        *part = p->v[--p->n];
}

void lc_sink_parts_free(lc_sink_parts_t *p)
{
        for (size_t i = 0; i < p->n; i++)
                free(p->v[i].topic);
        free(p->v);
        memset(p, 0, sizeof(*p));
}

lc_topic_partition_t *lc_sink_parts_collect(const lc_sink_parts_t *p,
                                            bool (*want)(const lc_sink_part_t *part), size_t *n)
{
        lc_topic_partition_t *out = lc_calloc(p->n + 1, sizeof(*out));

        *n = 0;
        for (size_t i = 0; i < p->n; i++)
                if (!want || want(&p->v[i]))
                        out[(*n)++] = (lc_topic_partition_t){.topic = p->v[i].topic,
                                                             .partition = p->v[i].partition,
                                                             .offset = p->v[i].current};
        return out;
}
