/* call_index_key.c -- whether a series that need not exist would be visible. */
#include "hearth/store/store.h"

#include "common/call_index.h"

#include <assert.h>

/* Adds the only series to an index: its pairs have the ids 1, 2, .... */
static enum hearth_status add_key(struct hearth_label_index *index,
                                  const struct hearth_series_key *key, struct hearth_arena *arena,
                                  struct hearth_err *err)
{
    int32_t *pairs = hearth_arena_array(arena, key->labels.n, sizeof pairs[0]);
    bool ok = pairs != NULL &&
              hearth_label_index_add_service(index, 1, key->service_name) == HEARTH_OK &&
              hearth_label_index_add_shape(index, 1, key->type_ids, key->n_types) == HEARTH_OK;

    for (size_t i = 0; ok && i < key->labels.n; i++) {
        pairs[i] = (int32_t)i + 1;
        ok = hearth_label_index_add_pair(index, pairs[i], key->labels.v[i].name,
                                         key->labels.v[i].value) == HEARTH_OK;
    }
    ok = ok && hearth_label_index_add_series(index, 1, 1, 1, pairs, key->labels.n) == HEARTH_OK;

    return ok ? HEARTH_OK
              : HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot apply the view of the credential");
}

enum hearth_status hearth_key_is_shown(const struct hearth_series_key *key,
                                       const struct hearth_selector *selectors, size_t n, bool *ret,
                                       struct hearth_err *err)
{
    assert(key != NULL && ret != NULL);

    struct hearth_label_index *index = hearth_label_index_new();
    struct hearth_arena arena;

    hearth_arena_init(&arena, 0);
    enum hearth_status status;
    if (index == NULL) {
        status = HEARTH_FAIL(err, HEARTH_NO_MEMORY, "cannot apply the view of the credential");
    } else {
        status = add_key(index, key, &arena, err);
    }

    bool all = true;
    for (size_t c = 0; status == HEARTH_OK && c < key->n_types; c++) {
        const struct hearth_series_hit hit = {.series_id = 1, .column = (uint16_t)c};
        bool any = false;
        for (size_t i = 0; i < n && !any; i++) {
            any = hearth_label_index_matches(index, &selectors[i], &hit);
        }
        all = all && any;
    }

    *ret = all;
    hearth_arena_release(&arena);
    hearth_label_index_free(index);

    return status;
}
