/*
 * clocks.c -- compares this machine's clock with the database's.
 *
 * A clock decides whether a profile is too old or lies in the future, and a wrong clock refuses all
 * profiles. The only other clock that a server can read is the database's, which is the same for
 * all servers. No server can tell which of the two is right: so a profile is accepted if either
 * clock allows it (engine/ingest/identity.c), and a difference is logged and reported by /ready.
 */
#include "pg/clocks.h"

#include "hearth/base/clock.h"
#include "hearth/base/log.h"
#include "hearth/selector/timeexpr.h"

#include "pg/store_state.h"

#include <stdio.h>
#include <stdlib.h>

#define TOLERATED_NS (10 * HEARTH_NS_PER_SEC)
/* A result that took longer is ignored: its time is too uncertain. */
#define MAX_TRIP_NS (2 * HEARTH_NS_PER_SEC)

void hearth_clocks_explain(int64_t ahead_ns, char out[256])
{
    out[0] = '\0';
    if (ahead_ns != 0) {
        char text[48];
        int64_t seconds = (llabs(ahead_ns) + HEARTH_NS_PER_SEC / 2) / HEARTH_NS_PER_SEC;
        hearth_duration_format(seconds * HEARTH_NS_PER_SEC, text);
        (void)snprintf(out, 256, "this server's clock is %s %s the database's", text,
                       ahead_ns > 0 ? "behind" : "ahead of");
    }
}

int64_t hearth_store_clock_ahead_ns(struct hearth_store *store)
{
    return atomic_load_explicit(&store->clock_ahead_ns, memory_order_relaxed);
}

enum hearth_status hearth_clocks_compare(struct hearth_store *store, struct hearth_pg *pg,
                                         struct hearth_err *err)
{
    PGresult *result = NULL;
    int64_t before_ns = hearth_clock_mono_ns();

    /* Read the database's clock. */
    HEARTH_TRY(hearth_pg_exec(pg, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8",
                              NULL, NULL, &result, NULL, err));

    int64_t trip_ns = hearth_clock_mono_ns() - before_ns;
    int64_t theirs_ns = hearth_pg_i64(result, 0, 0) * 1000;
    PQclear(result);

    if (trip_ns > MAX_TRIP_NS) {
        return HEARTH_OK;
    }

    /* The database read its clock about half a trip ago. */
    int64_t ahead_ns = theirs_ns - (hearth_clock_wall_ns() - trip_ns / 2);
    ahead_ns = llabs(ahead_ns) < TOLERATED_NS ? 0 : ahead_ns;

    /* Log the beginning and the end of a difference. */
    int64_t known_ns = atomic_exchange(&store->clock_ahead_ns, ahead_ns);
    if ((ahead_ns == 0) != (known_ns == 0)) {
        char text[256];
        hearth_clocks_explain(ahead_ns, text);
        HEARTH_LOG(ahead_ns != 0 ? HEARTH_LOG_WARN : HEARTH_LOG_INFO, "store",
                   ahead_ns != 0 ? "clocks differ: profiles are accepted if either clock allows it"
                                 : "clocks agree again",
                   "reason", text, NULL);
    }

    return HEARTH_OK;
}
