/*
 * pprof_runs.h -- messages of one kind as profilers write them, one after another: their fields in
 * the order of their numbers, each at most once, or in that of Go's runtime, which writes the
 * values of a sample before its locations, and the mapping of a location behind its lines (private
 * to the pprof decoder).
 *
 * Each function reads messages from number i on and returns the number of the first one that it did
 * not read, of which nothing counts: it has fields in another order, unknown ones, a fault, more
 * bytes than usual, or stands near the end of the input. The general reader reads that one, and
 * says what is wrong with it. So these functions have no errors, and change nothing but speed.
 *
 * Threads: pure.
 */
#ifndef HEARTH_FORMAT_PPROF_RUNS_H
#define HEARTH_FORMAT_PPROF_RUNS_H

#include "pprof/pprof_scan.h"

/* The strings must have been read. */
uint32_t hearth_pprof_run_functions(struct pprof_scan *s, uint32_t i);
/* The functions and mappings must have been read. Reads no more lines than there is room for. */
uint32_t hearth_pprof_run_locations(struct pprof_scan *s, uint32_t i);
/*
 * The locations must have been read. Reads samples on processors with byte shuffles
 * (s->has_shuffles), and no more location ids and labels than there is room for.
 */
uint32_t hearth_pprof_run_samples(struct pprof_scan *s, uint32_t i);

#endif
