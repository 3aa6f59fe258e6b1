/*
 * fuzz_jfr.c -- any bytes as a JFR recording: a recording remains one with another after it, and
 * not without its end; a decoded one has valid indices, and as many profiles if it is there twice.
 */
#include "hearth/base/buf.h"
#include "hearth/format/jfr.h"

#include "check_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The number of profiles; their indices are checked. */
static size_t decode(struct hearth_str bytes, struct hearth_str labels, enum hearth_status *status)
{
    const struct hearth_jfr_options options = {.labels = labels};
    struct hearth_jfr_recording recording = {0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 64u << 20);
    *status = hearth_jfr_decode(bytes, &options, &arena, &recording, &err);
    HEARTH_ASSERT(*status == HEARTH_OK || err.msg[0] != '\0');
    for (size_t i = 0; *status == HEARTH_OK && i < recording.n_profiles; i++) {
        check_profile(&recording.profiles[i].profile);
    }
    hearth_arena_release(&arena);

    return *status == HEARTH_OK ? recording.n_profiles : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_str bytes = {(const char *)data, size};
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status once, again;

    /* The input serves as the labels of contexts, too. */
    size_t n = decode(bytes, bytes, &once);
    n = decode(bytes, HEARTH_STR(""), &once);
    if (hearth_jfr_check(bytes, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0' && once != HEARTH_OK);
        return 0;
    }

    struct hearth_buf twice;
    hearth_buf_init(&twice, 0);
    hearth_buf_str(&twice, bytes);
    hearth_buf_str(&twice, bytes);
    HEARTH_ASSERT(hearth_jfr_check(hearth_buf_view(&twice), &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_jfr_check(hearth_str_n(bytes.p, size - 1), &err) != HEARTH_OK);
    if (once == HEARTH_OK) {
        size_t n_again = decode(hearth_buf_view(&twice), HEARTH_STR(""), &again);
        HEARTH_ASSERT(again != HEARTH_OK || n_again == n);
    }
    hearth_buf_release(&twice);

    return 0;
}
