/*
 * legacy_count.c -- Go's profiles of counts:
 *
 *     goroutine profile: total 5
 *     3 @ 0x47de8e 0x4158ee
 */
#include "legacy/legacy_reader.h"

#define PROFILE_TOTAL " profile: total "

/* The name before " profile: total N"; empty if the line is another one. */
static struct hearth_str read_count_name(struct hearth_str line)
{
    size_t n = hearth_str_find(line, ' ', 0);
    struct hearth_str name = {line.p, n}, rest = {line.p + n, line.n - n};
    int64_t total;

    /* The blank before "profile" belongs to the text. */
    if (!hearth_str_starts(rest, HEARTH_STR(PROFILE_TOTAL))) {
        return HEARTH_STR("");
    }
    rest = hearth_str_n(rest.p + sizeof PROFILE_TOTAL - 1, rest.n - (sizeof PROFILE_TOTAL - 1));

    return hearth_legacy_take_i64(&rest, &total) && rest.n == 0 ? name : HEARTH_STR("");
}

static enum hearth_status read_count_sample(struct legacy_reader *r, struct hearth_str line,
                                            struct hearth_err *err)
{
    struct hearth_str rest = line;

    if (!hearth_legacy_take_i64(&rest, &r->values[0]) || !hearth_legacy_take(&rest, "@")) {
        return hearth_legacy_fail_line(r, line, "sample \"COUNT @ ADDRESSES\"", err);
    }
    r->is_open = true;

    return hearth_legacy_add_addresses(r, rest, err);
}

enum hearth_status hearth_legacy_read_count(struct legacy_reader *r, struct legacy_head *head,
                                            struct hearth_err *err)
{
    struct hearth_str line, name = HEARTH_STR("");

    /* The head, after comments. */
    while (name.n == 0 && hearth_legacy_line(r, &line)) {
        name = read_count_name(line);
        if (name.n == 0 && !hearth_legacy_is_comment(line)) {
            return hearth_legacy_fail_line(r, line, "head \"NAME profile: total N\"", err);
        }
    }

    char *type = hearth_arena_strndup(r->arena, name.p, name.n);
    if (type == NULL) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }
    head->period_type = (struct legacy_type){type, "count"};
    head->period = 1;
    HEARTH_TRY(hearth_legacy_add_types(r, &head->period_type, 1, err));

    while (hearth_legacy_line(r, &line)) {
        if (hearth_legacy_is_comment(line)) {
            HEARTH_TRY(hearth_legacy_read_comment(r, line, err));
            continue;
        }
        HEARTH_TRY(hearth_legacy_close_sample(r, err));
        HEARTH_TRY(read_count_sample(r, line, err));
    }

    return hearth_legacy_close_sample(r, err);
}
