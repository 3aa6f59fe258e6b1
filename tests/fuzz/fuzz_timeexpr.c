/*
 * fuzz_timeexpr.c -- any bytes as a time and as a duration: shifts of now move with now, durations
 * are above zero and survive being written and read again.
 */
#include "hearth/selector/timeexpr.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t now = INT64_C(1700000000000000000);
    struct hearth_str text = hearth_str_n((const char *)data, size);
    struct hearth_err err = HEARTH_ERR_INIT;
    int64_t ns = 42, later = 42;
    if (hearth_time_parse(text, now, &ns, &err) == HEARTH_OK) {
        bool is_shift = hearth_str_starts(hearth_str_trim(text), HEARTH_STR("now"));
        if (hearth_time_parse(text, now + 1, &later, &err) == HEARTH_OK) {
            require(later - ns == (is_shift ? 1 : 0), "only shifts of now move");
        } else {
            require(ns == INT64_MAX, "only the last instant has no next one");
        }
    } else {
        require(ns == 42 && err.msg[0] != '\0', "a refusal has a reason and no result");
    }
    ns = 42;
    if (hearth_duration_parse(text, &ns, &err) == HEARTH_OK) {
        char out[48];
        hearth_duration_format(ns, out);
        require(ns > 0, "a duration is above zero");
        require(hearth_duration_parse(hearth_str_c(out), &later, &err) == HEARTH_OK && later == ns,
                "a duration is read back");
    } else {
        require(ns == 42, "a refusal has no result");
    }
    return 0;
}
