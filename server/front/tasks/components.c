/* components.c -- names of components (components.h, components.def). */
#include "tasks/components.h"

#include <stdlib.h>

static const struct component {
    int32_t id;
    const char *name;
} g_components[] = {
#define C(id, name) {id, name},
#include "tasks/components.def"
#undef C
};

static int compare_component_ids(const void *left, const void *right)
{
    const struct component *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

struct hearth_str hearth_component_name(int32_t id)
{
    const struct component key = {id, NULL};
    const struct component *found = bsearch(&key, g_components, HEARTH_ARRAY_LEN(g_components),
                                            sizeof g_components[0], compare_component_ids);
    return hearth_str_c(found == NULL ? NULL : found->name);
}
