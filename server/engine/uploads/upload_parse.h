/*
 * upload_parse.h -- the work of a parser on one claimed upload (private to the room).
 *
 * Threads: confined to the parser's thread; `cancel` may be set by others.
 */
#ifndef HEARTH_ENGINE_UPLOAD_PARSE_H
#define HEARTH_ENGINE_UPLOAD_PARSE_H

#include "hearth/engine/uploads.h"

#include "common/call_internal.h"

/*
 * A file is in doubt after this time: its push ids may be forgotten soon (an hour after the push,
 * by the clocks of servers that may differ).
 */
#define HEARTH_UPLOAD_DOUBT_MS (INT64_C(50) * 60 * 1000)
/* A file that has lost so many servers is not parsed again. */
#define HEARTH_UPLOAD_MAX_LOST 3
/* Profiles that are pushed together, and noted together as settled. */
#define HEARTH_UPLOAD_GROUP 16
/* Profiles whose results are kept. */
#define HEARTH_UPLOAD_MAX_RESULTS 1000

struct hearth_upload_work {
    struct hearth_query_engine *engine;
    struct hearth_ingest *ingest;
    struct hearth_budget *budget;         /* memory of the parser; NULL: no limit */
    struct hearth_cancel *cancel;         /* the server stops, or the claim is lost */
    struct hearth_profile_upload *upload; /* claimed; its progress is updated */
    int64_t *body_hash; /* out: of the first bytes as sent, as in ingest_error.h; 0: not read */
};

/*
 * Parses the file, pushes its profiles, and writes progress and results. The caller writes the
 * outcome:
 *
 *     OK           all profiles are settled; upload->n_refused of them were refused, and the reason
 *                  of the first one is in err
 *     UNAVAILABLE, CANCELLED, RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED   try it again
 *     ABORTED      the claim is lost: nothing to write
 *     other        the upload fails
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_parse(const struct hearth_upload_work *work,
                                       struct hearth_err *err);

/* True for the statuses with which a later attempt may succeed. */
bool hearth_upload_may_pass(enum hearth_status status);

/* ---- pushing (upload_push.c) ---- */

/* A file that is being parsed, and what its steps share. */
struct hearth_upload_parsing {
    const struct hearth_upload_work *work;
    struct hearth_profile_upload *upload;
    struct hearth_limits limits;
    struct hearth_arena arena;
    struct hearth_buf bytes; /* as sent, then plain */
    struct hearth_label *labels;
    size_t n_labels;
    struct hearth_str name;             /* the label __name__; empty: the names of the file */
    struct hearth_push_request request; /* all series of the file */
    uint64_t discards[HEARTH_N_DISCARDS];
    struct hearth_err refusal; /* of the first refused profile */
};

/* The scope of the parser's reads and writes, with memory of its own. */
#define HEARTH_PARSING_SCOPE(parse, arena_)    \
    (&(const struct hearth_scope){             \
        .store = (parse)->work->engine->store, \
        .tenant = (parse)->upload->tenant,     \
        .cancel = (parse)->work->cancel,       \
        .arena = (arena_),                     \
    })

/* NO_MEMORY: the file needs more than the parser's budget. */
enum hearth_status hearth_upload_fail_memory(const struct hearth_upload_parsing *p,
                                             struct hearth_err *err);
/* Pushes the profiles of p->request that are not settled. Statuses as above. */
HEARTH_MUST_CHECK
enum hearth_status hearth_upload_push(struct hearth_upload_parsing *p, struct hearth_err *err);

/* ---- numbers of discards as text (upload_discards.c) ---- */

/* Adds the numbers of a text like "cut_stacks=3, skipped_lines=1"; unknown names are ignored. */
void hearth_upload_read_discards(struct hearth_str text, uint64_t discards[HEARTH_N_DISCARDS]);
/* Such a text in the arena; .p is NULL if memory is refused. */
struct hearth_str hearth_upload_write_discards(const uint64_t discards[HEARTH_N_DISCARDS],
                                               struct hearth_arena *arena);

#endif
