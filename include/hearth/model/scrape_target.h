/*
 * scrape_target.h -- an address and path from which servers fetch profiles again and again.
 *
 * Threads: plain data.
 */
#ifndef HEARTH_MODEL_SCRAPE_TARGET_H
#define HEARTH_MODEL_SCRAPE_TARGET_H

#include "hearth/base/hash.h"
#include "hearth/base/str.h"

struct hearth_scrape_target {
    struct hearth_hash128 key; /* of tenant, job, address and path */
    struct hearth_str tenant, job;
    struct hearth_str address; /* HOST:PORT */
    struct hearth_str path;
    /* The latest scrape; zero if there was none. */
    int64_t scraped_ms; /* since the epoch */
    int64_t took_ms;
    int64_t n_bytes;
    struct hearth_str failure; /* empty: it succeeded */
    bool is_claimed;           /* a server scrapes it; answers only */
};

#endif
