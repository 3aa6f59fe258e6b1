/*
 * row_mask.c -- flags of functions, mappings, locations and stacks by the rows of their frames
 * (contract: row_mask.h).
 *
 * The class, directory and file of a frame depend on its function alone; its package, too, unless
 * it is unknown: then the mapping stands for it. So flags are kept by function and by mapping, and
 * only lines are judged one by one.
 */
#include "select/row_mask.h"

#include <assert.h>
#include <stdio.h>

/* Marks of flags besides those of rules. */
#define UNSEEN      (UINT64_C(1) << 63) /* not judged yet; no other flag is set */
#define NO_PACKAGE  (UINT64_C(1) << 62) /* functions only: the mapping stands for the package */
#define MARKS       (UNSEEN | NO_PACKAGE)
#define LINE_DIGITS 24

/* The dictionary that is judged. */
struct dict_flags {
    struct hearth_row_rules *rules;
    const struct hearth_dict *dict;
    struct hearth_arena *scratch;
    uint64_t *of_function, *of_location; /* UNSEEN until they are needed */
    uint64_t *of_mapping, *of_library; /* the rows of a mapping; it as a package; one more: none */
    char *room;
    size_t cap_room;
};

enum hearth_status hearth_row_mask_init(struct hearth_row_mask *mask,
                                        const struct hearth_stack_filter *filter,
                                        const struct hearth_arena *like, struct hearth_err *err)
{
    hearth_arena_init_like(&mask->scratch, like);
    return hearth_row_rules_init(&mask->rules, filter, false, like, err);
}

void hearth_row_mask_release(struct hearth_row_mask *mask)
{
    hearth_row_rules_release(&mask->rules);
    hearth_arena_release(&mask->scratch);
}

/* ---- parts of a dictionary ---- */

static uint64_t *make_unseen_flags(struct hearth_arena *scratch, size_t n)
{
    uint64_t *flags = hearth_arena_array(scratch, n, sizeof flags[0]);
    for (size_t i = 0; flags != NULL && i < n; i++) {
        flags[i] = UNSEEN;
    }
    return flags;
}

static bool init_dict_flags(struct dict_flags *d)
{
    const struct hearth_dict *dict = d->dict;
    d->of_function = make_unseen_flags(d->scratch, dict->n_functions);
    d->of_location = make_unseen_flags(d->scratch, dict->n_locations);
    d->of_mapping = make_unseen_flags(d->scratch, (size_t)dict->n_mappings + 1);
    d->of_library = make_unseen_flags(d->scratch, (size_t)dict->n_mappings + 1);
    return !d->scratch->refused;
}

/* Makes room for a text of n bytes. NULL: memory was refused. */
static char *grow_row_room(struct dict_flags *d, size_t n)
{
    return hearth_arena_grow(d->scratch, &d->room, &d->cap_room, n, 1) ? d->room : NULL;
}

/* The flags of the rows that a function determines. UNSEEN: memory was refused. */
static uint64_t judge_function(struct dict_flags *d, uint32_t function)
{
    static const enum hearth_top_kind kinds[] = {HEARTH_TOP_CLASS, HEARTH_TOP_PACKAGE,
                                                 HEARTH_TOP_DIRECTORY, HEARTH_TOP_FILE};
    uint64_t *flags = &d->of_function[function];
    if (*flags != UNSEEN) {
        return *flags;
    }

    char *room = grow_row_room(d, hearth_dict_function_bytes(d->dict, function));
    if (room == NULL) {
        return UNSEEN;
    }

    uint64_t found = 0;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(kinds); i++) {
        if (!hearth_row_rules_have(d->rules, kinds[i])) {
            continue;
        }
        struct hearth_str row = hearth_dict_function_row(d->dict, function, kinds[i], room);
        found |= kinds[i] == HEARTH_TOP_PACKAGE && row.n == 0
                     ? NO_PACKAGE
                     : hearth_row_rules_flags(d->rules, kinds[i], row);
    }

    *flags = found;
    return found;
}

/* The same for a frame without a function. */
static uint64_t judge_no_function(struct dict_flags *d)
{
    const struct hearth_str none = HEARTH_STR("");
    return NO_PACKAGE | hearth_row_rules_flags(d->rules, HEARTH_TOP_CLASS, none) |
           hearth_row_rules_flags(d->rules, HEARTH_TOP_DIRECTORY, none) |
           hearth_row_rules_flags(d->rules, HEARTH_TOP_FILE, none);
}

/* The flags of the rows that are mappings; as_package: of packages that are libraries. */
static uint64_t judge_mapping(struct dict_flags *d, const struct hearth_dict_frame *frame,
                              bool as_package)
{
    const struct hearth_mapping *mapping = hearth_dict_frame_mapping(d->dict, frame);
    size_t at = mapping == NULL ? d->dict->n_mappings : (size_t)(mapping - d->dict->mappings);
    uint64_t *flags = as_package ? &d->of_library[at] : &d->of_mapping[at];

    if (*flags == UNSEEN) {
        struct hearth_str file =
            mapping == NULL ? HEARTH_STR("") : d->dict->strings[mapping->filename];
        *flags = as_package ? hearth_row_rules_flags(d->rules, HEARTH_TOP_PACKAGE,
                                                     hearth_dict_frame_library(d->dict, frame))
                            : hearth_row_rules_flags(d->rules, HEARTH_TOP_MODULE, file);
    }

    return *flags;
}

/* The flags of the rows that are functions and lines. UNSEEN: memory was refused. */
static uint64_t judge_frame_name(struct dict_flags *d, const struct hearth_dict_frame *frame)
{
    char out[HEARTH_FRAME_NAME_BYTES];
    struct hearth_str name = hearth_dict_frame_name(d->dict, frame, out);
    uint64_t flags = hearth_row_rules_flags(d->rules, HEARTH_TOP_FUNCTION, name);

    if (hearth_row_rules_have(d->rules, HEARTH_TOP_LINE)) {
        char *room = grow_row_room(d, name.n + LINE_DIGITS);
        if (room == NULL) {
            return UNSEEN;
        }
        memcpy(room, name.p, name.n);
        int n = snprintf(room + name.n, LINE_DIGITS, ":%lld", (long long)frame->line);
        flags |= hearth_row_rules_flags(d->rules, HEARTH_TOP_LINE,
                                        hearth_str_n(room, name.n + (size_t)n));
    }

    return flags;
}

/* The flags of all rows of a frame. UNSEEN: memory was refused. */
static uint64_t judge_frame(struct dict_flags *d, const struct hearth_dict_frame *frame)
{
    const uint32_t of_names = UINT32_C(1) << HEARTH_TOP_FUNCTION | UINT32_C(1) << HEARTH_TOP_LINE;
    uint64_t flags = frame->function == HEARTH_NO_INDEX ? judge_no_function(d)
                                                        : judge_function(d, frame->function);
    if (flags == UNSEEN) {
        return UNSEEN;
    }

    if ((d->rules->kinds & of_names) != 0) {
        uint64_t of_name = judge_frame_name(d, frame);
        if (of_name == UNSEEN) {
            return UNSEEN;
        }
        flags |= of_name;
    }

    if (hearth_row_rules_have(d->rules, HEARTH_TOP_FRAME_KIND)) {
        flags |= hearth_row_rules_flags(d->rules, HEARTH_TOP_FRAME_KIND,
                                        hearth_dict_frame_kind(d->dict, frame));
    }

    flags |= judge_mapping(d, frame, false);
    flags |= (flags & NO_PACKAGE) != 0 ? judge_mapping(d, frame, true) : 0;
    return flags & ~MARKS;
}

/* The flags of all frames of a location. UNSEEN: memory was refused. */
static uint64_t judge_location(struct dict_flags *d, uint32_t index)
{
    const struct hearth_location *location = &d->dict->locations[index];
    uint64_t flags = 0;

    for (uint32_t i = 0; i == 0 || i < location->n_lines; i++) {
        const struct hearth_dict_frame frame = hearth_dict_frame_at(d->dict, location, i);
        uint64_t of_frame = judge_frame(d, &frame);
        if (of_frame == UNSEEN) {
            return UNSEEN;
        }
        flags |= of_frame;
    }

    d->of_location[index] = flags;
    return flags;
}

/* ---- stacks ---- */

/* Finds the verdict on a stack. False: memory was refused. */
static bool judge_stack(struct dict_flags *d, uint32_t stack, bool *ret_passes)
{
    const struct hearth_dict *dict = d->dict;
    uint64_t flags = 0;

    for (uint32_t i = dict->stack_first[stack]; i < dict->stack_first[stack + 1]; i++) {
        uint64_t of_location = d->of_location[dict->stack_locs[i]];
        if (HEARTH_UNLIKELY(of_location == UNSEEN)) {
            of_location = judge_location(d, dict->stack_locs[i]);
            if (of_location == UNSEEN) {
                return false;
            }
        }
        flags |= of_location;
    }

    *ret_passes = hearth_row_flags_pass(d->rules, flags);
    return true;
}

enum hearth_status hearth_row_mask_stacks(struct hearth_row_mask *mask,
                                          const struct hearth_dict *dict, uint32_t n,
                                          const int64_t *values, const bool **ret_passes,
                                          struct hearth_err *err)
{
    assert(mask != NULL && dict != NULL && n <= dict->n_stacks && ret_passes != NULL);

    *ret_passes = NULL;
    if (mask->rules.n == 0) {
        return HEARTH_OK;
    }

    hearth_arena_reset(&mask->scratch);
    struct dict_flags d = {.rules = &mask->rules, .dict = dict, .scratch = &mask->scratch};
    bool *passes = hearth_arena_array(&mask->scratch, n, sizeof passes[0]);
    if (passes == NULL || !init_dict_flags(&d)) {
        return HEARTH_FAIL_ARENA(err, &mask->scratch);
    }

    for (uint32_t s = 0; s < n; s++) {
        passes[s] = true;
        if ((values == NULL || values[s] != 0) && !judge_stack(&d, s, &passes[s])) {
            return HEARTH_FAIL_ARENA(err, &mask->scratch);
        }
    }

    *ret_passes = passes;
    return HEARTH_OK;
}

enum hearth_status hearth_row_mask_clear(struct hearth_row_mask *mask,
                                         const struct hearth_dict *dict,
                                         const struct hearth_dict_sums *sums,
                                         struct hearth_err *err)
{
    const bool *passes;

    HEARTH_TRY(hearth_row_mask_stacks(mask, dict, sums->bound, sums->acc, &passes, err));
    for (uint32_t s = 0; passes != NULL && s < sums->bound; s++) {
        sums->acc[s] = passes[s] ? sums->acc[s] : 0;
    }

    return HEARTH_OK;
}
