/*
 * fuzz_jfr.c -- any bytes as a JFR recording: a recording remains one with another after it, and
 * not without its end; a decoded one has valid indices, and as many profiles if it is there twice.
 * Labels of contexts may follow the recording, after the word "labels".
 */
#include "hearth/base/buf.h"
#include "hearth/format/jfr.h"

#include "check_profile.h"
#include "short_memory.h"

/* The number of profiles; their indices are checked. */
static size_t decode(struct hearth_str bytes, struct hearth_str labels, enum hearth_status *status)
{
    const struct hearth_jfr_options options = {.labels = labels};
    struct hearth_jfr_recording recording = {0};
    struct hearth_arena arena;
    struct hearth_err err = HEARTH_ERR_INIT;

    begin_memory(&arena);
    *status = hearth_jfr_decode(bytes, &options, &arena, &recording, &err);
    HEARTH_ASSERT(*status == HEARTH_OK || err.msg[0] != '\0');
    for (size_t i = 0; *status == HEARTH_OK && i < recording.n_profiles; i++) {
        check_profile(&recording.profiles[i].profile);
    }
    end_memory(&arena);

    return *status == HEARTH_OK ? recording.n_profiles : 0;
}

/* Cuts the labels off: the bytes after the last "labels", or else nothing. */
static struct hearth_str split_labels(struct hearth_str *bytes)
{
    static const struct hearth_str mark = HEARTH_STR("labels");

    /* By memrchr: comparisons at every byte, which libFuzzer traces, took most of the time. */
    struct hearth_str before = *bytes;
    while (before.n > 0) {
        const char *last = memrchr(before.p, 's', before.n);
        before.n = last == NULL ? 0 : (size_t)(last - before.p) + 1;
        if (hearth_str_ends(before, mark)) {
            struct hearth_str labels = hearth_str_n(bytes->p + before.n, bytes->n - before.n);
            bytes->n = before.n - mark.n;
            return labels;
        }
        before.n -= before.n > 0;
    }

    return HEARTH_STR("");
}

static void run_input(const uint8_t *data, size_t size)
{
    struct hearth_str bytes = {(const char *)data, size};
    struct hearth_err err = HEARTH_ERR_INIT;
    enum hearth_status once, again;

    struct hearth_str labels = split_labels(&bytes);
    size_t n = decode(bytes, labels, &once);
    if (hearth_jfr_check(bytes, &err) != HEARTH_OK) {
        HEARTH_ASSERT(err.msg[0] != '\0' && once != HEARTH_OK);
        return;
    }

    struct hearth_buf twice;
    hearth_buf_init(&twice, 0);
    hearth_buf_str(&twice, bytes);
    hearth_buf_str(&twice, bytes);
    HEARTH_ASSERT(hearth_jfr_check(hearth_buf_view(&twice), &err) == HEARTH_OK);
    HEARTH_ASSERT(hearth_jfr_check(hearth_str_n(bytes.p, bytes.n - 1), &err) != HEARTH_OK);
    if (once == HEARTH_OK) {
        size_t n_again = decode(hearth_buf_view(&twice), labels, &again);
        HEARTH_ASSERT(again != HEARTH_OK || n_again == n);
    }
    hearth_buf_release(&twice);
}
