/*
 * perf_script.c -- makes a profile from the records of `perf script`.
 *
 * Two passes over the text: the first finds the events, because their number determines the sample
 * types; the second builds the stacks. A record is open from its header to a blank line, the next
 * header or the end of the text. Its frames are kept as text until then, because source lines and
 * inlined frames refer to their neighbours.
 */
#include "hearth/format/perf_script.h"

#include "hearth/base/mem.h"
#include "hearth/format/profile_builder.h"

#include "text/line_votes.h"
#include "text/named_frame.h"
#include "text/perf_lines.h"

#include <assert.h>

/*
 * Values are dense (samples x types): memory must not be quadratic for a text with a new event in
 * each record.
 */
#define MAX_EVENTS 64u

#define PERF_FORM "of perf script's output"

struct perf_event {
    struct hearth_str text, base;
    bool is_clock;   /* the period is in nanoseconds */
    bool has_period; /* at least one record has a period */
    int64_t period;  /* the period of all its records; 0 if they differ */
    uint32_t type;   /* index of its sample type */
};

struct perf_reader {
    struct hearth_str text;
    struct hearth_arena *arena;
    struct hearth_profile_builder *builder;
    struct hearth_perf_notes notes;
    struct hearth_line_votes votes;
    int64_t first_ns, last_ns;
    bool has_time;
    bool in_header; /* between two marks of --header, where the command may have several lines */
    struct perf_event events[MAX_EVENTS];
    size_t n_events;
    /* The open record: set by open_record, ended by close_record. */
    bool is_open;
    bool has_own_frame; /* its only frame so far is in the header line */
    struct hearth_perf_header header;
    struct hearth_str header_line;
    uint64_t header_number;
    struct hearth_perf_frame *frames; /* leaf first */
    size_t n_frames, cap_frames;
    uint32_t *stack;
    size_t n_stack, cap_stack;
    bool *symbolised; /* per mapping: true if a symbol in it is known */
    size_t n_symbolised, cap_symbolised;
};

enum perf_line_kind {
    LINE_BLANK,
    LINE_COMMENT,
    LINE_HEADER,
    LINE_FRAME
};

/* True for "comm tid [cpu] time: PERF_RECORD_MMAP2 ...": perf prints these events on request. */
static bool is_other_event(struct hearth_str line)
{
    static const char mark[] = ": PERF_RECORD_";
    const char *found = memmem(line.p, line.n, mark, sizeof mark - 1);
    return found != NULL || hearth_str_starts(line, HEARTH_STR("PERF_RECORD_"));
}

/*
 * True if the text has the second mark of a header at or after `pos`. Texts of many marks are read
 * once: after a search that finds a line, the next one is behind that line.
 */
static bool has_header_end(struct hearth_str text, size_t pos)
{
    static const char mark[] = "\n# ========";

    /* The line that ends before `pos` is the first mark; its '\n' may be that of the second. */
    for (size_t at = pos - 1; at < text.n;) {
        const char *found = memmem(text.p + at, text.n - at, mark, sizeof mark - 1);
        if (found == NULL) {
            return false;
        }

        /* A line may only begin like a mark. */
        at = (size_t)(found + 1 - text.p);
        size_t end = hearth_str_find(text, '\n', at);
        if (hearth_perf_is_header_mark(hearth_str_n(text.p + at, end - at))) {
            return true;
        }
    }

    return false;
}

/*
 * The next line and its kind; false at the end. perf indents frames by a tab, and right-aligns the
 * command of records without a call graph by spaces: a line that begins with spaces may be either,
 * and is a header if it has a time. A command line in the header of the file may contain anything.
 */
static bool read_next_line(struct perf_reader *r, size_t *pos, struct hearth_str *line,
                           enum perf_line_kind *kind, struct hearth_perf_header *header)
{
    if (*pos >= r->text.n) {
        return false;
    }

    size_t end = hearth_str_find(r->text, '\n', *pos);
    *line = hearth_str_n(r->text.p + *pos, end - *pos);
    *pos = end + 1;
    if (line->n > 0 && line->p[line->n - 1] == '\r') {
        line->n--;
    }

    bool is_mark = hearth_perf_is_header_mark(*line);
    if (is_mark) {
        r->in_header = !r->in_header && has_header_end(r->text, *pos);
    }
    if (is_mark || r->in_header) {
        *kind = LINE_COMMENT;
    } else if (hearth_str_trim(*line).n == 0) {
        *kind = LINE_BLANK;
    } else if (line->p[0] == '#') {
        *kind = LINE_COMMENT;
    } else if (line->p[0] != '\t' && hearth_perf_parse_header(*line, header)) {
        *kind = LINE_HEADER;
    } else {
        *kind = line->p[0] != '\t' && is_other_event(*line) ? LINE_COMMENT : LINE_FRAME;
    }

    return true;
}

/* ---- first pass: events ---- */

static struct perf_event *find_event(struct perf_reader *r, struct hearth_str text)
{
    for (size_t i = 0; i < r->n_events; i++) {
        if (hearth_str_eq(r->events[i].text, text)) {
            return &r->events[i];
        }
    }

    return NULL;
}

static enum hearth_status note_event(struct perf_reader *r, const struct hearth_perf_header *h,
                                     struct hearth_err *err)
{
    struct perf_event *event = find_event(r, h->event);
    if (event == NULL) {
        if (r->n_events == MAX_EVENTS) {
            return HEARTH_FAIL(err, HEARTH_RESOURCE_EXHAUSTED,
                               "perf script text has more than %u different events", MAX_EVENTS);
        }
        event = &r->events[r->n_events++];
        *event = (struct perf_event){.text = h->event, .period = h->has_period ? h->period : 0};
        event->base = hearth_perf_event_base(h->event);
        event->is_clock =
            hearth_str_eq_c(event->base, "cpu-clock") || hearth_str_eq_c(event->base, "task-clock");
    }

    event->has_period = event->has_period || h->has_period;
    if (!h->has_period || event->period != h->period) {
        event->period = 0;
    }

    if (h->has_time) {
        r->first_ns = !r->has_time || h->time_ns < r->first_ns ? h->time_ns : r->first_ns;
        r->last_ns = !r->has_time || h->time_ns > r->last_ns ? h->time_ns : r->last_ns;
        r->has_time = true;
    }

    r->notes.records++;

    return HEARTH_OK;
}

static enum hearth_status scan_events(struct perf_reader *r, struct hearth_err *err)
{
    struct hearth_str line;
    enum perf_line_kind kind;
    struct hearth_perf_header header;
    assert(!r->in_header);
    for (size_t pos = 0; read_next_line(r, &pos, &line, &kind, &header);) {
        if (kind == LINE_HEADER) {
            HEARTH_TRY(note_event(r, &header, err));
        }
    }

    if (r->n_events == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "the text has no record of perf script's output");
    }

    return HEARTH_OK;
}

/* True if another event would get the same type name. */
static bool is_name_shared(const struct perf_reader *r, const struct perf_event *event)
{
    for (size_t i = 0; i < r->n_events; i++) {
        const struct perf_event *other = &r->events[i];
        if (other != event &&
            (hearth_str_eq(other->base, event->base) || (other->is_clock && event->is_clock))) {
            return true;
        }
    }

    return false;
}

/*
 * A period of a clock event is a time only if perf printed it; a missing period is 1 without a
 * unit.
 */
static bool has_time_period(const struct perf_event *event)
{
    return event->is_clock && event->has_period;
}

static struct hearth_str name_type(const struct perf_reader *r, const struct perf_event *event)
{
    if (is_name_shared(r, event)) {
        return event->text;
    }
    return has_time_period(event) ? HEARTH_STR("cpu") : event->base;
}

static bool add_types(struct perf_reader *r)
{
    if (r->n_events == 1 && hearth_profile_builder_type(r->builder, HEARTH_STR("samples"),
                                                        HEARTH_STR("count")) == HEARTH_NO_INDEX) {
        return false;
    }

    for (size_t i = 0; i < r->n_events; i++) {
        struct perf_event *event = &r->events[i];
        if (r->n_events == 1 && !event->has_period) {
            break; /* only the number of samples is known */
        }
        event->type = hearth_profile_builder_type(r->builder, name_type(r, event),
                                                  has_time_period(event) ? HEARTH_STR("nanoseconds")
                                                                         : HEARTH_STR("count"));
        if (event->type == HEARTH_NO_INDEX) {
            return false;
        }
    }

    return true;
}

/* ---- second pass: stacks ---- */

static bool push_location(struct perf_reader *r, uint32_t location)
{
    if (location == HEARTH_NO_INDEX ||
        !hearth_mem_grow(&r->stack, &r->cap_stack, r->n_stack + 1, sizeof *r->stack)) {
        return false;
    }

    r->stack[r->n_stack++] = location;

    return true;
}

/*
 * The mapping of a dso; *ret is HEARTH_NO_INDEX if the dso is unknown. False if memory is refused.
 */
static bool find_or_add_mapping(struct perf_reader *r, struct hearth_str dso, bool has_symbol,
                                uint32_t *ret)
{
    *ret = HEARTH_NO_INDEX;
    if (dso.n == 0) {
        return true;
    }

    struct hearth_mapping mapping = {.filename = hearth_profile_builder_string(r->builder, dso)};
    if (mapping.filename == HEARTH_NO_INDEX) {
        return false;
    }

    uint32_t id = hearth_profile_builder_mapping(r->builder, &mapping);
    if (id == HEARTH_NO_INDEX || !hearth_mem_grow(&r->symbolised, &r->cap_symbolised,
                                                  (size_t)id + 1, sizeof *r->symbolised)) {
        return false;
    }

    while (r->n_symbolised <= id) {
        r->symbolised[r->n_symbolised++] = false;
    }

    r->symbolised[id] = r->symbolised[id] || has_symbol;
    *ret = id;
    return true;
}

/*
 * Push the location of frame `last`; the inlined frames [first, last) before it are its inner
 * lines.
 */
static bool push_frames(struct perf_reader *r, size_t first, size_t last)
{
    assert(first <= last && last < r->n_frames && last - first < HEARTH_MAX_NAMED_LINES);

    struct hearth_named_frame lines[HEARTH_MAX_NAMED_LINES];
    uint32_t n = 0, mapping;
    for (size_t i = first; i <= last; i++) {
        const struct hearth_perf_frame *frame = &r->frames[i];
        if (frame->symbol.n > 0) {
            lines[n++] = (struct hearth_named_frame){frame->symbol, frame->file, frame->line};
        }
    }

    const struct hearth_perf_frame *frame = &r->frames[last];
    if (!find_or_add_mapping(r, frame->dso, n > 0, &mapping)) {
        return false;
    }
    if (n > 0) {
        return push_location(r, hearth_named_location(r->builder, mapping, lines, n));
    }

    /*
     * Without a symbol, only the address is known; with one, the address would only distinguish
     * instructions.
     */
    const struct hearth_location location = {.mapping = mapping, .address = frame->address};

    return push_location(r, hearth_profile_builder_location(r->builder, &location, NULL, 0));
}

static bool push_stack(struct perf_reader *r)
{
    size_t first = 0;

    r->n_stack = 0;
    for (size_t i = 0; i < r->n_frames; i++) {
        bool continues = r->frames[i].is_inlined && i + 1 < r->n_frames &&
                         i + 1 - first < HEARTH_MAX_NAMED_LINES;
        if (!continues) {
            if (!push_frames(r, first, i)) {
                return false;
            }
            first = i + 1;
        }
    }

    const struct hearth_named_frame root = {.name = r->header.comm};

    return root.name.n == 0 ||
           push_location(r, hearth_named_location(r->builder, HEARTH_NO_INDEX, &root, 1));
}

static enum hearth_status close_record(struct perf_reader *r, struct hearth_err *err)
{
    if (!r->is_open) {
        return HEARTH_OK;
    }

    r->is_open = false;

    /* Prose such as "Step 3 follows:" is parsed as a header, too. */
    bool is_doubtful = !r->header.has_time && !r->header.has_period && r->n_frames == 0;
    if (is_doubtful) {
        hearth_line_votes_doubt(&r->votes, r->header_number, r->header_line);
    }

    r->votes.n_understood += !is_doubtful;

    if (!push_stack(r)) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    int64_t values[MAX_EVENTS + 1] = {0};
    if (r->n_events == 1) {
        values[0] = 1;
    }

    const struct perf_event *event = find_event(r, r->header.event);
    HEARTH_ASSERT(event != NULL); /* the first pass has read the same lines */
    if (r->n_events > 1 || event->has_period) {
        values[event->type] = r->header.period;
    }

    return hearth_profile_builder_sample(r->builder, r->stack, (uint32_t)r->n_stack, values, err);
}

static bool add_perf_frame(struct perf_reader *r, const struct hearth_perf_frame *frame)
{
    if (!hearth_mem_grow(&r->frames, &r->cap_frames, r->n_frames + 1, sizeof *r->frames)) {
        return false;
    }
    r->frames[r->n_frames++] = *frame;
    return true;
}

static enum hearth_status open_record(struct perf_reader *r, struct hearth_str line,
                                      const struct hearth_perf_header *header,
                                      struct hearth_err *err)
{
    HEARTH_TRY(close_record(r, err));
    struct hearth_perf_frame frame;
    assert(!r->is_open);
    r->is_open = true;
    r->header = *header;
    r->header_line = line;
    r->header_number = r->votes.line;
    r->n_frames = 0;
    r->has_own_frame = hearth_perf_parse_frame(header->rest, &frame);
    if (r->has_own_frame && !add_perf_frame(r, &frame)) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    return HEARTH_OK;
}

static enum hearth_status read_perf_frame(struct perf_reader *r, struct hearth_str line,
                                          struct hearth_err *err)
{
    struct hearth_perf_frame frame;
    struct hearth_str file;
    int64_t number;
    bool indented = line.p[0] == ' ' || line.p[0] == '\t';
    if (r->is_open && indented && hearth_perf_parse_frame(line, &frame)) {
        if (r->has_own_frame) { /* it was trace text that looks like a frame */
            r->has_own_frame = false;
            r->n_frames = 0;
        }
        r->votes.n_understood++;
        return add_perf_frame(r, &frame) ? HEARTH_OK : HEARTH_FAIL_ARENA(err, r->arena);
    }

    if (r->is_open && indented && r->n_frames > 0 &&
        hearth_perf_parse_srcline(line, &file, &number)) {
        if (number > 0 && !hearth_str_eq_c(file, "??")) {
            r->frames[r->n_frames - 1].file = file;
            r->frames[r->n_frames - 1].line = number;
        }
        r->votes.n_understood++;
        return HEARTH_OK;
    }

    if (r->is_open && hearth_perf_is_instruction(line)) {
        return HEARTH_OK;
    }

    return hearth_line_refuse(r->votes.line, line, PERF_FORM, err);
}

static enum hearth_status read_records(struct perf_reader *r, struct hearth_err *err)
{
    r->in_header = false;
    struct hearth_str line;
    enum perf_line_kind kind;
    struct hearth_perf_header header;
    for (size_t pos = 0; read_next_line(r, &pos, &line, &kind, &header);) {
        r->votes.line++;
        if (kind == LINE_HEADER) {
            HEARTH_TRY(open_record(r, line, &header, err));
        } else if (kind == LINE_BLANK) {
            HEARTH_TRY(close_record(r, err));
        } else if (kind == LINE_FRAME) {
            HEARTH_TRY(read_perf_frame(r, line, err));
        }
    }

    return close_record(r, err);
}

/* ---- both passes ---- */

static enum hearth_status finish_profile(struct perf_reader *r, struct hearth_profile *ret_profile,
                                         struct hearth_err *err)
{
    const struct perf_event *event = &r->events[0];
    struct hearth_value_type period_type = {0, 0};
    if (event->has_period) {
        period_type.type = hearth_profile_builder_string(r->builder, name_type(r, event));
        period_type.unit = hearth_profile_builder_string(
            r->builder, has_time_period(event) ? HEARTH_STR("nanoseconds") : HEARTH_STR("count"));
        if (period_type.type == HEARTH_NO_INDEX || period_type.unit == HEARTH_NO_INDEX) {
            return HEARTH_FAIL_ARENA(err, r->arena);
        }
    }

    struct hearth_profile profile;
    HEARTH_TRY(hearth_profile_builder_finish(r->builder, &profile, err));
    for (size_t i = 0; i < r->n_symbolised; i++) {
        profile.mappings[i].has_functions = r->symbolised[i];
    }

    profile.period_type = period_type;
    profile.period = event->period;
    profile.duration_ns = r->last_ns - r->first_ns;
    *ret_profile = profile;
    return HEARTH_OK;
}

static enum hearth_status decode_perf_script(struct perf_reader *r,
                                             struct hearth_profile *ret_profile,
                                             struct hearth_err *err)
{
    HEARTH_TRY(scan_events(r, err));
    if (!add_types(r)) {
        return HEARTH_FAIL_ARENA(err, r->arena);
    }

    HEARTH_TRY(read_records(r, err));
    HEARTH_TRY(hearth_line_votes_count(&r->votes, PERF_FORM, err));

    return finish_profile(r, ret_profile, err);
}

enum hearth_status hearth_perf_script_decode(struct hearth_str text, struct hearth_arena *arena,
                                             struct hearth_profile *ret_profile,
                                             struct hearth_perf_notes *ret_notes,
                                             struct hearth_err *err)
{
    struct perf_reader r = {
        .text = text, .arena = arena, .builder = hearth_profile_builder_new(arena)};
    enum hearth_status status;
    if (r.builder == NULL) {
        status = HEARTH_FAIL_ARENA(err, arena);
    } else {
        status = decode_perf_script(&r, ret_profile, err);
    }

    if (status == HEARTH_OK) {
        *ret_notes = r.notes;
    }

    hearth_mem_free(r.frames);
    hearth_mem_free(r.stack);
    hearth_mem_free(r.symbolised);
    hearth_profile_builder_free(r.builder);

    return status;
}
