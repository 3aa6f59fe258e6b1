/*
 * profile_text.h -- a decoded profile as text, for golden files and for comparing two profiles.
 *
 * Everything that a hearth_profile holds is in it, one item a line, by index.
 */
#ifndef HEARTH_TESTS_PROFILE_TEXT_H
#define HEARTH_TESTS_PROFILE_TEXT_H

#include "hearth/base/buf.h"
#include "hearth/model/profile.h"

#include <inttypes.h>

static inline void profile_text_index(struct hearth_buf *out, uint32_t index)
{
    if (index == HEARTH_NO_INDEX) {
        hearth_buf_cstr(out, " none");
    } else {
        hearth_buf_printf(out, " %" PRIu32, index);
    }
}

static inline void profile_text_symbols(const struct hearth_profile *p, struct hearth_buf *out)
{
    for (uint32_t i = 0; i < p->n_mappings; i++) {
        const struct hearth_mapping *m = &p->mappings[i];
        hearth_buf_printf(out, "mapping %u: %#" PRIx64 "-%#" PRIx64, i, m->start, m->limit);
        hearth_buf_printf(out, " offset %#" PRIx64 " file %u", m->offset, m->filename);
        hearth_buf_printf(out, " build id %u flags %d%d", m->build_id, m->has_functions,
                          m->has_filenames);
        hearth_buf_printf(out, "%d%d\n", m->has_line_numbers, m->has_inline_frames);
    }
    for (uint32_t i = 0; i < p->n_functions; i++) {
        const struct hearth_function *f = &p->functions[i];
        hearth_buf_printf(out, "function %u: name %u system %u", i, f->name, f->system_name);
        hearth_buf_printf(out, " file %u start %" PRId64 "\n", f->filename, f->start_line);
    }
    for (uint32_t i = 0; i < p->n_locations; i++) {
        const struct hearth_location *l = &p->locations[i];
        hearth_buf_printf(out, "location %u: mapping", i);
        profile_text_index(out, l->mapping);
        hearth_buf_printf(out, " address %#" PRIx64 "%s lines", l->address,
                          l->is_folded ? " folded" : "");
        for (uint32_t k = l->first_line; k < l->first_line + l->n_lines; k++) {
            hearth_buf_printf(out, " %u:%" PRId64, p->lines[k].function, p->lines[k].line);
        }
        hearth_buf_byte(out, '\n');
    }
}

static inline void profile_text_samples(const struct hearth_profile *p, struct hearth_buf *out)
{
    for (uint32_t i = 0; i < p->n_samples; i++) {
        hearth_buf_printf(out, "sample %u: values", i);
        for (uint32_t k = 0; k < p->n_types; k++) {
            hearth_buf_printf(out, " %" PRId64, p->values[(size_t)i * p->n_types + k]);
        }
        hearth_buf_cstr(out, " stack");
        for (uint32_t k = p->stack_first[i]; k < p->stack_first[i + 1]; k++) {
            profile_text_index(out, p->stack_locs[k]);
        }
        for (uint32_t k = p->label_first[i]; k < p->label_first[i + 1]; k++) {
            const struct hearth_sample_label *l = &p->sample_labels[k];
            hearth_buf_printf(out, " label %u=%u/%" PRId64 "/%u", l->key, l->str, l->num,
                              l->num_unit);
        }
        hearth_buf_byte(out, '\n');
    }
}

static inline void profile_text(const struct hearth_profile *p, struct hearth_buf *out)
{
    for (uint32_t i = 0; i < p->n_types; i++) {
        hearth_buf_printf(out, "type %u: %u/%u\n", i, p->types[i].type, p->types[i].unit);
    }
    hearth_buf_printf(out, "period %" PRId64 " of %u/%u", p->period, p->period_type.type,
                      p->period_type.unit);
    hearth_buf_printf(out, ", time %" PRId64 ", duration %" PRId64, p->time_ns, p->duration_ns);
    hearth_buf_printf(out, ", default type %u, doc url %u, comments", p->default_type, p->doc_url);
    for (uint32_t i = 0; i < p->n_comments; i++) {
        hearth_buf_printf(out, " %u", p->comments[i]);
    }
    hearth_buf_byte(out, '\n');
    profile_text_symbols(p, out);
    profile_text_samples(p, out);
    for (uint32_t i = 0; i < p->n_strings; i++) {
        hearth_buf_printf(out, "string %u: ", i);
        hearth_buf_str(out, p->strings[i]);
        hearth_buf_byte(out, '\n');
    }
}

#endif
