/*
 * scale_sample.h -- a digest of answers, to compare before and after rows have moved.
 *
 * Threads: one.
 */
#ifndef HEARTH_CLI_SCALE_SAMPLE_H
#define HEARTH_CLI_SCALE_SAMPLE_H

#include "cli.h"

/*
 * Ask for up to 100 flame graphs of the range from_ms to to_ms, and write their digest below a
 * table. Errors: those of the calls.
 */
HEARTH_MUST_CHECK enum hearth_status cli_sample_answers(struct cli *cli, struct hearth_buf *foot);

#endif
