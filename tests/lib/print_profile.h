/* print_profile.h -- profiles as text, for golden files. */
#ifndef HEARTH_TESTS_PRINT_PROFILE_H
#define HEARTH_TESTS_PRINT_PROFILE_H

#include "hearth/base/buf.h"
#include "hearth/model/profile.h"

#include <inttypes.h>

/* "root:line;leaf:line"; the address of a location without lines. */
static inline void print_stack(const struct hearth_profile *p, uint32_t sample,
                               struct hearth_buf *out)
{
    for (uint32_t i = p->stack_first[sample + 1]; i > p->stack_first[sample]; i--) {
        const struct hearth_location *l = &p->locations[p->stack_locs[i - 1]];

        hearth_buf_cstr(out, i == p->stack_first[sample + 1] ? "" : ";");
        if (l->n_lines == 0) {
            hearth_buf_printf(out, "0x%" PRIx64, l->address);
            continue;
        }

        const struct hearth_line *line = &p->lines[l->first_line];
        hearth_buf_str(out, p->strings[p->functions[line->function].name]);
        hearth_buf_printf(out, ":%" PRId64, line->line);
    }
}

static inline void print_profile(const char *name, const struct hearth_profile *p,
                                 struct hearth_buf *out)
{
    hearth_buf_printf(out, "%s, period ", name);
    hearth_buf_str(out, p->strings[p->period_type.type]);
    hearth_buf_cstr(out, "/");
    hearth_buf_str(out, p->strings[p->period_type.unit]);
    hearth_buf_printf(out, ", from %" PRId64 " for %" PRId64 "\n", p->time_ns, p->duration_ns);
    for (uint32_t t = 0; t < p->n_types; t++) {
        hearth_buf_cstr(out, "  ");
        hearth_buf_str(out, p->strings[p->types[t].type]);
        hearth_buf_cstr(out, "/");
        hearth_buf_str(out, p->strings[p->types[t].unit]);
    }
    hearth_buf_byte(out, '\n');

    for (uint32_t s = 0; s < p->n_samples; s++) {
        print_stack(p, s, out);
        for (uint32_t t = 0; t < p->n_types; t++) {
            hearth_buf_printf(out, " %" PRId64, p->values[(size_t)s * p->n_types + t]);
        }
        for (uint32_t i = p->label_first[s]; i < p->label_first[s + 1]; i++) {
            const struct hearth_sample_label *l = &p->sample_labels[i];
            hearth_buf_cstr(out, " {");
            hearth_buf_str(out, p->strings[l->key]);
            hearth_buf_printf(out, "=%.*s%" PRId64 "}", (int)p->strings[l->str].n,
                              p->strings[l->str].p, l->num);
        }
        hearth_buf_byte(out, '\n');
    }
}

#endif
