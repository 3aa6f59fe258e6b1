/*
 * collapsed.c -- stacks as lines of text.
 *
 * Reading: a line is split at its last space (stack_line.h), its stack at ';' (stack_text.h).
 * Blanks between two ';' are a frame, because real files have such lines with a value.
 *
 * Writing: stacks are collected in a tree of names first, because different locations may have the
 * same name. The written text is read back as the same stacks.
 */
#include "hearth/format/collapsed.h"

#include "hearth/base/mem.h"
#include "hearth/model/stacktree.h"

#include "text/line_votes.h"
#include "text/stack_line.h"
#include "text/stack_text.h"
#include "text/text_bytes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- reading ---- */

struct collapsed_reader {
    struct hearth_stack_text stacks;
    bool has_values; /* "frame;frame 12"; otherwise each line is one sample with the value 1 */
    int64_t factor;  /* of the values */
    struct hearth_line_votes votes;
};

#define NO_STACK "[no stack]"

static const char *name_form(const struct collapsed_reader *r)
{
    return r->has_values ? "of the form \"frame;frame value\"" : "of the form \"frame;frame\"";
}

static enum hearth_status add_collapsed_stack(struct collapsed_reader *r, struct hearth_str line,
                                              const struct hearth_stack_line *parts,
                                              struct hearth_err *err)
{
    bool added;
    int64_t value;

    if (!hearth_stack_line_scale(parts, r->factor, &value)) {
        if (r->factor == 1) {
            return hearth_line_refuse(r->votes.line, line, name_form(r), err);
        }

        return HEARTH_FAIL(err, HEARTH_OUT_OF_RANGE,
                           "the value of line %" PRIu64 " times %" PRId64
                           " (its unit or the sample rate) needs more than 63 bits",
                           r->votes.line, r->factor);
    }

    HEARTH_TRY(hearth_stack_text_add(&r->stacks, parts->stack, value, &added, err));
    if (added) {
        return HEARTH_OK;
    }

    /* Without values, a line without a frame has no content. */
    if (!r->has_values) {
        return hearth_line_refuse(r->votes.line, line, name_form(r), err);
    }

    return hearth_stack_text_add(&r->stacks, HEARTH_STR(NO_STACK), value, &added, err);
}

static enum hearth_status read_collapsed_line(struct collapsed_reader *r, struct hearth_str line,
                                              struct hearth_err *err)
{
    struct hearth_stack_line parts;
    r->votes.line++;

    switch (hearth_stack_line_read(line, r->has_values, &parts)) {
    case HEARTH_LINE_IGNORED:
        return HEARTH_OK;
    case HEARTH_LINE_OTHER:
        return hearth_line_refuse(r->votes.line, line, name_form(r), err);
    case HEARTH_LINE_FOREIGN:
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "line %" PRIu64 " is %s, not a stack trace (\"frame;frame%s\"): "
                           "\"" HEARTH_STR_FMT "\"",
                           r->votes.line, parts.foreign, r->has_values ? " value" : "",
                           HEARTH_STR_ARG(hearth_line_quoted(line)));
    case HEARTH_LINE_DOUBTFUL:
        hearth_line_votes_doubt(&r->votes, r->votes.line, line);
        break;
    case HEARTH_LINE_STACK:
        r->votes.n_understood++;
        break;
    }

    return add_collapsed_stack(r, line, &parts, err);
}

static enum hearth_status read_collapsed_text(struct collapsed_reader *r, struct hearth_str text,
                                              struct hearth_err *err)
{
    if (!hearth_text_to_utf8(text, r->stacks.arena, &text)) {
        return HEARTH_FAIL_ARENA(err, r->stacks.arena);
    }

    for (size_t from = 0; from < text.n;) {
        size_t end = hearth_str_find(text, '\n', from);
        HEARTH_TRY(read_collapsed_line(r, hearth_str_n(text.p + from, end - from), err));
        from = end + 1;
    }

    /* A text of comments alone has no lines that could vote. */
    if (r->votes.n_understood + r->votes.n_doubtful == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the text has no line %s", name_form(r));
    }

    return hearth_line_votes_count(&r->votes, name_form(r), err);
}

static enum hearth_status decode_collapsed(struct collapsed_reader *r, struct hearth_str text,
                                           struct hearth_str type, struct hearth_str unit,
                                           struct hearth_arena *arena,
                                           struct hearth_profile *ret_profile,
                                           struct hearth_err *err)
{
    enum hearth_status status = hearth_stack_text_init(&r->stacks, type, unit, arena, err);
    if (status == HEARTH_OK) {
        status = read_collapsed_text(r, text, err);
    }
    if (status == HEARTH_OK) {
        status = hearth_profile_builder_finish(r->stacks.builder, ret_profile, err);
    }

    hearth_stack_text_release(&r->stacks);

    return status;
}

enum hearth_status hearth_collapsed_decode(struct hearth_str text, struct hearth_str type,
                                           struct hearth_str unit, int64_t factor,
                                           struct hearth_arena *arena,
                                           struct hearth_profile *ret_profile,
                                           struct hearth_err *err)
{
    struct collapsed_reader r = {.has_values = true, .factor = factor};
    return decode_collapsed(&r, text, type, unit, arena, ret_profile, err);
}

enum hearth_status hearth_lines_decode(struct hearth_str text, struct hearth_str type,
                                       struct hearth_str unit, struct hearth_arena *arena,
                                       struct hearth_profile *ret_profile, struct hearth_err *err)
{
    struct collapsed_reader r = {.has_values = false, .factor = 1};
    return decode_collapsed(&r, text, type, unit, arena, ret_profile, err);
}

/* ---- writing ---- */

/* Append a frame; characters that would end it or its line are replaced. */
static void write_frame(struct hearth_str name, struct hearth_buf *out)
{
    name = hearth_frame_shown(name);
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        hearth_buf_byte(out, (unsigned char)(c == ';' ? ':' : c == '\n' || c == '\r' ? ' ' : c));
    }
}

/*
 * Counts of written lines by how they are read back. A stack that would be read as other text gets
 * a leading ';', which such texts do not have and which is not a frame.
 */
struct collapsed_writer {
    struct hearth_buf *out;
    bool marks_doubtful; /* doubtful lines get a leading ';', too */
    uint64_t n_stacks, n_doubtful;
};

/* Append the value to the line that begins at `from`, and mark the line if necessary. */
static void end_line(struct collapsed_writer *w, size_t from, int64_t value)
{
    assert(from <= w->out->n);

    hearth_buf_printf(w->out, " %" PRId64, value);
    if (hearth_buf_failed(w->out)) {
        return;
    }

    struct hearth_stack_line parts;
    struct hearth_str line = hearth_str_n(w->out->p + from, w->out->n - from);
    enum hearth_line_kind kind = hearth_stack_line_read(line, true, &parts);
    bool is_doubtful = kind == HEARTH_LINE_DOUBTFUL;
    w->n_stacks += !is_doubtful;
    w->n_doubtful += is_doubtful;
    bool is_other_text = kind == HEARTH_LINE_IGNORED || kind == HEARTH_LINE_FOREIGN;
    if ((is_other_text || (is_doubtful && w->marks_doubtful)) &&
        hearth_buf_reserve(w->out, 1) != NULL) {
        memmove(w->out->p + from + 1, w->out->p + from, w->out->n - from);
        w->out->p[from] = ';';
        w->out->n++;
    }

    hearth_buf_byte(w->out, '\n');
}

/* Append one line per node with a self value, in order of first appearance. False: no memory. */
static bool write_lines(const struct hearth_stacktree *tree, struct collapsed_writer *w)
{
    HEARTH_CLEANUP(hearth_mem_freep) uint32_t *path = NULL;
    size_t cap = 0;
    if (tree->n_nodes > 0 && tree->nodes[0].self != 0) { /* samples without any frame */
        size_t from = w->out->n;
        hearth_buf_str(w->out, HEARTH_STR(NO_STACK));
        end_line(w, from, tree->nodes[0].self);
    }

    for (size_t i = 1; i < tree->n_nodes; i++) {
        if (tree->nodes[i].self == 0) {
            continue;
        }

        /* The names from the leaf to the root, then written in reverse order. */
        size_t depth = 0, from = w->out->n;
        for (uint32_t at = (uint32_t)i; at != 0; at = tree->nodes[at].parent) {
            if (!hearth_mem_grow(&path, &cap, depth + 1, sizeof *path)) {
                return false;
            }
            path[depth++] = tree->nodes[at].name;
        }

        while (depth > 0) {
            write_frame(tree->names[path[--depth]], w->out);
            if (depth > 0) {
                hearth_buf_byte(w->out, ';');
            }
        }

        end_line(w, from, tree->nodes[i].self);
    }

    return true;
}

/*
 * Append all stacks. Doubtful lines are marked only if there are so many that the whole text would
 * be refused: then all lines are written again.
 */
static bool write_text(const struct hearth_stacktree *tree, struct hearth_buf *out)
{
    size_t from = out->n;
    struct collapsed_writer w = {.out = out};
    if (!write_lines(tree, &w)) {
        return false;
    }
    if (w.n_doubtful <= w.n_stacks || hearth_buf_failed(out)) {
        return true;
    }

    out->n = from;
    w = (struct collapsed_writer){.out = out, .marks_doubtful = true};

    return write_lines(tree, &w);
}

void hearth_collapsed_encode(const struct hearth_profile *profile, uint32_t type_idx,
                             struct hearth_buf *out)
{
    assert(type_idx < profile->n_types);

    struct hearth_arena arena;
    struct hearth_stacktree tree;
    hearth_arena_init(&arena, 0);
    hearth_stacktree_init(&tree, &arena);
    if (hearth_stacktree_add_profile(&tree, profile, type_idx, NULL) != HEARTH_OK ||
        !write_text(&tree, out)) {
        out->failed = true;
    }

    hearth_stacktree_release(&tree);
    hearth_arena_release(&arena);
}
