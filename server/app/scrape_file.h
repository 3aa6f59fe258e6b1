/*
 * scrape_file.h -- reads the file of --scrape-config: what to fetch profiles from.
 *
 * YAML, in the shape that Prometheus and Parca made known; docs/how-to/scrape.md describes the
 * keys. Unknown keys are errors, so that nothing is ignored in silence.
 *
 * Ownership: everything lives in the arena, but for the tokens, which
 *            hearth_scrape_file_release frees.
 * Threads:   pure.
 */
#ifndef HEARTH_APP_SCRAPE_FILE_H
#define HEARTH_APP_SCRAPE_FILE_H

#include "hearth/base/arena.h"
#include "hearth/front/scraper.h"

/* INVALID_ARGUMENT: the file cannot be read; "path, line N: ..." for a mistake in it. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_scrape_file_load(const char *path, struct hearth_arena *arena,
                                           struct hearth_scrape_options *ret,
                                           struct hearth_err *err);

/* Free the tokens of the jobs, which are gone afterwards. Not needed after a failure. */
void hearth_scrape_file_release(struct hearth_scrape_options *options);

#endif
