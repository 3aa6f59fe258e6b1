/*
 * upload_analysis.c -- the uploads of a task as one tree (contract:
 * hearth/engine/task_uploads.h).
 */
#include "hearth/engine/task_uploads.h"

#include "select/query_internal.h"
#include "tasks/task_uploads_internal.h"

#include <assert.h>
#include <stdlib.h>

#define ROOT_NAME "root"

struct upload_analyzer {
    const struct hearth_call *call;
    struct hearth_str wanted; /* requested sample type; empty: each profile's default */
    struct hearth_str type;   /* the analysed sample type; empty: not chosen yet */
    struct hearth_upload_analysis *out;
    struct hearth_stacktree tree;
    size_t n_read, n_other; /* n_other: uploads without the sample type */
    /* Numbers of uploads with cumulative values: counted from the start of the process, and since
     * the previous file. */
    size_t n_since_start, n_since_before;
};

/* ---- sample types ---- */

static enum hearth_status note_sample_type(struct upload_analyzer *a, struct hearth_str type,
                                           struct hearth_err *err)
{
    assert(a->call != NULL);

    struct hearth_upload_analysis *out = a->out;

    for (size_t i = 0; i < out->n_sample_types; i++) {
        if (hearth_str_eq(out->sample_types[i], type)) {
            return HEARTH_OK;
        }
    }

    /* Add the type to a copy of the list. */
    struct hearth_str *types =
        hearth_arena_array(a->call->arena, out->n_sample_types + 1, sizeof *types);
    if (types == NULL) {
        return HEARTH_FAIL_ARENA(err, a->call->arena);
    }

    if (out->n_sample_types > 0) {
        memcpy(types, out->sample_types, out->n_sample_types * sizeof *types);
    }

    types[out->n_sample_types++] = type;
    out->sample_types = types;

    return HEARTH_OK;
}

/*
 * The column of the sample type; n_types: it is absent. The default is the profile's default type,
 * otherwise its last one.
 */
static uint32_t find_type_column(const struct upload_analyzer *a, const struct hearth_profile *p)
{
    struct hearth_str wanted = a->wanted.n > 0 ? a->wanted : a->type;

    if (wanted.n == 0) {
        wanted = p->strings[p->default_type];
    }

    uint32_t t = 0;
    while (t < p->n_types && !hearth_str_eq(p->strings[p->types[t].type], wanted)) {
        t++;
    }

    bool is_free = a->wanted.n == 0 && a->type.n == 0;

    return t == p->n_types && is_free && p->n_types > 0 ? p->n_types - 1 : t;
}

/* ---- trees ---- */

/* Name a location "function:line"; inlined frames are joined with ";". */
static uint32_t name_upload_location(struct upload_analyzer *a, const struct hearth_profile *p,
                                     uint32_t loc, struct hearth_buf *text)
{
    hearth_buf_reset(text);
    if (loc == HEARTH_NO_INDEX || p->locations[loc].n_lines == 0) {
        hearth_buf_printf(text, "0x%llx",
                          loc == HEARTH_NO_INDEX ? 0ull
                                                 : (unsigned long long)p->locations[loc].address);
    } else {
        const struct hearth_location *location = &p->locations[loc];
        for (uint32_t i = 0; i < location->n_lines; i++) {
            const struct hearth_line *line = &p->lines[location->first_line + i];
            hearth_buf_cstr(text, i == 0 ? "" : ";");
            hearth_buf_str(text, p->strings[p->functions[line->function].name]);
            hearth_buf_printf(text, ":%lld", (long long)line->line);
        }
    }

    return hearth_buf_failed(text) ? HEARTH_IDMAP_NONE
                                   : hearth_stacktree_name(&a->tree, hearth_buf_view(text));
}

static enum hearth_status add_upload_samples(struct upload_analyzer *a,
                                             const struct hearth_profile *p, uint32_t type,
                                             const uint32_t *names, struct hearth_err *err)
{
    assert(type < p->n_types);

    for (uint32_t s = 0; s < p->n_samples; s++) {
        int64_t value = p->values[(size_t)s * p->n_types + type];
        if (value <= 0) {
            continue;
        }

        uint32_t at = hearth_stacktree_root(&a->tree);
        for (uint32_t i = p->stack_first[s + 1]; i > p->stack_first[s] && at != HEARTH_NO_NODE;
             i--) {
            uint32_t loc = p->stack_locs[i - 1];
            at = hearth_stacktree_child(&a->tree, at,
                                        names[loc == HEARTH_NO_INDEX ? p->n_locations : loc]);
        }

        if (at == HEARTH_NO_NODE) {
            return HEARTH_FAIL_ARENA(err, a->call->arena);
        }
        if (__builtin_add_overflow(a->tree.nodes[at].self, value, &a->tree.nodes[at].self)) {
            return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE, "the sum of the uploads exceeds 64 bits");
        }
    }

    return HEARTH_OK;
}

static enum hearth_status add_upload_profile(struct upload_analyzer *a,
                                             const struct hearth_profile *p, uint32_t type,
                                             struct hearth_err *err)
{
    /* Name each location once; the last name is for missing locations. */
    uint32_t *names = hearth_arena_array(a->call->arena, (size_t)p->n_locations + 1, sizeof *names);

    if (names == NULL) {
        return HEARTH_FAIL_ARENA(err, a->call->arena);
    }

    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    enum hearth_status status = HEARTH_OK;
    for (uint32_t l = 0; l <= p->n_locations && status == HEARTH_OK; l++) {
        names[l] = name_upload_location(a, p, l == p->n_locations ? HEARTH_NO_INDEX : l, &text);
        if (names[l] == HEARTH_IDMAP_NONE) {
            status = HEARTH_FAIL_ARENA(err, a->call->arena);
        }
    }

    hearth_buf_release(&text);

    return status == HEARTH_OK ? add_upload_samples(a, p, type, names, err) : status;
}

static enum hearth_status add_analyzed_upload(struct upload_analyzer *a,
                                              const struct hearth_task_upload *upload,
                                              struct hearth_err *err)
{
    struct hearth_task_upload whole;
    struct hearth_profile profile;
    struct hearth_pprof_notes notes;
    struct hearth_upload_values values;

    /* Read the file, without the values of an earlier one. */
    HEARTH_TRY(hearth_task_upload_get(a->call, upload->upload_id, &whole, err));
    HEARTH_TRY(hearth_upload_decode(a->call, whole.content, &profile, &notes, err));
    HEARTH_TRY(hearth_upload_values(a->call, upload->upload_id, &profile, &values, err));

    /* Choose the column of the sample type. */
    for (uint32_t t = 0; t < profile.n_types; t++) {
        HEARTH_TRY(note_sample_type(a, profile.strings[profile.types[t].type], err));
    }

    uint32_t type = find_type_column(a, &profile);
    if (type == profile.n_types) {
        a->n_other++;
        return HEARTH_OK;
    }

    /* Count and add its samples. */
    a->type = profile.strings[profile.types[type].type];
    a->out->unit = profile.strings[profile.types[type].unit];
    a->n_read++;
    if (hearth_upload_is_cumulative(values.event, a->type)) {
        a->n_since_before += values.before_ms > 0;
        a->n_since_start += values.before_ms == 0;
    }

    return add_upload_profile(a, &profile, type, err);
}

/* Add the samples of the type in one profile of a recording; *ret_has: it has the type. */
static enum hearth_status add_recorded_profile(struct upload_analyzer *a,
                                               const struct hearth_profile *p, bool *ret_has,
                                               struct hearth_err *err)
{
    struct hearth_str wanted = a->wanted.n > 0 ? a->wanted : a->type;

    for (uint32_t t = 0; t < p->n_types; t++) {
        if (hearth_str_eq(p->strings[p->types[t].type], wanted)) {
            *ret_has = true;
            a->type = p->strings[p->types[t].type];
            a->out->unit = p->strings[p->types[t].unit];
            HEARTH_TRY(add_upload_profile(a, p, t, err));
        }
    }

    return HEARTH_OK;
}

/*
 * Add a recording. Its profiles may share a type: contentions of monitors and of parked threads are
 * added up. The default is the first type of the first profile, which is CPU time if there is any.
 */
static enum hearth_status add_analyzed_recording(struct upload_analyzer *a,
                                                 const struct hearth_task_upload *upload,
                                                 struct hearth_err *err)
{
    struct hearth_task_upload whole;
    struct hearth_jfr_recording recording;
    bool has_type = false;

    HEARTH_TRY(hearth_task_upload_get(a->call, upload->upload_id, &whole, err));
    HEARTH_TRY(hearth_upload_decode_recording(a->call, whole.content, &recording, err));

    for (size_t i = 0; i < recording.n_profiles; i++) {
        const struct hearth_profile *p = &recording.profiles[i].profile;
        for (uint32_t t = 0; t < p->n_types; t++) {
            HEARTH_TRY(note_sample_type(a, p->strings[p->types[t].type], err));
        }
    }

    if (a->wanted.n == 0 && a->type.n == 0 && a->out->n_sample_types > 0) {
        a->type = a->out->sample_types[0];
    }
    for (size_t i = 0; i < recording.n_profiles; i++) {
        HEARTH_TRY(add_recorded_profile(a, &recording.profiles[i].profile, &has_type, err));
    }

    a->n_read += has_type;
    a->n_other += !has_type;

    return HEARTH_OK;
}

/* ---- answers ---- */

struct sorted_node {
    const struct hearth_stacktree *tree;
    uint32_t node;
};

static int compare_sorted_nodes(const void *va, const void *vb)
{
    const struct sorted_node *sa = va, *sb = vb;
    const struct hearth_tree_node *a = &sa->tree->nodes[sa->node], *b = &sb->tree->nodes[sb->node];

    if (a->total != b->total) {
        return a->total < b->total
                   ? -1
                   : 1; /* ascending: the last one pushed, the largest, is popped first */
    }

    return hearth_str_cmp(sb->tree->names[b->name], sa->tree->names[a->name]);
}

/* Write the nodes depth first, with a stack of the nodes to be written; each node is on it once. */
static enum hearth_status write_elements(struct upload_analyzer *a, struct hearth_err *err)
{
    const struct hearth_stacktree *tree = &a->tree;
    struct hearth_arena *arena = a->call->arena;
    size_t n = tree->n_nodes, n_stack = 0;
    struct sorted_node *stack = hearth_arena_array(arena, n + 1, sizeof *stack);
    uint32_t *ids = hearth_arena_array(arena, n + 1, sizeof *ids);
    struct hearth_upload_element *out = hearth_arena_array(arena, n + 1, sizeof *out);

    if (stack == NULL || ids == NULL || out == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    /* Start with the root. */
    a->out->elements = out;
    if (n > 0) {
        stack[n_stack++] = (struct sorted_node){tree, 0};
    }

    /* Write a node, then push its children so that the largest is next. */
    while (n_stack > 0) {
        uint32_t at = stack[--n_stack].node;
        const struct hearth_tree_node *node = &tree->nodes[at];
        ids[at] = (uint32_t)a->out->n_elements;
        out[a->out->n_elements++] = (struct hearth_upload_element){
            .id = ids[at],
            .parent_id = at == 0 ? -1 : (int64_t)ids[node->parent],
            .code_signature = at == 0 ? HEARTH_STR(ROOT_NAME) : tree->names[node->name],
            .total = node->total,
            .self = node->self,
        };

        size_t from = n_stack;
        for (uint32_t c = node->first_child; c != HEARTH_NO_NODE; c = tree->nodes[c].next_sibling) {
            stack[n_stack++] = (struct sorted_node){tree, c};
        }
        if (n_stack - from > 1) {
            qsort(&stack[from], n_stack - from, sizeof *stack, compare_sorted_nodes);
        }
    }

    return HEARTH_OK;
}

/* Append since when the cumulative values count. */
static void append_since(const struct upload_analyzer *a, struct hearth_buf *text)
{
    const struct {
        size_t n;

        const char *since;
    } parts[] = {{a->n_since_start, "since the process started"},
                 {a->n_since_before, "since the file before, of an earlier task"}};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
        if (parts[i].n > 0) {
            hearth_buf_printf(text, "%s" HEARTH_STR_FMT " of %zu upload%s counts %s",
                              text->n > 0 ? "; " : "", HEARTH_STR_ARG(a->type), parts[i].n,
                              parts[i].n == 1 ? "" : "s", parts[i].since);
        }
    }
}

static enum hearth_status make_upload_tip(struct upload_analyzer *a, size_t n_uploads,
                                          struct hearth_err *err)
{
    struct hearth_buf text;

    /* Say what is missing. */
    hearth_buf_init(&text, 0);
    if (n_uploads == 0) {
        hearth_buf_cstr(&text, "the task has no uploads of these instances");
    }

    if (a->n_other > 0) {
        hearth_buf_printf(&text, "%s%zu upload%s no sample type " HEARTH_STR_FMT,
                          text.n > 0 ? "; " : "", a->n_other, a->n_other == 1 ? " has" : "s have",
                          HEARTH_STR_ARG(a->wanted.n > 0 ? a->wanted : a->type));
    }

    /* Say since when values count. */
    append_since(a, &text);
    a->out->tip = hearth_arena_str(a->call->arena, hearth_buf_view(&text));
    bool failed = hearth_buf_failed(&text) || a->out->tip.p == NULL;
    hearth_buf_release(&text);

    return failed ? (enum hearth_status)HEARTH_FAIL_ARENA(err, a->call->arena) : HEARTH_OK;
}

static bool is_instance_selected(struct hearth_str instance, const struct hearth_str *instances,
                                 size_t n)
{
    bool wanted = n == 0;

    for (size_t i = 0; i < n && !wanted; i++) {
        wanted = hearth_str_eq(instance, instances[i]);
    }
    return wanted;
}

static enum hearth_status sum_uploads(struct upload_analyzer *a, struct hearth_str task_id,
                                      const struct hearth_str *instances, size_t n_instances,
                                      struct hearth_err *err)
{
    struct hearth_task_upload *uploads;
    size_t n, n_uploads = 0;

    /* Add the selected uploads. */
    HEARTH_TRY(hearth_task_uploads(a->call, task_id, &uploads, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (!is_instance_selected(uploads[i].instance, instances, n_instances)) {
            continue;
        }

        n_uploads++;
        HEARTH_TRY(hearth_str_eq_c(uploads[i].format, HEARTH_UPLOAD_PPROF)
                       ? add_analyzed_upload(a, &uploads[i], err)
                       : add_analyzed_recording(a, &uploads[i], err));
    }

    /* At least one must have the sample type. */
    if (a->n_read == 0 && a->n_other > 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "no upload has the sample type \"" HEARTH_STR_FMT "\"",
                           HEARTH_STR_ARG(a->wanted));
    }

    /* Write the tree and the tip. */
    if (a->n_read > 0) {
        HEARTH_TRY(hearth_stacktree_seal(&a->tree, err));
        HEARTH_TRY(write_elements(a, err));
    }

    return make_upload_tip(a, n_uploads, err);
}

enum hearth_status hearth_task_analyze_uploads(const struct hearth_call *call,
                                               struct hearth_str task_id,
                                               const struct hearth_str *instances,
                                               size_t n_instances, struct hearth_str sample_type,
                                               struct hearth_upload_analysis *ret,
                                               struct hearth_err *err)
{
    assert(call != NULL && ret != NULL);

    *ret = (struct hearth_upload_analysis){.unit = HEARTH_STR("")};
    struct upload_analyzer a = {
        .call = call, .wanted = sample_type, .type = HEARTH_STR(""), .out = ret};
    hearth_stacktree_init(&a.tree, call->arena);
    enum hearth_status status = sum_uploads(&a, task_id, instances, n_instances, err);
    hearth_stacktree_release(&a.tree);

    return status;
}
