/*
 * text_profile.c -- recognises the format of a text by the first line that only one format can
 * have.
 */
#include "hearth/format/text_profile.h"

#include "hearth/format/collapsed.h"
#include "hearth/format/perf_script.h"

#include "pprof/pprof_text.h"
#include "text/perf_lines.h"
#include "text/stack_line.h"
#include "text/text_bytes.h"

/* perf indents frames by a tab, but never headers. */
static bool is_perf_header(struct hearth_str line)
{
    struct hearth_perf_header header;
    return line.n > 0 && line.p[0] != '\t' && line.p[0] != '#' &&
           hearth_perf_parse_header(line, &header);
}

static bool is_perf_script(struct hearth_str text)
{
    bool after_mark = false; /* of perf script --header, whose command may have any lines */
    for (size_t from = 0; from < text.n;) {
        size_t end = hearth_str_find(text, '\n', from);
        struct hearth_str line = hearth_str_n(text.p + from, end - from);
        struct hearth_stack_line parts;
        bool is_header = after_mark && hearth_str_starts(line, HEARTH_STR("# captured on"));
        if (is_header || is_perf_header(line)) {
            return true;
        }
        if (hearth_stack_line_read(line, true, &parts) == HEARTH_LINE_STACK) {
            return false;
        }
        after_mark = hearth_perf_is_header_mark(line);
        from = end + 1;
    }

    return false;
}

/* The name of the format if the text is recognised as another one, otherwise NULL. */
static const char *name_known_text(struct hearth_str text)
{
    /* A frame may begin with any of these: "{main}", "[unknown]", "<module>". */
    bool may_be_frame = text.n > 0 && strchr("{[<", text.p[0]) != NULL;
    return may_be_frame ? NULL : hearth_pprof_recognise(text);
}

enum hearth_status hearth_text_decode(struct hearth_str text, struct hearth_str type,
                                      struct hearth_str unit, int64_t factor,
                                      struct hearth_arena *arena,
                                      struct hearth_profile *ret_profile,
                                      struct hearth_text_notes *ret_notes, struct hearth_err *err)
{
    struct hearth_text_notes notes = {0};
    struct hearth_perf_notes perf;

    if (!hearth_text_to_utf8(text, arena, &text)) {
        return HEARTH_FAIL_ARENA(err, arena);
    }

    const char *known = name_known_text(text);
    if (known != NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "neither collapsed stacks nor output of perf script but %s", known);
    }

    notes.is_perf_script = is_perf_script(text);
    if (notes.is_perf_script) {
        HEARTH_TRY(hearth_perf_script_decode(text, arena, ret_profile, &perf, err));
    } else {
        HEARTH_TRY(hearth_collapsed_decode(text, type, unit, factor, arena, ret_profile, err));
    }

    *ret_notes = notes;
    return HEARTH_OK;
}
