/*
 * merge_pprof.c -- turns sums of stacks into one pprof message: locations, lines, files and
 * mappings are kept; equal stacks of different dictionaries are merged by content.
 *
 * With max_nodes the message is truncated like a flame graph: a stack keeps its root-most frames as
 * long as the total of their node reaches the bound; one leaf-side location "other" replaces the
 * rest. With go_pgo the leaf side is kept instead.
 */
#include "hearth/base/budget.h"
#include "hearth/base/mem.h"
#include "hearth/format/pprof.h"
#include "hearth/format/profile_builder.h"

#include "select/query_internal.h"
#include "select/row_mask.h"
#include "select/stack_filter.h"

#include <assert.h>

/* Which of the first n_nodes nodes of a name tree are in the message. */
struct export_marks {
    struct hearth_name_tree *tree; /* a reference */
    uint32_t n_nodes;
    bool *inside; /* leaves of stacks that pass the filter; NULL: all */
    bool *stays;  /* nodes whose total reaches the bound; NULL: all */
};

struct pprof_merge {
    const struct hearth_query *query;
    const struct hearth_merge_spec *spec;
    struct hearth_profile_builder *builder;
    struct hearth_stacktree tree; /* used with max_nodes only */
    int64_t min_total;
    uint32_t find_other_location;
    struct export_marks *marks;
    size_t n_marks, cap_marks;
    struct hearth_idmap by_stack; /* content of a whole stack -> its sample */
    size_t by_stack_bytes;        /* charged to the query's budget */
    bool shares_stacks;           /* whole stacks of several dictionaries are merged by content */
};

/* The ids of one dictionary in the message; HEARTH_NO_INDEX: not translated yet. */
struct export_translation {
    const struct hearth_dict *dict;
    const struct export_marks *marks;
    uint32_t *location, *function, *mapping;
    uint32_t *callee; /* with aggregate_callees: locations that are leaves */
    struct hearth_arena *scratch;
};

static bool is_truncated(const struct hearth_merge_spec *spec)
{
    return spec->has_max_nodes && spec->max_nodes > 0 && !spec->go_pgo;
}

static uint32_t *make_no_index_array(struct hearth_arena *arena, size_t n)
{
    uint32_t *array = hearth_arena_array(arena, n, sizeof array[0]);
    if (array != NULL) {
        memset(array, 0xff, n * sizeof array[0]);
    }
    return array;
}

static uint32_t export_string(struct pprof_merge *m, const struct hearth_dict *dict,
                              uint32_t string)
{
    return hearth_profile_builder_string(m->builder, dict->strings[string]);
}

static uint32_t export_mapping(struct pprof_merge *m, struct export_translation *t,
                               uint32_t mapping)
{
    if (mapping == HEARTH_NO_INDEX) {
        return HEARTH_NO_INDEX;
    }

    if (t->mapping[mapping] == HEARTH_NO_INDEX) {
        struct hearth_mapping copy = t->dict->mappings[mapping];
        copy.filename = export_string(m, t->dict, copy.filename);
        copy.build_id = export_string(m, t->dict, copy.build_id);
        t->mapping[mapping] = hearth_profile_builder_mapping(m->builder, &copy);
    }

    return t->mapping[mapping];
}

static uint32_t export_function(struct pprof_merge *m, struct export_translation *t,
                                uint32_t function)
{
    if (t->function[function] == HEARTH_NO_INDEX) {
        struct hearth_function copy = t->dict->functions[function];
        copy.name = export_string(m, t->dict, copy.name);
        copy.system_name = export_string(m, t->dict, copy.system_name);
        copy.filename = export_string(m, t->dict, copy.filename);
        t->function[function] = hearth_profile_builder_function(m->builder, &copy);
    }

    return t->function[function];
}

/*
 * Exports a location. as_callee: without the line number of its leaf frame. HEARTH_NO_INDEX: memory
 * was refused.
 */
static uint32_t export_location(struct pprof_merge *m, struct export_translation *t,
                                uint32_t location, bool as_callee, struct hearth_arena *arena)
{
    uint32_t *known = as_callee ? &t->callee[location] : &t->location[location];
    if (*known != HEARTH_NO_INDEX) {
        return *known;
    }

    struct hearth_location copy = t->dict->locations[location];
    struct hearth_line *lines = hearth_arena_array(arena, copy.n_lines, sizeof lines[0]);
    if (lines == NULL) {
        return HEARTH_NO_INDEX;
    }

    uint32_t n_lines = 0;
    for (uint32_t i = 0; i < copy.n_lines; i++) {
        const struct hearth_line *from = &t->dict->lines[copy.first_line + i];
        if (from->function == HEARTH_NO_INDEX) {
            continue; /* pushes with such lines are refused, but a damaged chunk may have one */
        }
        struct hearth_line *line = &lines[n_lines++];
        *line = (struct hearth_line){export_function(m, t, from->function),
                                     as_callee && i == 0 ? 0 : from->line};
        if (line->function == HEARTH_NO_INDEX) {
            return HEARTH_NO_INDEX;
        }
    }

    copy.mapping = export_mapping(m, t, copy.mapping);
    *known = hearth_profile_builder_location(m->builder, &copy, lines, n_lines);
    return *known;
}

/* The location that replaces the frames that a truncated stack lost. */
static uint32_t find_other_location(struct pprof_merge *m)
{
    if (m->find_other_location == HEARTH_NO_INDEX) {
        uint32_t name = hearth_profile_builder_string(m->builder, HEARTH_STR("other"));
        uint32_t empty = hearth_profile_builder_string(m->builder, HEARTH_STR(""));
        struct hearth_function function = {.name = name, .system_name = name, .filename = empty};
        struct hearth_line line = {hearth_profile_builder_function(m->builder, &function), 0};
        struct hearth_location location = {.mapping = HEARTH_NO_INDEX};
        if (name != HEARTH_NO_INDEX && line.function != HEARTH_NO_INDEX) {
            m->find_other_location =
                hearth_profile_builder_location(m->builder, &location, &line, 1);
        }
    }

    return m->find_other_location;
}

/*
 * Exports the part of a stack that the Go compiler needs (spec->go_pgo): its leaf-most locations,
 * each the caller of the previous one.
 */
static enum hearth_status export_leaf_side(struct pprof_merge *m, struct export_translation *t,
                                           uint32_t stack, int64_t value, struct hearth_err *err)
{
    struct hearth_arena *arena = t->scratch;
    const struct hearth_dict *dict = t->dict;
    const uint32_t *from = dict->stack_locs + dict->stack_first[stack];
    uint32_t n = dict->stack_first[stack + 1] - dict->stack_first[stack];
    if (m->spec->keep_locations > 0 && m->spec->keep_locations < n) {
        n = m->spec->keep_locations;
    }

    uint32_t *locations = hearth_arena_array(arena, n, sizeof locations[0]);
    if (locations == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    for (uint32_t i = 0; i < n; i++) {
        locations[i] = export_location(m, t, from[i], i == 0 && t->callee != NULL, arena);
        if (locations[i] == HEARTH_NO_INDEX) {
            return HEARTH_FAIL_ARENA(err, m->query->call.arena);
        }
    }

    return hearth_profile_builder_sample(m->builder, locations, n, &value, err);
}

/* The number of locations of a stack that are kept, counted from the root. */
static uint32_t count_kept_locations(const struct export_translation *t, uint32_t stack,
                                     uint32_t depth)
{
    const bool *stays = t->marks->stays;
    if (stays == NULL) {
        return depth;
    }

    const struct hearth_dict *dict = t->dict;

    uint32_t frames = 0, kept_frames = 0;

    /* Frames from the root to the last node that stays. */
    for (uint32_t node = dict->stack_node[stack]; node != 0;
         node = hearth_name_tree_node(dict->tree, node).parent) {
        frames++;
        if (kept_frames == 0 && stays[node]) {
            kept_frames = frames; /* counted from the leaf so far */
        }
    }

    kept_frames = kept_frames == 0 ? 0 : frames - kept_frames + 1;

    /* Locations that lie wholly within them. */
    uint32_t kept = 0;
    for (uint32_t at = 0; kept < depth; kept++) {
        const struct hearth_location *location =
            &dict->locations[dict->stack_locs[dict->stack_first[stack + 1] - 1 - kept]];
        at += location->n_lines == 0 ? 1 : location->n_lines;
        if (at > kept_frames) {
            break;
        }
    }

    return kept;
}

/* Exports a stack; "other" replaces its truncated frames. */
static enum hearth_status export_stack(struct pprof_merge *m, struct export_translation *t,
                                       uint32_t stack, int64_t value, struct hearth_err *err)
{
    struct hearth_arena *arena = t->scratch;
    const struct hearth_dict *dict = t->dict;
    const uint32_t *from = dict->stack_locs + dict->stack_first[stack];
    uint32_t depth = dict->stack_first[stack + 1] - dict->stack_first[stack];
    uint32_t kept = count_kept_locations(t, stack, depth);
    uint32_t *locations = hearth_arena_array(arena, (size_t)kept + 1, sizeof locations[0]);
    if (locations == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    uint32_t n = 0;
    if (kept < depth) {
        locations[n++] = find_other_location(m);
    }

    for (uint32_t i = depth - kept; i < depth; i++) {
        locations[n++] = export_location(m, t, from[i], false, arena);
    }

    for (uint32_t i = 0; i < n; i++) {
        if (locations[i] == HEARTH_NO_INDEX) {
            return HEARTH_FAIL_ARENA(err, m->query->call.arena);
        }
    }

    return hearth_profile_builder_sample(m->builder, locations, n, &value, err);
}

/*
 * Finds the nodes whose total reaches the bound: stays[node]. They are found by name, because the
 * dictionary may have been loaded into another tree since the sums were made. A node that does not
 * stay has no descendant that stays.
 */
static enum hearth_status find_kept_nodes(struct pprof_merge *m,
                                          const struct hearth_name_tree *tree, uint32_t n_nodes,
                                          bool **ret_stays, struct hearth_err *err)
{
    struct hearth_arena *arena = m->query->call.arena;
    bool *stays = hearth_arena_calloc(arena, n_nodes, sizeof stays[0]);
    uint32_t *node_of = hearth_arena_array(arena, n_nodes, sizeof node_of[0]);
    uint32_t *name_of =
        hearth_arena_calloc(arena, hearth_name_tree_n_names(tree), sizeof name_of[0]);
    if (stays == NULL || node_of == NULL || name_of == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    node_of[0] = 0;
    stays[0] = true;
    for (uint32_t i = 1; i < n_nodes; i++) {
        struct hearth_name_node node = hearth_name_tree_node(tree, i);
        if (!stays[node.parent]) {
            continue;
        }
        uint32_t *name = &name_of[node.name];
        if (*name == 0) { /* 0 is the root's name: not found yet, or the empty name */
            *name = hearth_stacktree_name(&m->tree, hearth_name_tree_name(tree, node.name));
        }
        if (*name == HEARTH_IDMAP_NONE) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
        node_of[i] = hearth_stacktree_find(&m->tree, node_of[node.parent], *name);
        stays[i] = node_of[i] != HEARTH_NO_NODE && m->tree.nodes[node_of[i]].total >= m->min_total;
    }

    *ret_stays = stays;
    return HEARTH_OK;
}

/*
 * Finds the marks of a dictionary's tree; they are made once, and again after the tree has grown.
 */
static enum hearth_status find_export_marks(struct pprof_merge *m, struct hearth_name_tree *tree,
                                            const struct export_marks **ret_marks,
                                            struct hearth_err *err)
{
    uint32_t size = hearth_name_tree_size(tree);
    size_t i = m->n_marks; /* most likely the marks of the previous dictionary */

    while (i > 0 && m->marks[i - 1].tree != tree) {
        i--;
    }

    if (i == 0) {
        if (!hearth_mem_grow(&m->marks, &m->cap_marks, m->n_marks + 1, sizeof m->marks[0])) {
            return HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the pprof message");
        }
        m->marks[m->n_marks++] = (struct export_marks){.tree = hearth_name_tree_ref(tree)};
        i = m->n_marks;
    }

    struct export_marks *marks = &m->marks[i - 1];
    *ret_marks = marks;
    if (size <= marks->n_nodes) {
        return HEARTH_OK;
    }

    HEARTH_TRY(hearth_stack_filter_nodes(&m->spec->stacks, tree, size, m->query->call.arena,
                                         &marks->inside, err));
    if (is_truncated(m->spec)) {
        HEARTH_TRY(find_kept_nodes(m, tree, size, &marks->stays, err));
    }

    marks->n_nodes = size;
    return HEARTH_OK;
}

/*
 * Exports a whole stack, or adds to the sample that the same stack of another dictionary became,
 * without translating its locations.
 */
static enum hearth_status export_once(struct pprof_merge *m, struct export_translation *t,
                                      uint32_t stack, struct hearth_hash128 key, int64_t value,
                                      struct hearth_err *err)
{
    uint32_t sample = hearth_idmap_find(&m->by_stack, key);
    if (sample != HEARTH_IDMAP_NONE) {
        return hearth_profile_builder_add(m->builder, sample, &value, err);
    }

    HEARTH_TRY(export_stack(m, t, stack, value, err));
    bool inserted;
    sample = hearth_profile_builder_last_sample(m->builder);
    if (hearth_idmap_intern(&m->by_stack, key, sample, &inserted) == HEARTH_IDMAP_NONE ||
        !hearth_idmap_account(&m->by_stack, m->query->call.arena, &m->by_stack_bytes)) {
        return HEARTH_FAIL_ARENA(err, m->query->call.arena);
    }
    return HEARTH_OK;
}

/* Exports all stacks of a dictionary that have a value and pass the filter. */
static enum hearth_status export_dict(struct pprof_merge *m, const struct hearth_dict *dict,
                                      const struct hearth_dict_sums *part,
                                      struct hearth_arena *scratch, struct hearth_err *err)
{
    struct export_translation t = {
        .dict = dict,
        .location = make_no_index_array(scratch, dict->n_locations),
        .function = make_no_index_array(scratch, dict->n_functions),
        .mapping = make_no_index_array(scratch, dict->n_mappings),
        .scratch = scratch,
    };
    if (t.location == NULL || t.function == NULL || t.mapping == NULL) {
        return HEARTH_FAIL_ARENA(err, scratch);
    }

    if (m->spec->go_pgo && m->spec->aggregate_callees) {
        t.callee = make_no_index_array(scratch, dict->n_locations);
        if (t.callee == NULL) {
            return HEARTH_FAIL_ARENA(err, scratch);
        }
    }

    HEARTH_TRY(find_export_marks(m, dict->tree, &t.marks, err));
    const bool *inside = t.marks->inside;

    /* Stacks that are cut may become equal only then: their keys say nothing. */
    const struct hearth_hash128 *keys = NULL;
    if (m->shares_stacks) {
        HEARTH_TRY(hearth_dict_stack_keys(dict, scratch, &keys, err));
    }

    /* Each stack with a value that passes becomes a sample. */
    enum hearth_status status = HEARTH_OK;
    for (uint32_t s = 0; status == HEARTH_OK && s < part->bound; s++) {
        if (part->acc[s] == 0 || (inside != NULL && !inside[dict->stack_node[s]])) {
            continue;
        }
        if (keys != NULL) {
            status = export_once(m, &t, s, keys[s], part->acc[s], err);
        } else if (m->spec->go_pgo) {
            status = export_leaf_side(m, &t, s, part->acc[s], err);
        } else {
            status = export_stack(m, &t, s, part->acc[s], err);
        }
    }

    return status;
}

/*
 * Visits the dictionaries of all sums: with `merge` to sum the tree, otherwise to export their
 * stacks.
 */
static enum hearth_status visit_summed_dicts(struct pprof_merge *m, const struct hearth_sums *sums,
                                             struct hearth_tree_merge *merge,
                                             struct hearth_err *err)
{
    struct hearth_arena scratch;
    struct hearth_row_mask rows;

    hearth_arena_init_like(&scratch, m->query->call.arena);
    enum hearth_status status =
        hearth_row_mask_init(&rows, &m->spec->stacks, m->query->call.arena, err);
    for (size_t i = 0; status == HEARTH_OK && i < sums->n_dicts; i++) {
        const struct hearth_dict_sums *part = &sums->dicts[i];
        const struct hearth_dict *dict;
        status = hearth_store_read_dict(
            HEARTH_CALL_SCOPE(&m->query->call),
            (struct hearth_dict_key){part->service_id, part->day, part->writer_id}, part->bound,
            &dict, err);
        if (status != HEARTH_OK) {
            break;
        }
        status = hearth_row_mask_clear(&rows, dict, part, err);
        if (status == HEARTH_OK && merge != NULL) {
            status = hearth_tree_merge_add(merge, dict, part, err);
        } else if (status == HEARTH_OK) {
            hearth_arena_reset(&scratch);
            status = export_dict(m, dict, part, &scratch, err);
        }
        hearth_store_read_dict_release(m->query->call.engine->store, dict);
    }

    hearth_row_mask_release(&rows);
    hearth_arena_release(&scratch);
    return status;
}

/* Makes the sealed tree, and finds the bound below which its nodes are truncated. */
static enum hearth_status find_export_bound(struct pprof_merge *m, const struct hearth_sums *sums,
                                            struct hearth_err *err)
{
    struct hearth_arena scratch;
    struct hearth_tree_merge merge;

    hearth_arena_init_like(&scratch, m->query->call.arena);
    hearth_tree_merge_init(&merge, &scratch);
    enum hearth_status status = visit_summed_dicts(m, sums, &merge, err);
    if (status == HEARTH_OK) {
        status = hearth_tree_merge_finish(&merge, m->spec, 0, &m->tree, err);
    }

    hearth_tree_merge_release(&merge);
    hearth_arena_release(&scratch);

    /* Totals are known once the tree is sealed. */
    if (status == HEARTH_OK) {
        status = hearth_stacktree_seal(&m->tree, err);
    }

    if (status == HEARTH_OK) {
        status = hearth_stacktree_min_total(&m->tree, m->spec->max_nodes, &m->min_total, err);
    }

    if (status == HEARTH_OK && m->tree.n_nodes > (uint64_t)m->spec->max_nodes + 1) {
        hearth_call_note(
            &m->query->call,
            "of %zu frames those beyond the largest %lld are folded into \"other\": ask "
            "for more with max_nodes",
            m->tree.n_nodes - 1, (long long)m->spec->max_nodes);
    }

    return status;
}

/* Sums the values of all samples. */
static enum hearth_status sum_profile_values(const struct hearth_profile *profile,
                                             int64_t *ret_total, struct hearth_err *err)
{
    *ret_total = 0;
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        if (__builtin_add_overflow(*ret_total, profile->values[i], ret_total)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the total of a profile exceeds 64 bits");
        }
    }

    return HEARTH_OK;
}

/* Sets the header fields that clients of querier.v1 expect, and appends the message. */
static enum hearth_status finish_export(struct pprof_merge *m,
                                        const struct hearth_profile_type *type,
                                        struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_profile_builder *b = m->builder;
    struct hearth_value_type period_type = {
        hearth_profile_builder_string(b, type->period_type),
        hearth_profile_builder_string(b, type->period_unit),
    };
    uint32_t default_type = hearth_profile_builder_string(b, type->sample_type);

    if (period_type.type == HEARTH_NO_INDEX || period_type.unit == HEARTH_NO_INDEX ||
        default_type == HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, m->query->call.arena);
    }

    struct hearth_profile profile;
    HEARTH_TRY(hearth_profile_builder_finish(b, &profile, err));
    if (m->spec->ret_total != NULL) {
        HEARTH_TRY(sum_profile_values(&profile, m->spec->ret_total, err));
    }

    profile.period_type = period_type;
    profile.default_type = default_type;
    if (__builtin_mul_overflow(m->query->end_ms, HEARTH_NS_PER_MS, &profile.time_ns)) {
        profile.time_ns = INT64_MAX; /* an end after any time means all times */
    }

    profile.period = hearth_str_eq_c(type->name, "process_cpu") ? 1000000000
                     : hearth_str_eq_c(type->name, "memory")    ? 524288
                                                                : 1;
    hearth_pprof_encode(&profile, out);
    if (!hearth_buf_failed(out)) {
        return HEARTH_OK;
    }

    return out->budget != NULL
               ? HEARTH_FAIL_BUDGET(err, out->budget)
               : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot allocate the pprof message");
}

/* Builds the message of the sums. */
static enum hearth_status export_sums(struct pprof_merge *m, const struct hearth_sums *sums,
                                      struct hearth_buf *out, struct hearth_err *err)
{
    struct hearth_profile_type type;

    HEARTH_TRY(hearth_profile_type_parse(m->spec->profile_type, &type, err));
    if (hearth_profile_builder_type(m->builder, type.sample_type, type.sample_unit) ==
        HEARTH_NO_INDEX) {
        return HEARTH_FAIL_ARENA(err, m->query->call.arena);
    }

    if (is_truncated(m->spec)) {
        HEARTH_TRY(find_export_bound(m, sums, err));
    }

    HEARTH_TRY(visit_summed_dicts(m, sums, NULL, err));
    return finish_export(m, &type, out, err);
}

static bool are_sums_zero(const struct hearth_sums *sums)
{
    for (size_t i = 0; i < sums->n_dicts; i++) {
        for (uint32_t s = 0; s < sums->dicts[i].bound; s++) {
            if (sums->dicts[i].acc[s] != 0) {
                return false;
            }
        }
    }

    return true;
}

enum hearth_status hearth_query_pprof(const struct hearth_query *query,
                                      const struct hearth_merge_spec *spec, struct hearth_buf *out,
                                      struct hearth_err *err)
{
    assert(query != NULL && spec != NULL && out != NULL);

    struct hearth_sums sums;
    struct hearth_merge_spec cut = *spec;
    struct hearth_limits limits;

    /* An export has names and stacks as they are stored. */
    cut.empty_names = true;
    cut.go_stacks = HEARTH_GO_STORED;
    hearth_call_limits(&query->call, &limits);
    if (limits.flamegraph_nodes_on_pprof && !is_truncated(spec)) {
        cut.has_max_nodes = true;
        cut.max_nodes = limits.default_flamegraph_nodes;
    }

    enum hearth_status status = hearth_query_sum(query, spec, &sums, err);
    if (status == HEARTH_OK && !are_sums_zero(&sums)) {
        struct pprof_merge m = {
            .query = query,
            .spec = &cut,
            .builder = hearth_profile_builder_new(query->call.arena),
            .find_other_location = HEARTH_NO_INDEX,
            .shares_stacks = sums.n_dicts > 1 && !cut.go_pgo && !is_truncated(&cut),
        };
        hearth_idmap_init(&m.by_stack);
        hearth_stacktree_init(&m.tree, query->call.arena);
        if (m.builder == NULL) {
            status = HEARTH_FAIL_ARENA(err, query->call.arena);
        } else {
            status = export_sums(&m, &sums, out, err);
        }
        for (size_t i = 0; i < m.n_marks; i++) {
            hearth_name_tree_unref(m.marks[i].tree);
        }
        hearth_mem_free(m.marks);
        hearth_idmap_release(&m.by_stack);
        hearth_budget_give(query->call.arena->budget, m.by_stack_bytes);
        hearth_stacktree_release(&m.tree);
        hearth_profile_builder_free(m.builder);
    }

    hearth_sums_release(&sums);
    return status;
}
