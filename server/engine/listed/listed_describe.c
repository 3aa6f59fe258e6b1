/*
 * listed_describe.c -- service, labels and types of an upload, of the series that its rows are in.
 */
#include "listed/listed_scan.h"

#include <assert.h>

/* Of several tenants, the label that says which is shown. */
static bool is_derived_label(struct hearth_str name)
{
    return name.n > 2 && name.p[0] == '_' && name.p[1] == '_' &&
           !hearth_str_eq_c(name, HEARTH_LABEL_TENANT);
}

enum hearth_status hearth_listed_labels(const struct hearth_call_index *index,
                                        const struct hearth_series_hit *hit,
                                        struct hearth_arena *arena, struct hearth_labels *ret,
                                        struct hearth_err *err)
{
    HEARTH_TRY(hearth_call_index_labels(index, hit, arena, ret, err));

    size_t n = 0;
    for (size_t i = 0; i < ret->n; i++) {
        if (!is_derived_label(ret->v[i].name)) {
            ret->v[n++] = ret->v[i];
        }
    }
    ret->n = n;

    return HEARTH_OK;
}

/* Keeps the labels that b has, too. */
static void keep_common_labels(struct hearth_labels *labels, const struct hearth_labels *b)
{
    size_t n = 0;

    for (size_t i = 0; i < labels->n; i++) {
        struct hearth_str value = hearth_labels_get(b, labels->v[i].name);
        if (value.p != NULL && hearth_str_eq(value, labels->v[i].value)) {
            labels->v[n++] = labels->v[i];
        }
    }
    labels->n = n;
}

/* Adds the types of a series that are not in the list yet, and keeps the list sorted. */
static enum hearth_status add_series_types(const struct hearth_call_index *index, int32_t series_id,
                                           struct hearth_arena *arena,
                                           struct hearth_listed_upload *upload,
                                           struct hearth_err *err)
{
    struct hearth_series_hits columns;
    HEARTH_TRY(hearth_call_index_columns(index, series_id, arena, &columns, err));
    struct hearth_str *types =
        hearth_arena_array(arena, upload->n_profile_types + columns.n, sizeof types[0]);
    if (types == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    size_t n = upload->n_profile_types;
    for (size_t i = 0; i < n; i++) {
        types[i] = upload->profile_types[i];
    }

    for (size_t c = 0; c < columns.n; c++) {
        struct hearth_str type = hearth_call_index_type(index, &columns.v[c]);
        size_t at = 0;
        while (at < n && hearth_str_cmp(types[at], type) < 0) {
            at++;
        }
        if (at == n || !hearth_str_eq(types[at], type)) {
            memmove(types + at + 1, types + at, (n - at) * sizeof types[0]);
            types[at] = hearth_arena_str(arena, type);
            n++;
        }
    }

    upload->profile_types = types;
    upload->n_profile_types = n;

    return HEARTH_OK;
}

/* Copies the texts of labels, which borrow from the index. */
static void copy_listed_labels(struct hearth_arena *arena, struct hearth_labels *labels)
{
    for (size_t i = 0; i < labels->n; i++) {
        labels->v[i] = (struct hearth_label){hearth_arena_str(arena, labels->v[i].name),
                                             hearth_arena_str(arena, labels->v[i].value)};
    }
}

enum hearth_status hearth_listed_describe(const struct listed_scan *scan,
                                          const struct hearth_call_index *index,
                                          struct listed_hits hits,
                                          struct hearth_listed_upload *upload,
                                          struct hearth_err *err)
{
    struct hearth_arena *arena = scan->query->call.arena;
    struct hearth_labels labels;

    for (size_t i = 0; i < hits.n; i++) {
        const struct hearth_series_hit *hit = &scan->selection.hits[hits.v[i]];
        enum hearth_status status = hearth_listed_labels(index, hit, arena, &labels, err);
        if (status == HEARTH_NOT_FOUND) {
            continue;
        }
        HEARTH_TRY(status);

        /* The first series gives all of its labels, the others remove some. */
        if (upload->n_series++ == 0) {
            upload->labels = labels;
        } else {
            keep_common_labels(&upload->labels, &labels);
        }
        HEARTH_TRY(add_series_types(index, hit->series_id, arena, upload, err));
    }

    copy_listed_labels(arena, &upload->labels);
    upload->service = hearth_labels_get(&upload->labels, HEARTH_STR(HEARTH_LABEL_SERVICE));

    return arena->refused ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}
