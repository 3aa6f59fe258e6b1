/*
 * label_index_fill.c -- the content of the label index: adding, trimming, measuring.
 *
 * Each add first allocates all memory and only then changes the index. So a refusal leaves the
 * index as it was, except for spare room and an unused group or schema.
 */
#include "hearth/base/mem.h"

#include "label_index_internal.h"

#include <assert.h>

/* More than any limit on the labels of a series; content of the database is checked, too. */
#define MAX_PAIRS 1024u

#define CPU_NAME  "process_cpu"
#define WALL_NAME "wall"

/*
 * Reserve of an index with a limit: a page of each id table; the hours of a series and its group.
 */
#define PAGES_BYTES ((size_t)96 << 10)
#define HOURS_BYTES ((size_t)16 << 10)

#define GROW(index, name, more)                                                       \
    hearth_mem_grow(&(index)->name, &(index)->cap_##name, (index)->n_##name + (more), \
                    sizeof *(index)->name)

const struct hearth_str hearth_index_derived_names[N_DERIVED] = {
    [DERIVED_NAME] = {HEARTH_LABEL_NAME, sizeof HEARTH_LABEL_NAME - 1},
    [DERIVED_PROFILE_TYPE] = {HEARTH_LABEL_PROFILE_TYPE, sizeof HEARTH_LABEL_PROFILE_TYPE - 1},
    [DERIVED_TYPE] = {HEARTH_LABEL_TYPE, sizeof HEARTH_LABEL_TYPE - 1},
    [DERIVED_UNIT] = {HEARTH_LABEL_UNIT, sizeof HEARTH_LABEL_UNIT - 1},
    [DERIVED_PERIOD_TYPE] = {HEARTH_LABEL_PERIOD_TYPE, sizeof HEARTH_LABEL_PERIOD_TYPE - 1},
    [DERIVED_PERIOD_UNIT] = {HEARTH_LABEL_PERIOD_UNIT, sizeof HEARTH_LABEL_PERIOD_UNIT - 1},
    [DERIVED_SERVICE] = {HEARTH_LABEL_SERVICE, sizeof HEARTH_LABEL_SERVICE - 1},
    [DERIVED_SERVICE_DUP] = {HEARTH_LABEL_SERVICE_DUP, sizeof HEARTH_LABEL_SERVICE_DUP - 1},
};

enum derived hearth_index_derived_of(struct hearth_str name)
{
    for (size_t i = 0; i < N_DERIVED; i++) {
        if (hearth_str_eq(name, hearth_index_derived_names[i])) {
            return (enum derived)i;
        }
    }
    return N_DERIVED;
}

static struct hearth_hash128 hash_text(const struct hearth_label_index *index,
                                       struct hearth_str text)
{
    return hearth_hash128(text.n == 0 ? "" : text.p, text.n, index->seed);
}

static struct hearth_hash128 hash_pair(const struct hearth_label_index *index, uint32_t name,
                                       struct hearth_str value)
{
    return hearth_hash128(value.n == 0 ? "" : value.p, value.n, hearth_hash_mix(index->seed, name));
}

static struct hearth_hash128 hash_ordinals(const struct hearth_label_index *index,
                                           const uint32_t *ords, size_t n)
{
    return hearth_hash128(ords, n * sizeof *ords, index->seed);
}

uint32_t hearth_index_find_name(const struct hearth_label_index *index, struct hearth_str name)
{
    return hearth_idmap_find(&index->name_map, hash_text(index, name));
}

uint32_t hearth_index_find_pair(const struct hearth_label_index *index, uint32_t name,
                                struct hearth_str value)
{
    return hearth_idmap_find(&index->pair_map, hash_pair(index, name, value));
}

/* Find or add the ordinal of a text; a new text is copied. */
static enum hearth_status intern_text(struct hearth_label_index *index, struct hearth_str text,
                                      uint32_t *ret_ordinal)
{
    if (text.n == 0) {
        *ret_ordinal = 0;
        return HEARTH_OK;
    }

    struct hearth_hash128 key = hash_text(index, text);
    *ret_ordinal = hearth_idmap_find(&index->text_map, key);
    if (*ret_ordinal != HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    struct hearth_str copy = hearth_arena_str(&index->arena, text);
    bool inserted;
    if (copy.p == NULL || !GROW(index, texts, 1) ||
        (*ret_ordinal = hearth_idmap_intern(&index->text_map, key, (uint32_t)index->n_texts,
                                            &inserted)) == HEARTH_IDMAP_NONE) {
        return HEARTH_NO_MEMORY;
    }

    index->texts[index->n_texts++] = copy;

    return HEARTH_OK;
}

struct hearth_label_index *hearth_label_index_new(void)
{
    struct hearth_label_index *index = hearth_mem_zalloc(sizeof *index);

    if (index == NULL) {
        return NULL;
    }

    hearth_arena_init(&index->arena, 0);
    index->seed = hearth_hash_process_seed();
    hearth_idmap_init(&index->name_map);
    hearth_idmap_init(&index->pair_map);
    hearth_idmap_init(&index->text_map);
    hearth_idmap_init(&index->schema_map);
    hearth_idmap_init(&index->group_map);
    if (!GROW(index, texts, 1)) {
        hearth_label_index_free(index);
        return NULL;
    }

    index->texts[index->n_texts++] = HEARTH_STR("");

    return index;
}

void hearth_label_index_free(struct hearth_label_index *index)
{
    if (index == NULL) {
        return;
    }

    for (size_t i = 0; i < index->n_series; i++) {
        activity_release(&index->series[i].activity);
    }

    for (size_t i = 0; i < index->n_groups; i++) {
        activity_release(&index->groups[i].activity);
        ord_list_release(&index->groups[i].series);
    }

    for (size_t i = 0; i < index->n_names; i++) {
        ord_list_release(&index->names[i].pairs);
    }

    for (size_t i = 0; i < index->n_pairs; i++) {
        ord_list_release(&index->pairs[i].postings);
    }

    void *const arrays[] = {index->services,  index->shapes,  index->columns, index->names,
                            index->pairs,     index->schemas, index->groups,  index->series,
                            index->pair_pool, index->texts};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(arrays); i++) {
        hearth_mem_free(arrays[i]);
    }

    id_table_release(&index->service_ids);
    id_table_release(&index->shape_ids);
    id_table_release(&index->pair_ids);
    id_table_release(&index->series_ids);
    hearth_idmap_release(&index->name_map);
    hearth_idmap_release(&index->pair_map);
    hearth_idmap_release(&index->text_map);
    hearth_idmap_release(&index->schema_map);
    hearth_idmap_release(&index->group_map);
    hearth_arena_release(&index->arena);
    hearth_mem_free(index);
}

size_t hearth_label_index_series(const struct hearth_label_index *index)
{
    return index->n_series;
}

size_t hearth_label_index_bytes(const struct hearth_label_index *index)
{
    size_t n = sizeof *index + index->arena.used_bytes + index->list_bytes;

    n += index->cap_services * sizeof *index->services + index->cap_shapes * sizeof *index->shapes;
    n += index->cap_columns * sizeof *index->columns + index->cap_names * sizeof *index->names;
    n += index->cap_pairs * sizeof *index->pairs + index->cap_schemas * sizeof *index->schemas;
    n += index->cap_groups * sizeof *index->groups + index->cap_series * sizeof *index->series;
    n += index->cap_pair_pool * sizeof *index->pair_pool + index->cap_texts * sizeof *index->texts;
    n += index->service_ids.n_bytes + index->shape_ids.n_bytes + index->pair_ids.n_bytes +
         index->series_ids.n_bytes;
    n += hearth_idmap_bytes(&index->name_map) + hearth_idmap_bytes(&index->pair_map) +
         hearth_idmap_bytes(&index->text_map) + hearth_idmap_bytes(&index->schema_map) +
         hearth_idmap_bytes(&index->group_map);

    return n;
}

void hearth_label_index_set_limit(struct hearth_label_index *index, size_t max_bytes)
{
    index->max_bytes = max_bytes;
}

bool hearth_label_index_is_cut(const struct hearth_label_index *index)
{
    return index->is_cut;
}

/* The most that a full array grows by. */
#define NEXT_GROWTH(index, name) \
    ((index)->n_##name == (index)->cap_##name ? (index)->cap_##name * sizeof *(index)->name : 0)

/*
 * True if a row with `more` bytes of its own may not fit: it is omitted, and the index is cut from
 * now on.
 */
static bool omit_row(struct hearth_label_index *index, size_t more)
{
    if (index->max_bytes == 0) {
        return false;
    }

    /* Everything that may grow with the row. */
    more += NEXT_GROWTH(index, services) + NEXT_GROWTH(index, shapes) +
            NEXT_GROWTH(index, columns) + NEXT_GROWTH(index, pairs) + NEXT_GROWTH(index, groups) +
            NEXT_GROWTH(index, series) + NEXT_GROWTH(index, pair_pool) + NEXT_GROWTH(index, texts);
    more += hearth_idmap_bytes(&index->pair_map) + hearth_idmap_bytes(&index->text_map) +
            hearth_idmap_bytes(&index->group_map);            /* each may double */
    more += index->n_series * sizeof(uint32_t) + PAGES_BYTES; /* lists and id tables */
    size_t n_bytes = hearth_label_index_bytes(index);
    bool is_full = more > index->max_bytes || n_bytes > index->max_bytes - more;
    index->is_cut = index->is_cut || is_full;

    return is_full;
}

/* The status for a reference to a missing row: it was omitted, or the database is damaged. */
static enum hearth_status check_missing(const struct hearth_label_index *index)
{
    return index->is_cut ? HEARTH_OK : HEARTH_CORRUPT;
}

enum hearth_status hearth_label_index_add_service(struct hearth_label_index *index,
                                                  int32_t service_id, struct hearth_str name)
{
    assert(index != NULL);

    if (service_id <= 0) {
        return HEARTH_CORRUPT;
    }

    if (id_table_get(&index->service_ids, service_id) != ORD_NONE || omit_row(index, name.n)) {
        return HEARTH_OK;
    }

    uint32_t text;
    HEARTH_TRY(intern_text(index, name, &text));
    if (!GROW(index, services, 1) || !id_table_reserve(&index->service_ids, service_id)) {
        return HEARTH_NO_MEMORY;
    }

    id_table_set(&index->service_ids, service_id, (uint32_t)index->n_services);
    index->services[index->n_services++] = (struct index_service){service_id, text};

    return HEARTH_OK;
}

/* Find or add the ordinal of a label name. */
static enum hearth_status intern_name(struct hearth_label_index *index, struct hearth_str name,
                                      uint32_t *ret_ordinal)
{
    *ret_ordinal = hearth_index_find_name(index, name);
    if (*ret_ordinal != HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    uint32_t text;
    bool inserted;
    HEARTH_TRY(intern_text(index, name, &text));
    if (!GROW(index, names, 1) || (*ret_ordinal = hearth_idmap_intern(
                                       &index->name_map, hash_text(index, name),
                                       (uint32_t)index->n_names, &inserted)) == HEARTH_IDMAP_NONE) {
        return HEARTH_NO_MEMORY;
    }

    index->names[index->n_names++] = (struct index_name){
        .text = index->texts[text], .is_derived = hearth_index_derived_of(name) != N_DERIVED};

    return HEARTH_OK;
}

enum hearth_status hearth_label_index_add_pair(struct hearth_label_index *index, int32_t pair_id,
                                               struct hearth_str name, struct hearth_str value)
{
    assert(index != NULL);

    if (pair_id <= 0 || name.n == 0 || value.n == 0 || value.n > UINT32_MAX) {
        return HEARTH_CORRUPT;
    }

    if (id_table_get(&index->pair_ids, pair_id) != ORD_NONE || omit_row(index, name.n + value.n)) {
        return HEARTH_OK;
    }

    /* The name. */
    uint32_t name_ord;
    HEARTH_TRY(intern_name(index, name, &name_ord));
    if (!id_table_reserve(&index->pair_ids, pair_id)) {
        return HEARTH_NO_MEMORY;
    }

    /* The pair; several ids may stand for the same. */
    struct hearth_hash128 key = hash_pair(index, name_ord, value);
    uint32_t ordinal = hearth_idmap_find(&index->pair_map, key);
    if (ordinal == HEARTH_IDMAP_NONE) {
        struct index_name *owner = &index->names[name_ord];
        struct hearth_str copy = hearth_arena_str(&index->arena, value);
        bool inserted;
        if (copy.p == NULL || !GROW(index, pairs, 1) ||
            !ord_list_reserve(&owner->pairs, &index->list_bytes) ||
            (ordinal = hearth_idmap_intern(&index->pair_map, key, (uint32_t)index->n_pairs,
                                           &inserted)) == HEARTH_IDMAP_NONE) {
            return HEARTH_NO_MEMORY;
        }

        index->pairs[index->n_pairs++] = (struct index_pair){.value = copy.p,
                                                             .value_n = (uint32_t)copy.n,
                                                             .name = name_ord,
                                                             .value_idx = owner->pairs.n};
        ord_list_push(&owner->pairs, ordinal);
    }

    id_table_set(&index->pair_ids, pair_id, ordinal);

    return HEARTH_OK;
}

/* The parts of a profile type id; all empty if it is malformed. */
static struct hearth_profile_type parse_type(struct hearth_str type_id)
{
    struct hearth_profile_type type = {0};
    if (hearth_profile_type_parse(type_id, &type, NULL) != HEARTH_OK) {
        type = (struct hearth_profile_type){0};
    }
    return type;
}

/*
 * Set the derived labels of a column. The column of a malformed id has only one of them, its
 * profile type.
 */
static enum hearth_status derive_column(struct hearth_label_index *index, struct hearth_str type_id,
                                        struct index_column *ret_column)
{
    struct hearth_profile_type type = parse_type(type_id);
    const struct hearth_str parts[N_COLUMN_DERIVED] = {
        [DERIVED_NAME] = type.name,
        [DERIVED_PROFILE_TYPE] = type_id,
        [DERIVED_TYPE] = type.sample_type,
        [DERIVED_UNIT] = type.sample_unit,
        [DERIVED_PERIOD_TYPE] = type.period_type,
        [DERIVED_PERIOD_UNIT] = type.period_unit,
    };

    for (size_t i = 0; i < N_COLUMN_DERIVED; i++) {
        HEARTH_TRY(intern_text(index, parts[i], &ret_column->text[i]));
    }

    ret_column->stored_type = 0;

    return HEARTH_OK;
}

/* All types of a profile have one name, so a CPU column of a shape with `wall` is a wall type. */
static bool is_wall_cpu(struct hearth_str type_id, const struct hearth_str *type_ids, size_t n)
{
    struct hearth_profile_type type = parse_type(type_id);
    bool is_cpu = hearth_str_eq_c(type.name, CPU_NAME) && hearth_str_eq_c(type.sample_type, "cpu");

    for (size_t i = 0; is_cpu && i < n; i++) {
        if (hearth_str_eq_c(parse_type(type_ids[i]).name, WALL_NAME)) {
            return true;
        }
    }

    return false;
}

/* Set the derived labels of such a column: it is listed as wall:cpu:..., and found by both ids. */
static enum hearth_status derive_wall_cpu(struct hearth_label_index *index,
                                          struct hearth_str type_id,
                                          struct index_column *ret_column)
{
    struct hearth_buf id;

    hearth_buf_init(&id, 0);
    hearth_buf_cstr(&id, WALL_NAME);
    hearth_buf_append(&id, type_id.p + sizeof CPU_NAME - 1, type_id.n - (sizeof CPU_NAME - 1));
    enum hearth_status status = hearth_buf_failed(&id) ? HEARTH_NO_MEMORY : HEARTH_OK;
    if (status == HEARTH_OK) {
        status = derive_column(index, hearth_buf_view(&id), ret_column);
    }

    if (status == HEARTH_OK) {
        status = intern_text(index, type_id, &ret_column->stored_type);
    }

    hearth_buf_release(&id);

    return status;
}

enum hearth_status hearth_label_index_add_shape(struct hearth_label_index *index, int32_t shape_id,
                                                const struct hearth_str *type_ids, size_t n_types)
{
    assert(index != NULL && (type_ids != NULL || n_types == 0));

    if (shape_id <= 0 || n_types == 0 || n_types > UINT16_MAX) {
        return HEARTH_CORRUPT;
    }

    if (id_table_get(&index->shape_ids, shape_id) != ORD_NONE) {
        return HEARTH_OK;
    }

    /* Does it fit? */
    size_t n_bytes = 0;
    for (size_t i = 0; i < n_types; i++) {
        n_bytes += 2 * type_ids[i].n; /* the id, and its parts */
    }

    if (omit_row(index, n_bytes)) {
        return HEARTH_OK;
    }

    if (!GROW(index, columns, n_types) || !GROW(index, shapes, 1) ||
        !id_table_reserve(&index->shape_ids, shape_id)) {
        return HEARTH_NO_MEMORY;
    }

    /* Derive the labels of its columns, after the published ones. */
    for (size_t i = 0; i < n_types; i++) {
        struct index_column *column = &index->columns[index->n_columns + i];
        HEARTH_TRY(is_wall_cpu(type_ids[i], type_ids, n_types)
                       ? derive_wall_cpu(index, type_ids[i], column)
                       : derive_column(index, type_ids[i], column));
    }

    /* Publish. */
    id_table_set(&index->shape_ids, shape_id, (uint32_t)index->n_shapes);
    index->shapes[index->n_shapes++] = (struct index_shape){
        .id = shape_id, .first_column = (uint32_t)index->n_columns, .n_columns = (uint16_t)n_types};
    index->n_columns += n_types;

    return HEARTH_OK;
}

static enum hearth_status intern_schema(struct hearth_label_index *index, const uint32_t *names,
                                        size_t n, uint32_t *ret_ordinal)
{
    struct hearth_hash128 key = hash_ordinals(index, names, n);

    *ret_ordinal = hearth_idmap_find(&index->schema_map, key);
    if (*ret_ordinal != HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    uint32_t *copy = hearth_arena_array(&index->arena, n, sizeof *copy);
    bool inserted;
    if (copy == NULL || !GROW(index, schemas, 1) ||
        (*ret_ordinal = hearth_idmap_intern(&index->schema_map, key, (uint32_t)index->n_schemas,
                                            &inserted)) == HEARTH_IDMAP_NONE) {
        return HEARTH_NO_MEMORY;
    }

    if (n > 0) {
        memcpy(copy, names, n * sizeof *copy);
    }

    index->schemas[index->n_schemas++] = (struct index_schema){copy, (uint16_t)n};

    return HEARTH_OK;
}

static enum hearth_status intern_group(struct hearth_label_index *index, uint32_t service,
                                       uint32_t shape, uint32_t schema, uint32_t *ret_ordinal)
{
    const uint32_t parts[] = {service, shape, schema};
    struct hearth_hash128 key = hash_ordinals(index, parts, 3);

    *ret_ordinal = hearth_idmap_find(&index->group_map, key);
    if (*ret_ordinal != HEARTH_IDMAP_NONE) {
        return HEARTH_OK;
    }

    bool inserted;
    if (!GROW(index, groups, 1) ||
        (*ret_ordinal = hearth_idmap_intern(&index->group_map, key, (uint32_t)index->n_groups,
                                            &inserted)) == HEARTH_IDMAP_NONE) {
        return HEARTH_NO_MEMORY;
    }

    index->groups[index->n_groups++] =
        (struct index_group){.service = service,
                             .shape = shape,
                             .schema = schema,
                             .service_text = index->services[service].text};

    return HEARTH_OK;
}

/*
 * Look up the pairs, and sort them by name into `pairs`; their names are stored after the room for
 * n_pairs.
 */
static enum hearth_status resolve_pairs(const struct hearth_label_index *index,
                                        const int32_t *pair_ids, size_t n_pairs, uint32_t *pairs,
                                        size_t *ret_n)
{
    uint32_t *names = pairs + n_pairs;
    size_t n = 0;

    for (size_t i = 0; i < n_pairs; i++) {
        uint32_t pair = id_table_get(&index->pair_ids, pair_ids[i]);
        if (pair == ORD_NONE) {
            return HEARTH_NOT_FOUND;
        }
        uint32_t name = index->pairs[pair].name;
        if (index->names[name].is_derived) {
            continue;
        }

        /* Insert them in order. */
        size_t at = n++;
        for (; at > 0 && names[at - 1] >= name; at--) {
            if (names[at - 1] == name) {
                return HEARTH_CORRUPT;
            }
            names[at] = names[at - 1];
            pairs[at] = pairs[at - 1];
        }

        names[at] = name;
        pairs[at] = pair;
    }

    *ret_n = n;

    return HEARTH_OK;
}

enum hearth_status hearth_label_index_add_series(struct hearth_label_index *index,
                                                 int32_t series_id, int32_t service_id,
                                                 int32_t shape_id, const int32_t *pair_ids,
                                                 size_t n_pairs)
{
    assert(index != NULL && (pair_ids != NULL || n_pairs == 0));

    uint32_t service = id_table_get(&index->service_ids, service_id);
    uint32_t shape = id_table_get(&index->shape_ids, shape_id);

    if (series_id <= 0 || n_pairs > MAX_PAIRS) {
        return HEARTH_CORRUPT;
    }

    if (service == ORD_NONE || shape == ORD_NONE) {
        return check_missing(index);
    }

    if (id_table_get(&index->series_ids, series_id) != ORD_NONE ||
        omit_row(index, n_pairs * sizeof(uint32_t))) {
        return HEARTH_OK;
    }

    /* One more, so that the pool has an address even if the first series have no labels. */
    if (!GROW(index, pair_pool, 2 * n_pairs + 1) || !GROW(index, series, 1) ||
        !id_table_reserve(&index->series_ids, series_id)) {
        return HEARTH_NO_MEMORY;
    }

    /*
     * The pairs go to their place; the names, needed only for the schema, to the room after them.
     */
    uint32_t *pairs = index->pair_pool + index->n_pair_pool, *names = pairs + n_pairs;
    uint32_t schema, group;
    size_t n;
    enum hearth_status status = resolve_pairs(index, pair_ids, n_pairs, pairs, &n);
    if (status != HEARTH_OK) {
        return status == HEARTH_NOT_FOUND ? check_missing(index) : status;
    }

    /* The group, and room in all lists. */
    HEARTH_TRY(intern_schema(index, names, n, &schema));
    HEARTH_TRY(intern_group(index, service, shape, schema, &group));
    if (!ord_list_reserve(&index->groups[group].series, &index->list_bytes)) {
        return HEARTH_NO_MEMORY;
    }

    for (size_t i = 0; i < n; i++) {
        if (!ord_list_reserve(&index->pairs[pairs[i]].postings, &index->list_bytes)) {
            return HEARTH_NO_MEMORY;
        }
    }

    /* Nothing can fail from here on. */
    uint32_t ordinal = (uint32_t)index->n_series;
    ord_list_push(&index->groups[group].series, ordinal);
    for (size_t i = 0; i < n; i++) {
        ord_list_push(&index->pairs[pairs[i]].postings, ordinal);
    }

    id_table_set(&index->series_ids, series_id, ordinal);
    index->series[index->n_series++] =
        (struct index_series){.id = series_id, .group = group, .first_pair = index->n_pair_pool};
    index->n_pair_pool += n;

    return HEARTH_OK;
}

enum hearth_status hearth_label_index_add_day(struct hearth_label_index *index, int32_t series_id,
                                              int32_t day, uint32_t hours)
{
    uint32_t ordinal = id_table_get(&index->series_ids, series_id);

    if (ordinal == ORD_NONE) {
        return index->is_cut ? HEARTH_OK : HEARTH_NOT_FOUND;
    }

    hours &= (1u << 24) - 1;
    if (hours == 0) {
        return HEARTH_OK;
    }

    if (index->max_bytes > 0 && hearth_label_index_bytes(index) + HOURS_BYTES > index->max_bytes) {
        index->is_cut = true;
        return HEARTH_OK;
    }

    /* Make room in the series and in its group, then add to both. */
    struct activity *own = &index->series[ordinal].activity;
    struct activity *common = &index->groups[index->series[ordinal].group].activity;
    if (!activity_reserve(own, day, &index->list_bytes) ||
        !activity_reserve(common, day, &index->list_bytes)) {
        return HEARTH_NO_MEMORY;
    }

    activity_add(own, day, hours);
    activity_add(common, day, hours);

    return HEARTH_OK;
}

enum hearth_status hearth_label_index_add_hour(struct hearth_label_index *index, int32_t series_id,
                                               int32_t hour)
{
    int64_t day = floor_div(hour, 24);
    return hearth_label_index_add_day(index, series_id, (int32_t)day,
                                      1u << (unsigned)(hour - day * 24));
}

/* Remove ordinals of deleted series and renumber the rest: the id table has the new numbers. */
static void renumber_list(const struct hearth_label_index *index, struct ord_list *list)
{
    uint32_t *ords = list->cap == 0 ? list->u.few : list->u.many;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t ordinal = id_table_get(&index->series_ids, index->series[ords[i]].id);
        if (ordinal != ORD_NONE) {
            ords[kept++] = ordinal;
        }
    }

    list->n = kept;
}

/* Delete the series that the id table lacks. Needs no memory, so it cannot fail. */
static void compact_series(struct hearth_label_index *index)
{
    for (size_t i = 0; i < index->n_pairs; i++) {
        renumber_list(index, &index->pairs[i].postings);
    }

    for (size_t i = 0; i < index->n_groups; i++) {
        renumber_list(index, &index->groups[i].series);
    }

    size_t n_series = 0, n_pool = 0;
    for (size_t i = 0; i < index->n_series; i++) {
        struct index_series *series = &index->series[i];
        if (id_table_get(&index->series_ids, series->id) == ORD_NONE) {
            index->list_bytes -= series->activity.cap * sizeof(struct day_hours);
            activity_release(&series->activity);
            continue;
        }

        size_t n = index->schemas[index->groups[series->group].schema].n_names;
        memmove(index->pair_pool + n_pool, index->pair_pool + series->first_pair,
                n * sizeof(uint32_t));
        series->first_pair = n_pool;
        n_pool += n;
        index->series[n_series++] = *series;
    }

    index->n_series = n_series;
    index->n_pair_pool = n_pool;
}

void hearth_label_index_trim(struct hearth_label_index *index, int32_t hour)
{
    assert(index != NULL);

    /* Assign new numbers to the series that stay. */
    uint32_t next = 0;

    for (size_t i = 0; i < index->n_series; i++) {
        struct index_series *series = &index->series[i];

        /* A series without any hour was just added; it has lost nothing. */
        bool had = series->activity.n > 0;
        activity_trim(&series->activity, hour);
        bool gone = had && series->activity.n == 0;
        id_table_set(&index->series_ids, series->id, gone ? ORD_NONE : next++);
    }

    for (size_t i = 0; i < index->n_groups; i++) {
        activity_trim(&index->groups[i].activity, hour);
    }

    if (next < index->n_series) {
        compact_series(index);
    }
}
