/*
 * speedscope_events.c -- parts with events: time passes for the innermost open frame. Calls become
 * a tree first, because the same stack is left and entered many times.
 */
#include "json/speedscope_parts.h"

#include <assert.h>

struct speedscope_event {
    char type; /* 'O' or 'C'; 0: missing */
    bool has_frame, has_at;
    uint32_t location;
    int64_t at;
};

static struct speedscope_event read_event(const struct speedscope_pass *pass,
                                          const struct speedscope_part *part,
                                          struct hearth_json_reader *r)
{
    struct speedscope_event event = {.type = '\0'};
    struct hearth_str key;

    hearth_json_reader_object(r);
    while (hearth_json_reader_member(r, &key)) {
        if (hearth_str_eq_c(key, "type")) {
            struct hearth_str type = hearth_json_reader_text(r, pass->arena);
            bool is_known = hearth_str_eq_c(type, "O") || hearth_str_eq_c(type, "C");
            event.type = is_known ? type.p[0] : '\0';
        } else if (hearth_str_eq_c(key, "frame")) {
            event.location = hearth_speedscope_frame(pass, r);
            event.has_frame = true;
        } else if (hearth_str_eq_c(key, "at")) {
            event.at = hearth_json_reader_scaled(r, part->unit->factor);
            event.has_at = true;
        } else {
            hearth_json_reader_skip(r);
        }
    }

    return event;
}

/* The innermost open frame, and the time from which on it counts. */
struct open_frame {
    uint32_t node; /* HEARTH_NO_INDEX: no frame is open */
    int64_t since;
};

/* Counts the time until `at` for the innermost frame. */
static enum hearth_status count_until(struct speedscope_pass *pass, struct open_frame *open,
                                      int64_t at, struct hearth_err *err)
{
    int64_t passed = at - open->since; /* both are 0 or more */

    assert(passed >= 0);
    open->since = at;

    return open->node == HEARTH_NO_INDEX
               ? HEARTH_OK
               : hearth_call_tree_count(&pass->tree, open->node, 0, passed, err);
}

/* Opens or closes a frame. Faults are the reader's. */
static enum hearth_status apply_event(struct speedscope_pass *pass, struct hearth_json_reader *r,
                                      const struct speedscope_event *event, struct open_frame *open,
                                      struct hearth_err *err)
{
    if (event->type == '\0' || !event->has_frame || !event->has_at) {
        hearth_json_reader_fail(r, "an event needs \"type\" (O or C), \"frame\" and \"at\"");
    } else if (event->at < 0) {
        hearth_json_reader_fail(r, "the time is negative");
    } else if (event->at < open->since) {
        hearth_json_reader_fail(r, "the time is before that of the event before it");
    } else if (event->type == 'C' && open->node == HEARTH_NO_INDEX) {
        hearth_json_reader_fail(r, "no frame is open that could be closed");
    } else if (event->type == 'C' && pass->tree.nodes[open->node].location != event->location) {
        hearth_json_reader_fail(r, "it closes another frame than the innermost open one");
    }
    HEARTH_TRY(hearth_json_reader_status(r, err));

    HEARTH_TRY(count_until(pass, open, event->at, err));
    if (event->type == 'C') {
        open->node = pass->tree.nodes[open->node].parent;
        return HEARTH_OK;
    }

    open->node = hearth_call_tree_child(&pass->tree, open->node, event->location);

    return open->node == HEARTH_NO_INDEX ? hearth_call_tree_refused(&pass->tree, err) : HEARTH_OK;
}

enum hearth_status hearth_speedscope_events(struct speedscope_pass *pass,
                                            struct speedscope_part *part, struct hearth_err *err)
{
    struct open_frame open = {.node = HEARTH_NO_INDEX};

    if (part->events_at == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "profile %u has no \"events\"", part->idx);
    }

    hearth_call_tree_reset(&pass->tree);
    hearth_json_reader_array(&pass->events);
    for (size_t i = 0; hearth_json_reader_element(&pass->events); i++) {
        struct speedscope_event event = read_event(pass, part, &pass->events);
        enum hearth_status status = apply_event(pass, &pass->events, &event, &open, err);
        if (status != HEARTH_OK) {
            hearth_err_prefix(err, "event %zu of profile %u", i, part->idx);
            return status;
        }
    }
    HEARTH_TRY(hearth_json_reader_status(&pass->events, err));

    /* Frames that are still open end with the profile. */
    if (part->end > open.since) {
        HEARTH_TRY(count_until(pass, &open, part->end, err));
    }

    const struct call_tree_stacks stacks = {
        .max_depth = pass->limits->max_depth,
        .nowhere = pass->no_stack,
        .n_labels = pass->n_labels,
        .labels = &pass->label,
    };

    return hearth_call_tree_write(&pass->tree, &stacks, pass->builder, &pass->notes, err);
}
