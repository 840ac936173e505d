/* clock.h - time. Timers use the monotonic clock only; the wall clock is for records and logs. */
#ifndef LC_BASE_CLOCK_H
#define LC_BASE_CLOCK_H
#include <stdint.h>

int64_t lc_now_ms(void);  /* monotonic, milliseconds */
int64_t lc_wall_ms(void); /* since 1970, milliseconds */
/* ISO-8601 UTC with milliseconds, as Java's Instant: 2024-05-01T10:00:00.123Z. out: 32 bytes. */
void lc_iso8601(int64_t wall_ms, char out[32]);

/* The pause after a pause of `ms` that did not help: twice as long, at most `most`; 0: the first, `least`. */
static inline int lc_backoff(int ms, int least, int most)
{
        return !ms ? least : ms > most / 2 ? most : ms * 2;
}

#endif
