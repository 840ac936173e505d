/*
 * group_decode.c - fuzz target: every decoder of what a broker or another member sends to the membership.
 * The first byte chooses decoder and version, the rest is the input. What can be read is written and read
 * again: both must be alike. Run by ./dev fuzz group_decode.
 */
#include "base/alloc.h"
#include "kafka/wire/connect_protocol.h"
#include "kafka/wire/requests.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(bool yes)
{
        if (!yes)
                abort();
}

static void same(const lc_work_t *a, const lc_work_t *b)
{
        check(a->n == b->n);
        for (size_t i = 0; i < a->n; i++)
                check(!strcmp(a->v[i].connector, b->v[i].connector) && a->v[i].task == b->v[i].task);
}

static void assignment(const uint8_t *data, size_t n)
{
        lc_assignment_t a, b;
        lc_buf_t out = LC_BUF_INIT;
        lc_err_t err = {0};

        if (lc_connect_assignment_decode(data, n, &a, &err))
                return;
        check(lc_connect_assignment_encode(&out, a.protocol, &a) == 0);
        check(lc_connect_assignment_decode(out.p, out.len, &b, &err) == 0);
        check(!strcmp(a.leader, b.leader) && !strcmp(a.leader_url, b.leader_url));
        check(a.config_offset == b.config_offset && a.error == b.error && a.delay_ms == b.delay_ms);
        same(&a.assigned, &b.assigned);
        same(&a.revoked, &b.revoked);
        lc_assignment_clear(&a);
        lc_assignment_clear(&b);
        lc_buf_free(&out);
}

static void metadata(const uint8_t *data, size_t n)
{
        lc_connect_metadata_t a, b;
        lc_buf_t out = LC_BUF_INIT;
        lc_err_t err = {0};

        if (lc_connect_metadata_decode(data, n, &a, &err))
                return;
        check(lc_connect_metadata_encode(&out, a.version, a.url, a.config_offset,
                                         a.has_allocation ? &a.allocation : NULL) == 0);
        check(lc_connect_metadata_decode(out.p, out.len, &b, &err) == 0);
        check(!strcmp(a.url, b.url) && a.config_offset == b.config_offset);
        same(&a.allocation.assigned, &b.allocation.assigned);
        lc_connect_metadata_clear(&a);
        lc_connect_metadata_clear(&b);
        lc_buf_free(&out);
}

static void join(lc_wire_reader_t *r, int16_t version)
{
        lc_join_answer_t answer;
        lc_err_t err = {0};

        if (lc_join_get(r, version, &answer, &err))
                return;
        for (size_t i = 0; i < answer.nmembers; i++)
                metadata(answer.members[i].metadata.p, lc_wire_left(&answer.members[i].metadata));
        lc_join_answer_clear(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        lc_wire_reader_t r, bytes;
        lc_coordinator_t coordinator;
        lc_err_t err = {0};
        int16_t version, error;
        uint8_t *copy;

        if (!n)
                return 0;
        version = (int16_t)(data[0] >> 4 & 7);
        copy = malloc(n); /* exactly as long: one byte too far is seen */
        memcpy(copy, data + 1, n - 1);
        lc_wire_reader_init(&r, copy, n - 1);
        switch (data[0] & 7) {
        case 0:
                assignment(copy, n - 1);
                break;
        case 1:
                metadata(copy, n - 1);
                break;
        case 2:
        case 3:
                join(&r, version);
                break;
        case 4:
                if (lc_sync_get(&r, version, &error, &bytes, &err) == 0)
                        assignment(bytes.p, lc_wire_left(&bytes));
                break;
        case 5:
                if (lc_find_coordinator_get(&r, version, &coordinator, &err) == 0)
                        lc_coordinator_clear(&coordinator);
                break;
        default:
                lc_error_get(&r, version, &error, &err);
        }
        free(copy);
        return 0;
}
