/*
 * label_index_internal.h -- the shape of the label index, shared by its four files.
 *
 * Ids of the database become dense *ordinals* (uint32) inside. What makes questions cheap is the
 * **group**: all series of one service, one shape and one *schema* (the sorted set of their own
 * label names). For a whole group it is known once which names exist, where in a series' pairs the
 * value of a name stands, which columns a selector takes, and in which hours any of its series was
 * active; most questions end there.
 *
 *     service 1-* group *-1 shape (columns)          pair = one (name, value)
 *     schema  1-* group 1-* series -> pairs[]        posting of a pair = the series that have it
 *
 * Private to the query layer.
 */
#ifndef HEARTH_QUERY_LABEL_INDEX_INTERNAL_H
#define HEARTH_QUERY_LABEL_INDEX_INTERNAL_H

#include "hearth/selector/label_index.h"

#define ORD_NONE UINT32_MAX

/* Sparse database ids -> ordinals: pages of 4,096, made when an id falls into them. */
struct id_table {
    uint32_t **pages; /* slots hold ordinal + 1, 0: absent */
    size_t n_pages, cap;
    size_t n_bytes;
};

HEARTH_MUST_CHECK bool id_table_reserve(struct id_table *table, int32_t id);
void id_table_set(struct id_table *table, int32_t id,
                  uint32_t ordinal);                             /* reserved; ORD_NONE clears */
uint32_t id_table_get(const struct id_table *table, int32_t id); /* ORD_NONE when absent */
void id_table_release(struct id_table *table);

/* A list of ordinals; up to two need no memory of their own (most pairs belong to one series). */
struct ord_list {
    union {
        uint32_t few[2];
        uint32_t *many;
    } u;
    uint32_t n, cap; /* cap 0: in place */
};

HEARTH_MUST_CHECK bool ord_list_reserve(struct ord_list *list,
                                        size_t *n_bytes);    /* room for one more */
void ord_list_push(struct ord_list *list, uint32_t ordinal); /* reserved */
void ord_list_release(struct ord_list *list);
static inline const uint32_t *ord_list_at(const struct ord_list *list)
{
    return list->cap == 0 ? list->u.few : list->u.many;
}

/* Hours with profiles, as days with 24-bit masks, ascending. A single day needs no memory of its
 * own. */
struct day_hours {
    int32_t day;
    uint32_t hours;
};

struct activity {
    union {
        struct day_hours one;
        struct day_hours *many;
    } u;
    uint32_t n, cap; /* cap 0: in place */
};

/* Room for that day, if it is a new one. */
HEARTH_MUST_CHECK bool activity_reserve(struct activity *activity, int32_t day, size_t *n_bytes);
void activity_add(struct activity *activity, int32_t day, uint32_t hours); /* reserved */
bool activity_meets(const struct activity *activity, int64_t from_hour, int64_t to_hour);
/* The first hour from from_hour on; the last one up to to_hour. false: there is none. */
bool activity_first(const struct activity *activity, int64_t from_hour, int64_t *ret_hour);
bool activity_last(const struct activity *activity, int64_t to_hour, int64_t *ret_hour);
void activity_trim(struct activity *activity, int32_t hour); /* forget what is before */
void activity_release(struct activity *activity);

/* Days and hours are floors, before the epoch too. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

/* The derived labels that depend on the column, in this order everywhere. */
enum derived {
    DERIVED_NAME,
    DERIVED_PROFILE_TYPE,
    DERIVED_TYPE,
    DERIVED_UNIT,
    DERIVED_PERIOD_TYPE,
    DERIVED_PERIOD_UNIT,
    N_COLUMN_DERIVED,
    DERIVED_SERVICE = N_COLUMN_DERIVED, /* of the service */
    DERIVED_SERVICE_DUP,
    N_DERIVED,
};

extern const struct hearth_str hearth_index_derived_names[N_DERIVED];
/* The derived label of that name, or N_DERIVED. */
enum derived hearth_index_derived_of(struct hearth_str name);

struct index_name {
    struct hearth_str text;
    bool is_derived; /* a stored label must not shadow a derived one: such pairs are left out of
                        series */
    struct ord_list pairs; /* its values, by value_idx */
};

struct index_pair {
    const char *value;
    uint32_t value_n;
    uint32_t name;
    uint32_t value_idx; /* among the values of the name */
    struct ord_list postings;
};

struct index_service {
    int32_t id;
    uint32_t text; /* its name; several services may share one */
};

/* Interned texts: equal texts have equal ordinals, 0 is the empty text (an absent label). */
struct index_column {
    uint32_t text[N_COLUMN_DERIVED];
    uint32_t stored_type; /* another profile type id that selects it; 0: none */
};

struct index_shape {
    int32_t id;
    uint32_t first_column; /* in columns */
    uint16_t n_columns;
};

struct index_schema {
    const uint32_t *names; /* ordinals, ascending */
    uint16_t n_names;
};

struct index_group {
    uint32_t service, shape, schema;
    uint32_t service_text; /* interned name of the service */
    struct ord_list series;
    struct activity activity; /* union of its series' */
};

struct index_series {
    int32_t id;
    uint32_t group;
    size_t first_pair; /* in pair_pool; as many as the schema has names, in its order */
    struct activity activity;
};

#define INDEX_ARRAY(type, name) \
    type *name;                 \
    size_t n_##name, cap_##name

struct hearth_label_index {
    struct hearth_arena arena; /* texts and schemas; they live as long as the index */
    uint64_t seed;
    INDEX_ARRAY(struct index_service, services);
    INDEX_ARRAY(struct index_shape, shapes);
    INDEX_ARRAY(struct index_column, columns);
    INDEX_ARRAY(struct index_name, names);
    INDEX_ARRAY(struct index_pair, pairs);
    INDEX_ARRAY(struct index_schema, schemas);
    INDEX_ARRAY(struct index_group, groups);
    INDEX_ARRAY(struct index_series, series);
    INDEX_ARRAY(uint32_t, pair_pool);
    INDEX_ARRAY(struct hearth_str, texts);
    struct id_table service_ids, shape_ids, pair_ids, series_ids;
    /* Keyed hashes -> ordinals. */
    struct hearth_idmap name_map, pair_map, text_map, schema_map, group_map;
    size_t list_bytes; /* of lists and activities with memory of their own */
    size_t max_bytes;  /* 0: no limit */
    bool is_cut;       /* rows were left out */
};

/* ---- shared by the asking files ---- */

uint32_t hearth_index_find_name(const struct hearth_label_index *index, struct hearth_str name);
uint32_t hearth_index_find_pair(const struct hearth_label_index *index, uint32_t name,
                                struct hearth_str value);
/* Where `name` stands in the schema's names, or -1. */
int hearth_index_schema_find(const struct index_schema *schema, uint32_t name);

static inline struct hearth_str hearth_index_pair_value(const struct hearth_label_index *index,
                                                        uint32_t pair)
{
    return (struct hearth_str){index->pairs[pair].value, index->pairs[pair].value_n};
}

static inline const uint32_t *hearth_index_series_pairs(const struct hearth_label_index *index,
                                                        const struct index_series *series)
{
    return index->pair_pool + series->first_pair;
}

/* The derived label's interned text for one column of one group; 0 when it is absent. */
static inline uint32_t hearth_index_derived_text(const struct hearth_label_index *index,
                                                 const struct index_group *group, size_t column,
                                                 enum derived derived)
{
    return derived >= N_COLUMN_DERIVED
               ? group->service_text
               : index->columns[index->shapes[group->shape].first_column + column].text[derived];
}

/*
 * A selector against the index, prepared: everything that is decided per service, per column and
 * per name is decided here; what is left is one byte per distinct value, filled when a series asks
 * for it.
 */
struct label_test {
    const struct hearth_matcher *matcher;
    uint32_t name;
    bool is_equality, negated; /* of one literal */
    uint32_t only_pair;        /* the pair of that literal, ORD_NONE when there is none */
    uint8_t *verdicts;         /* else: per value of the name 0 unknown, 1 no, 2 yes */
};

struct index_query {
    const struct hearth_label_index *index;
    int64_t from_hour, to_hour;
    struct label_test *tests; /* on labels of the series' own */
    size_t n_tests;
    int *positions; /* of the tests' names in the schema of the group at hand, -1: not in it */
    uint32_t positions_of; /* that group */
    uint8_t *states;       /* per group: what is already decided about it */
    uint8_t *service_ok, *column_ok, *shape_ok;
    uint32_t *candidates; /* from postings; NULL: walk the groups */
    size_t n_candidates;
    size_t n_bound; /* no more series than this can match */
    bool nothing;   /* no series can match */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_index_query_init(struct index_query *query,
                                           const struct hearth_label_index *index,
                                           const struct hearth_selector *selector, int64_t from_ns,
                                           int64_t to_ns, struct hearth_arena *arena,
                                           struct hearth_err *err);

/* Does the series match and is it active in the range? */
bool hearth_index_passes(struct index_query *query, const struct index_series *series);

/* What the asker wants of a group, before any of its series is looked at. */
enum want {
    WANT_NONE,
    WANT_ANY, /* one series stands for all: the answer does not depend on which of them match */
    WANT_ALL,
};
typedef enum want index_want_fn(void *context, uint32_t group);
typedef void index_visit_fn(void *context, uint32_t series);

/*
 * Show the matching series to `visit`, in no order. Of a group with WANT_ANY at most one is shown,
 * which need not itself match when it is known that one of the group does.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_index_walk(struct index_query *query, index_want_fn *want,
                                     index_visit_fn *visit, void *context,
                                     struct hearth_arena *arena, struct hearth_err *err);

/* One label name that is asked for: derived, of the series' own, or of none. */
struct index_wanted {
    struct hearth_str text;
    enum derived derived; /* N_DERIVED: own */
    uint32_t name;        /* own: ordinal or ORD_NONE */
    size_t n_values;      /* ordinals of its values are below this; 0 is "absent" */
};

struct index_wanted hearth_index_look_up(const struct hearth_label_index *index,
                                         struct hearth_str name);
/* The ordinal of the value that a series has in a column; 0 when it lacks the label. */
uint32_t hearth_index_value_of(const struct hearth_label_index *index,
                               const struct index_wanted *wanted, const struct index_series *series,
                               size_t column);
struct hearth_str hearth_index_value_text(const struct hearth_label_index *index,
                                          const struct index_wanted *wanted,
                                          uint32_t value); /* not 0 */
/* Does the group's answer for this name depend on which of its series match? */
bool hearth_index_varies(const struct hearth_label_index *index, const struct index_wanted *wanted,
                         const struct index_group *group);

#endif
