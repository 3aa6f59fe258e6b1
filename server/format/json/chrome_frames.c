/* chrome_frames.c -- call frames of V8 as locations. */
#include "json/chrome_frames.h"

#include "hearth/format/ingest_types.h"

#include "text/named_frame.h"

#define ANONYMOUS "(anonymous)" /* as in DevTools */

enum hearth_status hearth_chrome_init(struct chrome_profile *p,
                                      const struct hearth_pprof_limits *limits,
                                      struct hearth_arena *arena, struct hearth_err *err)
{
    const struct hearth_named_frame root = {.name = HEARTH_STR("(root)")};

    *p = (struct chrome_profile){.limits = limits, .arena = arena};
    hearth_call_tree_init(&p->tree, limits, arena);
    p->builder = hearth_profile_builder_new(arena);
    if (p->builder == NULL) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    hearth_profile_builder_limit(p->builder, limits->max_frames);
    p->root = hearth_named_location(p->builder, HEARTH_NO_INDEX, &root, 1);

    return p->root == HEARTH_NO_INDEX ? HEARTH_FAIL_ARENA(err, arena) : HEARTH_OK;
}

void hearth_chrome_release(struct chrome_profile *p)
{
    hearth_profile_builder_free(p->builder);
}

uint32_t hearth_chrome_frame(struct chrome_profile *p, struct hearth_json_reader *r)
{
    struct hearth_named_frame frame = {.line = 0};
    struct hearth_str key;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        if (hearth_str_eq_c(key, "functionName")) {
            frame.name = hearth_json_reader_text(r, p->arena);
        } else if (hearth_str_eq_c(key, "url")) {
            frame.filename = hearth_json_reader_text(r, p->arena);
        } else if (hearth_str_eq_c(key, "lineNumber")) {
            int64_t line = hearth_json_reader_scaled(r, 1); /* from 0; -1: unknown */
            frame.line = line < 0 || line == INT64_MAX ? 0 : line + 1;
        } else {
            hearth_json_reader_skip(r);
        }
    }

    if (hearth_json_reader_failed(r) || hearth_str_eq_c(frame.name, "(root)")) {
        return HEARTH_NO_INDEX;
    }
    if (frame.name.n == 0) {
        frame.name = HEARTH_STR(ANONYMOUS);
    }

    uint32_t location = hearth_named_location(p->builder, HEARTH_NO_INDEX, &frame, 1);
    if (location == HEARTH_NO_INDEX) {
        hearth_json_reader_fail_arena(r, p->arena);
    }

    return location;
}

enum hearth_status hearth_chrome_finish(struct chrome_profile *p, struct hearth_profile *ret,
                                        struct hearth_pprof_notes *notes, struct hearth_err *err)
{
    const struct call_tree_stacks stacks = {.max_depth = p->limits->max_depth, .nowhere = p->root};

    HEARTH_TRY(hearth_call_tree_write(&p->tree, &stacks, p->builder, notes, err));
    HEARTH_TRY(hearth_profile_builder_finish(p->builder, ret, err));

    return hearth_ingest_cut(p->limits, p->arena, ret, notes, err);
}
