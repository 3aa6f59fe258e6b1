/* perf_events.c -- makes the profile of an event: types, stacks, values. */
#include "perf/perf_events.h"

#include "hearth/base/mem.h"
#include "hearth/format/elf_symbols.h"

#include "text/named_frame.h"
#include "text/perf_lines.h"

#include <assert.h>
#include <stdio.h>

#define NS_PER_SEC UINT64_C(1000000000)

/* The addresses that a record of 65,535 bytes can hold, and the command name. */
#define MAX_FRAMES (65535 / 8 + 1)

/* Marks among the addresses of a call chain: those that follow are of this mode. */
#define FIRST_MARK      ((uint64_t)-4095)
#define MARK_HYPERVISOR ((uint64_t)-32)
#define MARK_KERNEL     ((uint64_t)-128)
#define MARK_USER       ((uint64_t)-512)
#define MARK_GUEST      ((uint64_t)-2048)
#define MARK_GUEST_KERN ((uint64_t)-2176)
#define MARK_GUEST_USER ((uint64_t)-2560)

enum event_type {
    EVENT_HARDWARE = 0,
    EVENT_SOFTWARE = 1,
    EVENT_TRACEPOINT = 2,
};

/* ---- names and types ---- */

struct hearth_str hearth_perf_event_name(const struct perf_event *event, struct hearth_arena *arena)
{
    static const char *const hardware[] = {"cycles",
                                           "instructions",
                                           "cache-references",
                                           "cache-misses",
                                           "branches",
                                           "branch-misses",
                                           "bus-cycles",
                                           "stalled-cycles-frontend",
                                           "stalled-cycles-backend",
                                           "ref-cycles"};
    static const char *const software[] = {
        "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
        "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
        "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};

    if (event->name.n > 0) {
        return event->name;
    }
    if (event->type == EVENT_HARDWARE && event->config < HEARTH_ARRAY_LEN(hardware)) {
        return hearth_str_c(hardware[event->config]);
    }
    if (event->type == EVENT_SOFTWARE && event->config < HEARTH_ARRAY_LEN(software)) {
        return hearth_str_c(software[event->config]);
    }

    char *text = hearth_arena_printf(
        arena, event->type == EVENT_TRACEPOINT ? "tracepoint-%llu" : "event-%llu",
        (unsigned long long)event->config);

    return text == NULL ? (struct hearth_str){NULL, 0} : hearth_str_c(text);
}

bool hearth_perf_event_is_clock(const struct perf_event *event)
{
    return event->type == EVENT_SOFTWARE && event->config <= 1;
}

/*
 * The value of a sample; 0 if it is not known: a frequency without the periods that it led to. A
 * clock is precise, though.
 */
static uint64_t find_period(const struct perf_event *event, const struct perf_sample *sample)
{
    if (sample->has_period) {
        return sample->period;
    }
    if (!event->is_freq) {
        return event->period;
    }

    return hearth_perf_event_is_clock(event) && event->period > 0 ? NS_PER_SEC / event->period : 0;
}

static bool has_known_period(const struct perf_event *event)
{
    return (event->sample_type & (PERF_HAS_PERIOD | PERF_HAS_READ)) != 0 || !event->is_freq ||
           hearth_perf_event_is_clock(event);
}

static struct hearth_str name_value_type(const struct perf_event *event, struct hearth_arena *arena)
{
    return hearth_perf_event_is_clock(event)
               ? HEARTH_STR("cpu")
               : hearth_perf_event_base(hearth_perf_event_name(event, arena));
}

static struct hearth_str name_value_unit(const struct perf_event *event)
{
    return hearth_perf_event_is_clock(event) ? HEARTH_STR("nanoseconds") : HEARTH_STR("count");
}

/* ---- locations ---- */

/* The mapping of a place; HEARTH_NO_INDEX: no memory. */
static uint32_t find_or_add_place_mapping(struct perf_output *out, const struct perf_space *space,
                                          const struct perf_place *place, bool has_function)
{
    const struct perf_object *object = &space->objects[place->object];
    struct hearth_profile_builder *b = out->builder;
    const struct hearth_mapping mapping = {
        .start = place->start,
        .limit = place->limit,
        .offset = place->offset,
        .filename = hearth_profile_builder_string(b, object->path),
        .build_id = hearth_profile_builder_string(b, object->build_id),
    };

    if (mapping.filename == HEARTH_NO_INDEX || mapping.build_id == HEARTH_NO_INDEX) {
        return HEARTH_NO_INDEX;
    }

    size_t cap = out->cap_mappings;
    uint32_t id = hearth_profile_builder_mapping(b, &mapping);
    if (id == HEARTH_NO_INDEX || !hearth_mem_grow(&out->has_functions, &out->cap_mappings,
                                                  (size_t)id + 1, sizeof *out->has_functions)) {
        return HEARTH_NO_INDEX;
    }

    for (size_t i = cap; i < out->cap_mappings; i++) {
        out->has_functions[i] = false;
    }
    out->has_functions[id] = out->has_functions[id] || has_function;

    return id;
}

/* Makes the location of an address of a place; HEARTH_NO_INDEX: no memory. */
static uint32_t make_place_location(struct perf_output *out, struct perf_space *space,
                                    uint32_t place_idx, uint64_t address)
{
    struct hearth_location location = {.mapping = HEARTH_NO_INDEX, .address = address};

    if (place_idx == PERF_NO_PLACE) {
        return hearth_profile_builder_location(out->builder, &location, NULL, 0);
    }

    /* The function, if the program is given beside the recording. */
    const struct perf_place *place = &space->places[place_idx];
    const struct hearth_elf_symbols *symbols = hearth_perf_space_symbols(space, place->object);
    struct hearth_named_frame frame = {.name = {"", 0}, .filename = {"", 0}};
    if (symbols != NULL) {
        frame.name = hearth_elf_symbols_find(symbols, address);
    }

    location.mapping = find_or_add_place_mapping(out, space, place, frame.name.n > 0);
    if (location.mapping == HEARTH_NO_INDEX) {
        return HEARTH_NO_INDEX;
    }

    return frame.name.n > 0 ? hearth_named_location(out->builder, location.mapping, &frame, 1)
                            : hearth_profile_builder_location(out->builder, &location, NULL, 0);
}

static uint32_t find_frame_location(struct perf_output *out, struct perf_space *space,
                                    enum perf_cpu_mode mode, uint32_t pid, uint64_t address)
{
    uint32_t place;
    uint64_t at;

    if (!hearth_perf_space_find(space, mode, pid, address, &place, &at)) {
        return HEARTH_NO_INDEX;
    }

    struct hearth_hash128 key = perf_key(at, place);
    uint32_t known = perf_index_find(&out->locations, key);
    if (known != HEARTH_IDMAP_NONE) {
        return known;
    }

    bool inserted;
    uint32_t made = make_place_location(out, space, place, at);

    return made == HEARTH_NO_INDEX || perf_index_intern(&out->locations, space->file->arena, key,
                                                        made, &inserted) == HEARTH_IDMAP_NONE
               ? HEARTH_NO_INDEX
               : made;
}

/* ---- samples ---- */

static struct hearth_str name_thread(const struct perf_space *space,
                                     const struct perf_sample *sample, char room[16])
{
    struct hearth_str comm = hearth_perf_space_comm(space, sample->pid, sample->tid);
    if (comm.n > 0) {
        return comm;
    }
    if (sample->tid == 0) {
        return HEARTH_STR("swapper");
    }

    (void)snprintf(room, 16, ":%d", (int32_t)sample->tid);

    return hearth_str_c(room);
}

static enum perf_cpu_mode find_marked_mode(uint64_t mark, enum perf_cpu_mode mode)
{
    switch (mark) {
    case MARK_HYPERVISOR:
        return PERF_MODE_HYPERVISOR;
    case MARK_KERNEL:
        return PERF_MODE_KERNEL;
    case MARK_USER:
        return PERF_MODE_USER;
    case MARK_GUEST_KERN:
        return PERF_MODE_GUEST_KERNEL;
    case MARK_GUEST:
    case MARK_GUEST_USER:
        return PERF_MODE_GUEST_USER;
    default:
        return mode; /* a mark that this version does not know */
    }
}

/* Writes the locations of a sample, leaf first, and the command name. False: no memory. */
static bool make_perf_stack(struct perf_output *out, struct perf_space *space,
                            const struct perf_sample *sample, enum perf_cpu_mode mode,
                            struct hearth_str comm, uint32_t stack[MAX_FRAMES], uint32_t *ret_n)
{
    struct perf_cursor c = sample->chain;
    enum perf_cpu_mode of_frame = mode;
    uint32_t n = 0;

    for (uint64_t i = 0; i < sample->n_chain; i++) {
        uint64_t address = perf_u64(&c);
        if (address >= FIRST_MARK) {
            of_frame = find_marked_mode(address, of_frame);
            continue;
        }

        assert(n < MAX_FRAMES - 1);
        stack[n] = find_frame_location(out, space, of_frame, sample->pid, address);
        if (stack[n++] == HEARTH_NO_INDEX) {
            return false;
        }
    }

    /* Without a call chain only the instruction is known. */
    if (n == 0 && sample->ip != 0) {
        stack[n] = find_frame_location(out, space, mode, sample->pid, sample->ip);
        if (stack[n++] == HEARTH_NO_INDEX) {
            return false;
        }
    }

    const struct hearth_named_frame root = {.name = comm, .filename = {"", 0}};
    stack[n] = hearth_named_location(out->builder, HEARTH_NO_INDEX, &root, 1);
    *ret_n = n + 1;

    return stack[n] != HEARTH_NO_INDEX;
}

/* The thread as labels; false: no memory. */
static bool make_thread_labels(struct perf_output *out, struct hearth_str comm, uint32_t tid,
                               struct hearth_sample_label labels[2])
{
    struct hearth_profile_builder *b = out->builder;

    labels[0] = (struct hearth_sample_label){
        .key = hearth_profile_builder_string(b, HEARTH_STR("thread name")),
        .str = hearth_profile_builder_string(b, comm),
    };
    labels[1] = (struct hearth_sample_label){
        .key = hearth_profile_builder_string(b, HEARTH_STR("thread id")),
        .num = tid,
    };

    return labels[0].key != HEARTH_NO_INDEX && labels[0].str != HEARTH_NO_INDEX &&
           labels[1].key != HEARTH_NO_INDEX;
}

static bool start_output(struct perf_output *out, const struct perf_event *event,
                         const struct perf_space *space)
{
    out->builder = hearth_profile_builder_new(space->file->arena);
    if (out->builder == NULL) {
        return false;
    }

    hearth_profile_builder_limit(out->builder, space->options->limits.max_frames);
    if (hearth_profile_builder_type(out->builder, HEARTH_STR("samples"), HEARTH_STR("count")) ==
        HEARTH_NO_INDEX) {
        return false;
    }

    out->has_values = has_known_period(event);

    return !out->has_values ||
           hearth_profile_builder_type(out->builder, name_value_type(event, space->file->arena),
                                       name_value_unit(event)) != HEARTH_NO_INDEX;
}

enum hearth_status hearth_perf_output_add(struct perf_output *output, struct perf_space *space,
                                          const struct perf_event *event,
                                          const struct perf_sample *sample, uint16_t misc,
                                          struct hearth_err *err)
{
    uint64_t period = find_period(event, sample);
    uint32_t stack[MAX_FRAMES], n;
    struct hearth_sample_label labels[2];
    char room[16];

    if (period > INT64_MAX) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the period of a sample is negative");
    }

    bool is_first = output->builder == NULL;
    if (is_first && !start_output(output, event, space)) {
        return HEARTH_FAIL_ARENA(err, space->file->arena);
    }

    output->period = is_first || output->period == period ? period : 0;
    struct hearth_str comm = name_thread(space, sample, room);
    if (!make_perf_stack(output, space, sample, (enum perf_cpu_mode)(misc & PERF_MISC_CPU_MODE),
                         comm, stack, &n) ||
        !make_thread_labels(output, comm, sample->tid, labels)) {
        return HEARTH_FAIL_ARENA(err, space->file->arena);
    }

    const int64_t values[2] = {1, (int64_t)period};

    return hearth_profile_builder_labelled_sample(output->builder, stack, n, labels, 2, values,
                                                  err);
}

enum hearth_status hearth_perf_output_finish(struct perf_output *output,
                                             const struct perf_event *event,
                                             struct hearth_arena *arena, struct hearth_profile *ret,
                                             struct hearth_err *err)
{
    struct hearth_value_type period_type = {0, 0};
    struct hearth_profile profile;

    if (output->has_values) {
        period_type.type =
            hearth_profile_builder_string(output->builder, name_value_type(event, arena));
        period_type.unit = hearth_profile_builder_string(output->builder, name_value_unit(event));
        if (period_type.type == HEARTH_NO_INDEX || period_type.unit == HEARTH_NO_INDEX) {
            return HEARTH_FAIL_ARENA(err, arena);
        }
    }

    HEARTH_TRY(hearth_profile_builder_finish(output->builder, &profile, err));
    profile.period_type = period_type;
    profile.period = (int64_t)output->period;
    for (uint32_t i = 0; i < profile.n_mappings; i++) {
        profile.mappings[i].has_functions = output->has_functions[i];
    }

    *ret = profile;

    return HEARTH_OK;
}

void hearth_perf_output_release(struct perf_output *output, struct hearth_arena *arena)
{
    hearth_profile_builder_free(output->builder);
    perf_index_release(&output->locations, arena);
    hearth_mem_free(output->has_functions);
}
