/*
 * listed.h -- the uploads of a tenant as a list: one row for each pushed profile, found by labels
 * and time or by its id alone.
 *
 * An *upload* is what shares an id (model/profile_id.h): a pushed profile with all the rows that
 * ingest has split it into, or all profiles of a file. The list is read from the stored rows
 * themselves, compacted or not. So an upload is listed once it is acknowledged, and no longer when
 * its rows are deleted.
 *
 * Ownership: answers live in the arena of the call.
 * Threads:   safe; each call runs on one thread.
 * Errors:    INVALID_ARGUMENT if the caller can correct the call; NO_MEMORY, DEADLINE_EXCEEDED,
 *            CANCELLED, UNAVAILABLE.
 */
#ifndef HEARTH_ENGINE_LISTED_H
#define HEARTH_ENGINE_LISTED_H

#include "hearth/engine/query.h"
#include "hearth/model/original.h"

/* Which uploads count: those with a row that matches all of these. */
struct hearth_listed_filter {
    struct hearth_str selector;        /* empty: "{}" */
    const struct hearth_label *labels; /* each must be equal */
    size_t n_labels;
    struct hearth_str profile_type; /* rows of this type; empty: of every type */
};

enum hearth_listed_order {
    HEARTH_LISTED_BY_TIME,
    HEARTH_LISTED_BY_DURATION,
    HEARTH_LISTED_BY_TOTAL, /* needs a profile type */
};

/* The place of an upload in an order. */
struct hearth_listed_place {
    int64_t key; /* duration or total; by time: ts_ns again */
    int64_t ts_ns;
    struct hearth_profile_id id;
};

#define HEARTH_LISTED_MAX_PAGE 1000

struct hearth_listed_page {
    enum hearth_listed_order order;
    bool ascending; /* otherwise the largest, or newest, first */
    size_t limit;   /* 1 to HEARTH_LISTED_MAX_PAGE */
    /* Only uploads after this one, the last of the page before. New uploads do not move a page. */
    bool has_after;
    struct hearth_listed_place after;
};

struct hearth_listed_upload {
    struct hearth_profile_id id;
    int64_t ts_ns, duration_ns; /* the earliest and the longest of its rows */
    struct hearth_str service;
    struct hearth_labels labels;      /* labels that all of its selected series have */
    struct hearth_str *profile_types; /* sorted, of its selected series */
    size_t n_profile_types;
    int64_t total; /* of the filter's profile type; 0 without one */
    int64_t n_series;
};

/* The uploads of a page. */
struct hearth_listed_uploads {
    struct hearth_listed_upload *v;
    size_t n;
    bool more;                       /* there are others after the page */
    struct hearth_listed_place last; /* of the last upload, if n > 0 */
};

/* A page of uploads in the range. */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_uploads(const struct hearth_query *query,
                                         const struct hearth_listed_filter *filter,
                                         const struct hearth_listed_page *page,
                                         struct hearth_listed_uploads *ret, struct hearth_err *err);

/* ---- facets ---- */

#define HEARTH_LISTED_MAX_FACETS 100

struct hearth_facet_value {
    struct hearth_str value;
    int64_t n_uploads;
};

struct hearth_facet {
    struct hearth_str label;
    struct hearth_facet_value *values; /* by number of uploads, descending, then by value */
    size_t n_values;
    int64_t n_all;     /* values before the limit was applied */
    int64_t n_uploads; /* uploads that have the label */
};

struct hearth_facets {
    struct hearth_facet *v;
    size_t n;
    int64_t n_uploads; /* that match the filter */
};

struct hearth_facet_spec {
    /* At most HEARTH_LISTED_MAX_FACETS; none: the first ones by name. __profile_type__ is allowed. */
    const struct hearth_str *labels;
    size_t n_labels;
    size_t limit; /* values of each label; 0: all */
};

/*
 * Counts the uploads in the range by the values of labels. An upload whose rows have several values
 * of a label counts once for each.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_facets(const struct hearth_query *query,
                                        const struct hearth_listed_filter *filter,
                                        const struct hearth_facet_spec *spec,
                                        struct hearth_facets *ret, struct hearth_err *err);

/*
 * What a list of the range would read if its page never filled, and what facets read, counted in
 * the database.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_explain(const struct hearth_query *query,
                                         const struct hearth_listed_filter *filter,
                                         struct hearth_explanation *ret, struct hearth_err *err);

/* ---- one upload ---- */

struct hearth_listed_value {
    struct hearth_str profile_type;
    int64_t total;
    uint16_t column; /* the last place of the type among those of a series, as they were sent */
};

/* A series of the upload: a label set, with its types. */
struct hearth_listed_series {
    struct hearth_labels labels;
    struct hearth_listed_value *values;
    size_t n_values;
};

struct hearth_listed_detail {
    struct hearth_listed_upload upload; /* with all of its types; total is 0 */
    struct hearth_listed_value *values; /* sums over its series, by type */
    size_t n_values;
    struct hearth_listed_series *series;
    size_t n_series;
    const struct hearth_original *originals; /* kept files that it was made of */
    size_t n_originals;
    struct hearth_labels client_tags; /* what the client said of itself with the originals */
    int64_t start_ms, end_ms;         /* a range for queries that holds all of its rows */
    struct hearth_str selector;       /* for such queries, together with the id */
};

/*
 * Finds an upload by its id alone. Errors: NOT_FOUND, also if the id was given out by a server that
 * did not write the place into it.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_find(const struct hearth_call *call, struct hearth_profile_id id,
                                      struct hearth_listed_detail *ret, struct hearth_err *err);

/* The most bytes of an original that one call reads. */
#define HEARTH_LISTED_ORIGINAL_BYTES (4 << 20)

struct hearth_original_spec {
    struct hearth_profile_id id;
    int32_t index;  /* in hearth_listed_detail.originals */
    int64_t offset; /* of the first byte */
};

struct hearth_original_bytes {
    struct hearth_str name; /* of the file */
    int64_t n_all;          /* bytes of the file */
    struct hearth_str bytes;
};

/*
 * Reads a part of a file that an upload was made of. Errors: NOT_FOUND if there is no such upload,
 * or no such file; INVALID_ARGUMENT for a negative number.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_original(const struct hearth_call *call,
                                          const struct hearth_original_spec *spec,
                                          struct hearth_original_bytes *ret,
                                          struct hearth_err *err);

/*
 * Appends an uncompressed pprof of the upload, with all of its types as sample types, summed over
 * its series. If two types have one sample type and unit, the name of the type precedes both:
 * mutex_delay and block_delay. Errors: as hearth_listed_find.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_listed_pprof(const struct hearth_call *call, struct hearth_profile_id id,
                                       struct hearth_buf *out, struct hearth_err *err);

#endif
