/* datadog_names.c -- tags may have any name, labels should be names that every client displays. */
#include "datadog/datadog_names.h"

#include "hearth/model/labels.h"

struct hearth_str hearth_datadog_label_name(struct hearth_str name, struct hearth_arena *arena)
{
    size_t n = 0;

    if (hearth_label_name_is_legacy(name)) {
        return name;
    }

    char *label = hearth_arena_alloc(arena, name.n + 1);
    if (label == NULL) {
        return hearth_str_n(NULL, 0);
    }
    if (name.n > 0 && name.p[0] >= '0' && name.p[0] <= '9') {
        label[n++] = '_';
    }

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        label[n++] = (char)(is_plain ? c : '_');
    }

    return hearth_str_n(label, n);
}
