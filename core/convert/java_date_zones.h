/* java_date_zones.h - time zones by their English names: inside this room only. */
#ifndef LC_CONVERT_JAVA_DATE_ZONES_H
#define LC_CONVERT_JAVA_DATE_ZONES_H

typedef struct lc_java_zone {
        const char *name;
        int minutes; /* east of UTC */
} lc_java_zone_t;

extern const lc_java_zone_t lc_java_zones[]; /* ends with a name NULL */

#endif
