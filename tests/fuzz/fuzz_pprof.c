/*
 * fuzz_pprof.c -- the pprof scanner on any bytes: no crash, and decode -> encode -> decode gives
 * the same profile, as does the reader without loops over usual messages (same_profile.h). The first
 * byte chooses limits, so that cutting runs too.
 */
#include "same_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything a reader of the arrays relies on. */
static bool has_dangling_location(const struct hearth_profile *p)
{
    bool dangling = false;
    for (uint32_t i = 0; i < p->n_stack_locs; i++) {
        dangling |= p->stack_locs[i] == HEARTH_NO_INDEX;
        REQUIRE(p->stack_locs[i] < p->n_locations || p->stack_locs[i] == HEARTH_NO_INDEX);
    }
    for (uint32_t i = 0; i < p->n_strings; i++) {
        REQUIRE(hearth_str_utf8_valid(p->strings[i]));
    }
    REQUIRE(p->n_strings > 0 && p->strings[0].n == 0 && p->n_types > 0);
    return dangling;
}

static void check_round_trip(const struct hearth_profile *profile)
{
    struct hearth_pprof_limits no_limits = {0};
    struct hearth_pprof_notes notes;
    struct hearth_profile again;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    struct hearth_buf out;
    hearth_arena_init(&arena, 0);
    hearth_buf_init(&out, 0);
    hearth_pprof_encode(profile, &out);
    REQUIRE(!hearth_buf_failed(&out));
    enum hearth_status status =
        hearth_pprof_decode(hearth_buf_view(&out), &no_limits, &arena, &again, &notes, &err);
    if (has_dangling_location(profile)) {
        REQUIRE(status == HEARTH_INVALID_ARGUMENT);
    } else {
        REQUIRE(status == HEARTH_OK);
        REQUIRE(notes.strings_repaired == 0);
        require_same_profile(profile, &again);
    }
    hearth_buf_release(&out);
    hearth_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct hearth_pprof_limits limits = {
        .max_samples = data[0] & 1 ? 50 : 0,
        .max_sample_labels = data[0] & 2 ? 2 : 0,
        .max_types = data[0] & 4 ? 3 : 0,
        .max_depth = data[0] & 8 ? 2 : 0,
        .max_string_bytes = data[0] & 16 ? 7 : 0,
    };
    struct hearth_profile profile;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    hearth_arena_init(&arena, PPROF_ARENA_BYTES);
    struct hearth_str bytes = hearth_str_n((const char *)data + 1, size - 1);
    enum hearth_status status = decode_both_ways(bytes, &limits, &arena, &profile, &err);
    if (status == HEARTH_OK) {
        check_round_trip(&profile);
    } else {
        REQUIRE(err.status == status);
    }
    hearth_arena_release(&arena);
    return 0;
}
