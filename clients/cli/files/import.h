/*
 * import.h -- the parts of `hearth import`: the two servers (import_sides.c), the copy of one step (import_step.c), all
 * steps with their comparison (cmd_import.c).
 *
 * A pass is one profile type in one window of time. Totals are those of SelectSeries: the point at t is the sum of
 * (t - step, t], in milliseconds.
 *
 * Errors:  as calls return them, with the URL of the server before the message.
 * Threads: not thread-safe.
 * Source:  querier.v1 and push.v1 as in proto/.
 */
#ifndef HEARTH_CLIENTS_IMPORT_H
#define HEARTH_CLIENTS_IMPORT_H

#include "hearth/model/labels.h"
#include "hearth/pb/types/v1/types.pb-c.h"

#include "cli.h"

#define IMPORT_QUERIER "querier.v1.QuerierService/"

/* What was found and done about a profile type. */
struct import_type {
    char *id;
    int64_t n_steps, n_present, n_copied, n_differ; /* steps of a series with data in the source */
    int64_t source_total, here_total;               /* of these steps */
};

/* A series with its points. */
struct import_line {
    struct hearth_labels labels; /* sorted */
    Types__V1__Point **points;
    size_t n_points;
};

struct import_lines {
    struct import_line *v;
    size_t n;
};

struct import {
    struct cli *cli;
    struct hearth_client *source;
    const char *url, *selector;
    int64_t step_ms, pause_ns, next_ns; /* next_ns: of the monotonic clock, of the next push */
    struct hearth_arena window;         /* the series of a type in a window */
    struct hearth_arena step;           /* one merged profile */
    struct import_type *types;          /* in the arena of the client */
    size_t n_types, cap_types;
    int64_t n_reports;
    /* The present pass: a type in the window (from_ms, to_ms]. Queries end a millisecond later, since
     * the last one belongs to the window, too. */
    struct import_type *type;
    int64_t from_ms, to_ms;
    char **names; /* of labels, which tell the series of the type apart; sorted by the server */
    size_t n_names;
};

/* ---- import_sides.c ---- */

/* A call to one of the two servers; the answer is in the arena. */
HEARTH_MUST_CHECK enum hearth_status
import_ask(struct import *im, struct hearth_client *client, struct hearth_arena *arena,
           const char *method, const void *request,
           const struct ProtobufCMessageDescriptor *answer_type, void *ret_answer);
/* Makes the client of the source, with its own URL, tenant and credentials. INVALID_ARGUMENT. */
HEARTH_MUST_CHECK enum hearth_status import_connect(struct import *im);
/* Labels as a selector in an arena; NULL if memory is refused. */
char *import_select(struct hearth_arena *arena, Types__V1__LabelPair *const *labels, size_t n);
/* Sets the names of the pass, as the source has them. OUT_OF_RANGE if there are too many. */
HEARTH_MUST_CHECK enum hearth_status import_find_names(struct import *im);
/* All series of the pass with the totals of their steps, sorted by labels, in the arena of the window. */
HEARTH_MUST_CHECK enum hearth_status
import_find_lines(struct import *im, struct hearth_client *client, struct import_lines *ret);
/* Finds the series with the same labels. Returns NULL if no series has them. */
const struct import_line *import_find_line(const struct import_lines *lines,
                                           const struct import_line *like);

/* ---- import_step.c ---- */

/*
 * Copies the step of a series that ends at `ms` and has this total in the source. INVALID_ARGUMENT if the server
 * refuses the profile; CORRUPT for a merged profile that has more than one sample type.
 */
HEARTH_MUST_CHECK enum hearth_status
import_copy_step(struct import *im, const struct import_line *line, int64_t ms, double expected);

#endif
