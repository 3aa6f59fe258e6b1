/*
 * row_rules.c -- judges names of rows by the conditions of a filter.
 *
 * Names of the filter and names that were judged are in two maps, which share the array of flags.
 * Judged names are remembered by their hash alone; if memory for that is refused, a name is judged
 * again each time.
 */
#include "select/row_rules.h"

#include "hearth/base/budget.h"
#include "hearth/selector/pattern.h"

#include <assert.h>
#include <stdio.h>

/* Each filter has two flags: one of its names was met, its pattern was met. */
static uint64_t name_flag(size_t i)
{
    return UINT64_C(2) << (2 * i);
}

static uint64_t pattern_flag(size_t i)
{
    return UINT64_C(4) << (2 * i);
}

static struct hearth_hash128 make_row_key(enum hearth_top_kind kind, struct hearth_str name)
{
    return hearth_hash128(name.p, name.n, hearth_hash_process_seed() + (uint64_t)kind);
}

/* Adds flags to those under a key, which are 0 if it is new. False: memory was refused. */
static bool add_row_flags(struct hearth_row_rules *rules, struct hearth_idmap *map, size_t *charged,
                          struct hearth_hash128 key, uint64_t flags)
{
    bool inserted;

    if (!hearth_arena_grow(&rules->arena, &rules->flags, &rules->cap_flags, rules->n_flags + 1,
                           sizeof rules->flags[0])) {
        return false;
    }

    uint32_t at = hearth_idmap_intern(map, key, (uint32_t)rules->n_flags, &inserted);
    if (at == HEARTH_IDMAP_NONE) {
        return false;
    }

    if (inserted) {
        rules->flags[rules->n_flags++] = 0;
    }

    rules->flags[at] |= flags;
    return hearth_idmap_account(map, &rules->arena, charged);
}

/* Adds a flag to each name of a list. */
static enum hearth_status add_row_names(struct hearth_row_rules *rules, enum hearth_top_kind kind,
                                        const struct hearth_str *names, size_t n, uint64_t flag,
                                        struct hearth_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!add_row_flags(rules, &rules->named, &rules->named_bytes, make_row_key(kind, names[i]),
                           flag)) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate a filter of rows");
        }
    }

    return HEARTH_OK;
}

/* Compiles a regular expression, if there is one. `at` is the index of its filter. */
static enum hearth_status compile_row_pattern(struct hearth_str text, size_t at, const char *field,
                                              struct hearth_pattern **ret, struct hearth_err *err)
{
    char where[48];

    if (text.n == 0) {
        return HEARTH_OK;
    }

    (void)snprintf(where, sizeof where, "stacks.rows[%zu].%s", at, field);
    return hearth_pattern_new(text, where, ret, err);
}

/* Adds filter `at` of the request. */
static enum hearth_status add_row_filter(struct hearth_row_rules *rules,
                                         const struct hearth_row_filter *filter, size_t at,
                                         struct hearth_err *err)
{
    size_t i = rules->n++;

    rules->filters[i] = filter;
    rules->kinds |= UINT32_C(1) << filter->kind;
    rules->required |= filter->n_names > 0 ? name_flag(i) : 0;
    rules->required |= filter->regex.n > 0 ? pattern_flag(i) : 0;

    HEARTH_TRY(
        add_row_names(rules, filter->kind, filter->names, filter->n_names, name_flag(i), err));
    HEARTH_TRY(add_row_names(rules, filter->kind, filter->without, filter->n_without,
                             HEARTH_ROW_BARRED, err));
    HEARTH_TRY(compile_row_pattern(filter->regex, at, "regex", &rules->regex[i], err));
    return compile_row_pattern(filter->without_regex, at, "without_regex", &rules->without[i], err);
}

enum hearth_status hearth_row_rules_init(struct hearth_row_rules *rules,
                                         const struct hearth_stack_filter *filter, bool of_threads,
                                         const struct hearth_arena *like, struct hearth_err *err)
{
    assert(rules != NULL && filter != NULL && like != NULL);

    *rules = (struct hearth_row_rules){0};
    hearth_arena_init_like(&rules->arena, like);
    hearth_idmap_init(&rules->named);
    hearth_idmap_init(&rules->known);
    if (filter->n_rows > HEARTH_ROW_FILTERS_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "stacks.rows: %zu conditions, at most %u are allowed", filter->n_rows,
                           HEARTH_ROW_FILTERS_MAX);
    }

    for (size_t i = 0; i < filter->n_rows; i++) {
        if ((filter->rows[i].kind == HEARTH_TOP_THREAD) == of_threads) {
            HEARTH_TRY(add_row_filter(rules, &filter->rows[i], i, err));
        }
    }
    return HEARTH_OK;
}

void hearth_row_rules_release(struct hearth_row_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        hearth_pattern_free(rules->regex[i]);
        hearth_pattern_free(rules->without[i]);
    }

    hearth_idmap_release(&rules->named);
    hearth_idmap_release(&rules->known);
    hearth_budget_give(rules->arena.budget, rules->named_bytes + rules->known_bytes);
    hearth_arena_release(&rules->arena);
    *rules = (struct hearth_row_rules){0};
}

/* Judges a name by all filters of its table. */
static uint64_t judge_row_name(const struct hearth_row_rules *rules, enum hearth_top_kind kind,
                               struct hearth_str name, struct hearth_hash128 key)
{
    uint32_t at = hearth_idmap_find(&rules->named, key);
    uint64_t flags = at == HEARTH_IDMAP_NONE ? 0 : rules->flags[at];

    for (size_t i = 0; i < rules->n; i++) {
        if (rules->filters[i]->kind != kind) {
            continue;
        }
        if (rules->regex[i] != NULL && hearth_pattern_occurs(rules->regex[i], name)) {
            flags |= pattern_flag(i);
        }
        if (rules->without[i] != NULL && hearth_pattern_occurs(rules->without[i], name)) {
            flags |= HEARTH_ROW_BARRED;
        }
    }

    return flags;
}

uint64_t hearth_row_rules_flags(struct hearth_row_rules *rules, enum hearth_top_kind kind,
                                struct hearth_str name)
{
    if (!hearth_row_rules_have(rules, kind)) {
        return 0;
    }

    struct hearth_hash128 key = make_row_key(kind, name);
    uint32_t at = hearth_idmap_find(&rules->known, key);
    if (at != HEARTH_IDMAP_NONE) {
        return rules->flags[at];
    }

    uint64_t flags = judge_row_name(rules, kind, name, key);
    rules->full =
        rules->full || !add_row_flags(rules, &rules->known, &rules->known_bytes, key, flags);
    return flags;
}
