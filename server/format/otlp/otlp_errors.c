/* otlp_errors.c -- what is wrong with an export, and where. */
#include "otlp/otlp_scan.h"

#include <stdarg.h>
#include <stdio.h>

enum hearth_status hearth_otlp_damaged(const struct otlp_scan *s, const char *what,
                                       struct pprof_cursor c)
{
    return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                       "not an export of profiles: %s is damaged at byte %zu: %s", what,
                       (size_t)(c.p - s->base), c.why);
}

void hearth_otlp_keep_reason(struct otlp_scan *s, const char *fmt, ...)
{
    if (s->out->first.status != HEARTH_OK) {
        return;
    }

    char why[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    hearth_err_set(&s->out->first, HEARTH_INVALID_ARGUMENT, __FILE__, __LINE__,
                   "resource_profiles[%u].scope_profiles[%u].profiles[%u]%s", s->at_resource,
                   s->at_scope, s->at_profile, why);
}

enum hearth_status hearth_otlp_check_number(const struct otlp_scan *s, const char *what, size_t n)
{
    return n <= HEARTH_OTLP_MAX_PROFILES
               ? HEARTH_OK
               : HEARTH_FAIL(s->err, HEARTH_RESOURCE_EXHAUSTED,
                             "the export has more than %u %s: send fewer at once",
                             HEARTH_OTLP_MAX_PROFILES, what);
}

static const char *const g_table_names[OTLP_N_TABLES] = {
    [OTLP_MAPPINGS] = "mapping_table",   [OTLP_LOCATIONS] = "location_table",
    [OTLP_FUNCTIONS] = "function_table", [OTLP_LINKS] = "link_table",
    [OTLP_STRINGS] = "string_table",     [OTLP_ATTRIBUTES] = "attribute_table",
    [OTLP_STACKS] = "stack_table",
};

enum hearth_status hearth_otlp_damaged_entry(const struct otlp_scan *s, enum otlp_table table,
                                             uint32_t i, struct pprof_cursor c)
{
    char what[64];
    (void)snprintf(what, sizeof what, "dictionary.%s[%u]", g_table_names[table], i);
    return hearth_otlp_damaged(s, what, c);
}

enum hearth_status hearth_otlp_check_reference(const struct otlp_scan *s, enum otlp_table from,
                                               uint32_t i, enum otlp_table to, uint64_t idx)
{
    const struct otlp_dictionary *d = &s->dictionary;
    const uint32_t counts[OTLP_N_TABLES] = {
        [OTLP_MAPPINGS] = d->n_mappings,     [OTLP_FUNCTIONS] = d->n_functions,
        [OTLP_LOCATIONS] = d->n_locations,   [OTLP_STRINGS] = d->n_strings,
        [OTLP_ATTRIBUTES] = d->n_attributes,
    };

    if (HEARTH_LIKELY(idx < counts[to])) {
        return HEARTH_OK;
    }

    return HEARTH_FAIL(s->err, HEARTH_INVALID_ARGUMENT,
                       "dictionary.%s[%u] refers to entry %lld of %s, which has %u",
                       g_table_names[from], i, (long long)idx, g_table_names[to], counts[to]);
}
