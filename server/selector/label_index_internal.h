/*
 * label_index_internal.h -- the data structures of the label index, shared by its files.
 *
 * Inside the index, ids of the database are replaced by dense *ordinals* (uint32). The **group**
 * makes queries cheap: all series of one service, one shape and one *schema* (the sorted set of
 * their own label names). The following is known once for a whole group: which names exist, at
 * which position of a series' pairs the value of a name is, which columns a selector matches, and
 * in which hours any of its series was active. Most queries need no more than that.
 *
 *     service 1-* group *-1 shape (columns)          pair = one (name, value)
 *     schema  1-* group 1-* series -> pairs[]        posting of a pair = the series that have it
 *
 * Private to the selector layer.
 */
#ifndef HEARTH_SELECTOR_LABEL_INDEX_INTERNAL_H
#define HEARTH_SELECTOR_LABEL_INDEX_INTERNAL_H

#include "hearth/selector/label_index.h"

#define ORD_NONE UINT32_MAX

/* Sparse database ids -> ordinals, in pages of 4,096 ids; a page is made with its first id. */
struct id_table {
    uint32_t **pages; /* slots hold ordinal + 1, 0: absent */
    size_t n_pages, cap;
    size_t n_bytes;
};

/* Make room for an id. False if memory was refused. */
HEARTH_MUST_CHECK bool id_table_reserve(struct id_table *table, int32_t id);
/* Set the ordinal of an id with room; ORD_NONE removes the id. */
void id_table_set(struct id_table *table, int32_t id, uint32_t ordinal);
/* The ordinal of an id; ORD_NONE if it is absent. */
uint32_t id_table_get(const struct id_table *table, int32_t id);
void id_table_release(struct id_table *table);

/* A list of ordinals. Up to two are stored in place, because most pairs belong to one series. */
struct ord_list {
    union {
        uint32_t few[2];
        uint32_t *many;
    } u;
    uint32_t n, cap; /* cap 0: stored in place */
};

/* Make room for one more; its bytes are added to *n_bytes. False if memory was refused. */
HEARTH_MUST_CHECK bool ord_list_reserve(struct ord_list *list, size_t *n_bytes);
/* Append, after _reserve. */
void ord_list_push(struct ord_list *list, uint32_t ordinal);
void ord_list_release(struct ord_list *list);
static inline const uint32_t *ord_list_at(const struct ord_list *list)
{
    return list->cap == 0 ? list->u.few : list->u.many;
}

/* Hours with profiles: days with masks of 24 bits, ascending. A single day is stored in place. */
struct day_hours {
    int32_t day;
    uint32_t hours;
};

struct activity {
    union {
        struct day_hours one;
        struct day_hours *many;
    } u;
    uint32_t n, cap; /* cap 0: stored in place */
};

/* Make room for a day, if it is new. False if memory was refused. */
HEARTH_MUST_CHECK bool activity_reserve(struct activity *activity, int32_t day, size_t *n_bytes);
/* Add hours of a day (bit h: hour h), after _reserve. */
void activity_add(struct activity *activity, int32_t day, uint32_t hours);
/* True if any hour is in [from_hour, to_hour]. */
bool activity_meets(const struct activity *activity, int64_t from_hour, int64_t to_hour);
/* The first hour at or after from_hour, the last one at or before to_hour. False: there is none. */
bool activity_first(const struct activity *activity, int64_t from_hour, int64_t *ret_hour);
bool activity_last(const struct activity *activity, int64_t to_hour, int64_t *ret_hour);
/* Delete all hours before `hour`. */
void activity_trim(struct activity *activity, int32_t hour);
void activity_release(struct activity *activity);

/* The quotient rounded down, for days and hours before the epoch too. b > 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

/* Derived labels; those that depend on the column come first. */
enum derived {
    DERIVED_NAME,
    DERIVED_PROFILE_TYPE,
    DERIVED_TYPE,
    DERIVED_UNIT,
    DERIVED_PERIOD_TYPE,
    DERIVED_PERIOD_UNIT,
    N_COLUMN_DERIVED,
    DERIVED_SERVICE = N_COLUMN_DERIVED, /* these two depend on the service */
    DERIVED_SERVICE_DUP,
    N_DERIVED,
};

extern const struct hearth_str hearth_index_derived_names[N_DERIVED];
/* The derived label of that name, or N_DERIVED. */
enum derived hearth_index_derived_of(struct hearth_str name);

struct index_name {
    struct hearth_str text;
    bool is_derived;       /* pairs with the name of a derived label are ignored in series */
    struct ord_list pairs; /* its values, by value_idx */
};

struct index_pair {
    const char *value;
    uint32_t value_n;
    uint32_t name;
    uint32_t value_idx; /* index among the values of the name */
    struct ord_list postings;
};

struct index_service {
    int32_t id;
    uint32_t text; /* its name; several services may have the same */
};

/* Interned texts: equal texts have equal ordinals; 0 is the empty text (an absent label). */
struct index_column {
    uint32_t text[N_COLUMN_DERIVED];
    uint32_t stored_type; /* another profile type id that also selects the column; 0: none */
};

struct index_shape {
    int32_t id;
    uint32_t first_column; /* index into columns */
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
    struct activity activity; /* union of the activities of its series */
};

struct index_series {
    int32_t id;
    uint32_t group;
    size_t first_pair; /* index into pair_pool; one pair per name of the schema, in its order */
    struct activity activity;
};

#define INDEX_ARRAY(type, name) \
    type *name;                 \
    size_t n_##name, cap_##name

struct hearth_label_index {
    struct hearth_arena arena; /* texts and schemas, until the index is freed */
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
    /* Hash of content, keyed by seed -> ordinal. */
    struct hearth_idmap name_map, pair_map, text_map, schema_map, group_map;
    size_t list_bytes; /* bytes of lists and activities that are not stored in place */
    size_t max_bytes;  /* 0: no limit */
    bool is_cut;       /* rows were omitted */
};

/* ---- shared by the querying files ---- */

uint32_t hearth_index_find_name(const struct hearth_label_index *index, struct hearth_str name);
uint32_t hearth_index_find_pair(const struct hearth_label_index *index, uint32_t name,
                                struct hearth_str value);
/* The position of `name` in the schema's names, or -1. */
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

/* The series of a hit; NULL if the index lacks the series or its column. */
static inline const struct index_series *
hearth_index_series_of(const struct hearth_label_index *index, const struct hearth_series_hit *hit)
{
    uint32_t ordinal = id_table_get(&index->series_ids, hit->series_id);
    const struct index_series *series = ordinal == ORD_NONE ? NULL : &index->series[ordinal];

    return series != NULL &&
                   hit->column < index->shapes[index->groups[series->group].shape].n_columns
               ? series
               : NULL;
}

/* The interned text of a derived label for one column of a group; 0 if the label is absent. */
static inline uint32_t hearth_index_derived_text(const struct hearth_label_index *index,
                                                 const struct index_group *group, size_t column,
                                                 enum derived derived)
{
    return derived >= N_COLUMN_DERIVED
               ? group->service_text
               : index->columns[index->shapes[group->shape].first_column + column].text[derived];
}

/*
 * A selector prepared for the index. Everything that depends on the service, the column or the name
 * alone is decided here. What remains is one byte per distinct value, filled when a series needs
 * it.
 */
struct label_test {
    const struct hearth_matcher *matcher;
    uint32_t name;
    bool is_equality, negated; /* is_equality: with one literal */
    uint32_t only_pair; /* is_equality: the pair of the literal, or ORD_NONE if it is absent */
    uint8_t *verdicts;  /* otherwise: per value of the name 0 unknown, 1 no, 2 yes */
};

struct index_query {
    const struct hearth_label_index *index;
    int64_t from_hour, to_hour;
    struct label_test *tests; /* matchers on the series' own labels */
    size_t n_tests;
    int *positions;        /* [n_tests]: position of the name in the schema of a group, or -1 */
    uint32_t positions_of; /* that group */
    uint8_t *states;       /* [n_groups]: enum group_state */
    uint8_t *service_ok, *column_ok, *shape_ok;
    uint32_t *candidates; /* series from postings; NULL: walk the groups instead */
    size_t n_candidates;
    size_t n_bound; /* upper bound of the number of matching series */
    bool nothing;   /* no series can match */
};

HEARTH_MUST_CHECK
enum hearth_status hearth_index_query_init(struct index_query *query,
                                           const struct hearth_label_index *index,
                                           const struct hearth_index_filter *filter,
                                           struct hearth_arena *arena, struct hearth_err *err);

/* True if the series matches and is active in the range. */
bool hearth_index_passes(struct index_query *query, const struct index_series *series);

/* What a caller wants of a group, before its series are read. */
enum want {
    WANT_NONE,
    WANT_ANY, /* any one series: the result does not depend on which of them match */
    WANT_ALL,
};

/* Who reads the matching series. */
struct index_visitor {
    enum want (*want)(void *context, uint32_t group);
    void (*visit)(void *context, uint32_t series);
    void *context;
};

/*
 * Call visitor->visit with the matching series, in no order. For a group with WANT_ANY it is called
 * at most once, and not necessarily with a matching series if it is known that one of the group
 * matches.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_index_walk(struct index_query *query, const struct index_visitor *visitor,
                                     struct hearth_arena *arena, struct hearth_err *err);

/* One requested label name: derived, or of the series' own. */
struct index_wanted {
    struct hearth_str text;
    enum derived derived; /* N_DERIVED: own */
    uint32_t name;        /* own: ordinal, or ORD_NONE if no series has it */
    size_t n_values;      /* ordinals of its values are below this; 0 means absent */
};

/* The distinct names of a request, sorted by text. Texts are copied to arena. NO_MEMORY. */
HEARTH_MUST_CHECK
enum hearth_status hearth_index_look_up_all(const struct hearth_label_index *index,
                                            struct hearth_projected_names names,
                                            struct hearth_arena *arena,
                                            struct index_wanted **ret_wanted, size_t *ret_n,
                                            struct hearth_err *err);
/* The ordinal of the value that a series has in a column; 0 if it lacks the label. */
uint32_t hearth_index_value_of(const struct hearth_label_index *index,
                               const struct index_wanted *wanted, const struct index_series *series,
                               size_t column);
/* The text of a value; value is not 0. */
struct hearth_str hearth_index_value_text(const struct hearth_label_index *index,
                                          const struct index_wanted *wanted, uint32_t value);
/* True if a group's result for this name depends on which of its series match. */
bool hearth_index_varies(const struct hearth_label_index *index, const struct index_wanted *wanted,
                         const struct index_group *group);

#endif
