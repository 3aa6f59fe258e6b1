/*
 * fuzz_datadog_event.c -- event.json, or, if the first byte is a minus, a form with the boundary
 * "b": labels have distinct names that every client can display, and values.
 */
#include "hearth/format/datadog_event.h"

#include "short_memory.h"

static void check_labels(const struct hearth_datadog_event *event)
{
    HEARTH_ASSERT(event->n_labels <= HEARTH_DATADOG_MAX_TAGS + 4);
    for (size_t i = 0; i < event->n_labels; i++) {
        struct hearth_label label = event->labels[i];
        HEARTH_ASSERT(hearth_label_name_is_legacy(label.name) && label.value.n > 0);
        HEARTH_ASSERT(hearth_str_utf8_valid(label.value));
        for (size_t k = 0; k < i; k++) {
            HEARTH_ASSERT(!hearth_str_eq(label.name, event->labels[k].name));
        }
    }
}

static void run_input(const uint8_t *data, size_t size)
{
    static struct hearth_multipart form;
    struct hearth_str in = {(const char *)data, size};
    struct hearth_datadog_event event;
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_arena arena;
    enum hearth_status status;

    begin_memory(&arena);
    if (size > 0 && data[0] == '-') {
        status =
            hearth_multipart_parse(HEARTH_STR("multipart/form-data; boundary=b"), in, &form, &err);
        if (status == HEARTH_OK) {
            status = hearth_datadog_event_read_form(&form, &arena, &event, &err);
        }
    } else {
        status = hearth_datadog_event_read(in, &arena, &event, &err);
    }

    if (status == HEARTH_OK) {
        check_labels(&event);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
        HEARTH_ASSERT(status == HEARTH_INVALID_ARGUMENT || status == HEARTH_NO_MEMORY);
    }

    end_memory(&arena);
}
