/* ingest_types.c -- tables of the formats of uploads and of the names of pprofs. */
#include "hearth/format/ingest_types.h"

#include "text/text_bytes.h"

#include <assert.h>

/* ---- formats ---- */

static bool is_media_type(struct hearth_str content_type, struct hearth_str wanted)
{
    size_t n = hearth_str_find(content_type, ';', 0);
    return hearth_str_eq_nocase(hearth_str_trim(hearth_str_n(content_type.p, n)), wanted);
}

enum hearth_ingest_format hearth_ingest_format_of(struct hearth_str format,
                                                  struct hearth_str content_type)
{
    static const struct {
        const char *name;
        enum hearth_ingest_format format;
    } named[] = {
        {"lines", HEARTH_INGEST_LINES},           {"jfr", HEARTH_INGEST_JFR},
        {"speedscope", HEARTH_INGEST_SPEEDSCOPE}, {"groups", HEARTH_INGEST_COLLAPSED},
        {"folded", HEARTH_INGEST_COLLAPSED},      {"collapsed", HEARTH_INGEST_COLLAPSED},
    };

    if (hearth_str_eq_c(format, "trie") ||
        is_media_type(content_type, HEARTH_STR("binary/octet-stream+trie"))) {
        return HEARTH_INGEST_TRIE;
    }

    if (hearth_str_eq_c(format, "tree") ||
        is_media_type(content_type, HEARTH_STR("binary/octet-stream+tree"))) {
        return HEARTH_INGEST_TREE;
    }

    bool is_form = is_media_type(content_type, HEARTH_STR("multipart/form-data"));
    if (hearth_str_eq_c(format, "pprof")) {
        return is_form ? HEARTH_INGEST_MULTIPART : HEARTH_INGEST_PPROF;
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(named); i++) {
        bool is_text = named[i].format == HEARTH_INGEST_COLLAPSED;
        if (hearth_str_eq_c(format, named[i].name) && !(is_text && is_form)) {
            return named[i].format;
        }
    }

    return is_form ? HEARTH_INGEST_MULTIPART : HEARTH_INGEST_UNKNOWN;
}

#define LOOK_BYTES 512u /* of the beginning, to tell text from pprof */

/*
 * Texts have no control bytes; every pprof has some near its beginning: tags, lengths and small
 * numbers.
 */
static bool is_binary(struct hearth_str bytes)
{
    for (size_t i = 0; i < bytes.n && i < LOOK_BYTES; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        if (c < 0x20 && (c < '\t' || c > '\r')) {
            return true;
        }
    }

    return false;
}

enum hearth_ingest_format hearth_ingest_format_of_bytes(struct hearth_str bytes)
{
    struct hearth_str head = hearth_str_trim(hearth_str_n(bytes.p, bytes.n < 64 ? bytes.n : 64));
    struct hearth_str member = {head.p, 0};
    /* JSON, unless it is "{main}", a frame of PHP */
    if (hearth_str_starts(head, HEARTH_STR("{"))) {
        member = hearth_str_trim(hearth_str_n(head.p + 1, head.n - 1));
    }
    if (hearth_str_starts(bytes, HEARTH_STR("FLR\0"))) {
        return HEARTH_INGEST_JFR;
    }
    if (hearth_str_starts(member, HEARTH_STR("\""))) {
        return HEARTH_INGEST_SPEEDSCOPE;
    }

    return is_binary(bytes) && !hearth_text_is_utf16(bytes) ? HEARTH_INGEST_PPROF
                                                            : HEARTH_INGEST_COLLAPSED;
}

/* ---- names of pprof ---- */

/* The name of a sample type: renamed by its cell or, if there are no cells, by our table. */
static struct hearth_str find_display_name(struct hearth_str type,
                                           const struct hearth_json_cell *cells, size_t n_cells)
{
    static const struct {
        const char *type, *name;
    } known[] = {
        {"samples", "cpu"},
        {"goroutine", "goroutines"},
        {"contentions", "mutex_count"},
        {"delay", "mutex_duration"},
    };

    for (size_t i = 0; i < n_cells; i++) {
        if (hearth_str_eq(cells[i].row, type) && cells[i].text.n > 0 &&
            hearth_str_eq_c(cells[i].column, "display-name")) {
            return cells[i].text;
        }
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(known) && n_cells == 0; i++) {
        if (hearth_str_eq_c(type, known[i].type)) {
            return hearth_str_c(known[i].name);
        }
    }

    return type;
}

static bool contains_part(struct hearth_str text, struct hearth_str part)
{
    for (size_t i = 0; i + part.n <= text.n; i++) {
        if (memcmp(text.p + i, part.p, part.n) == 0) {
            return true;
        }
    }

    return false;
}

/* The __name__ that a sample type belongs to, or NULL. */
static const char *find_family(struct hearth_str type)
{
    static const struct {
        struct hearth_str part;
        const char *family;
        bool whole;
    } parts[] = {
        {{"cpu", 3}, "process_cpu", false}, {{"alloc_", 6}, "memory", false},
        {{"inuse_", 6}, "memory", false},   {{"space", 5}, "memory", true},
        {{"objects", 7}, "memory", true},   {{"mutex_", 6}, "mutex", false},
        {{"block_", 6}, "block", false},    {{"goroutines", 10}, "goroutines", false},
    };

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
        if (parts[i].whole ? hearth_str_eq(type, parts[i].part)
                           : contains_part(type, parts[i].part)) {
            return parts[i].family;
        }
    }

    return NULL;
}

struct hearth_str hearth_ingest_pprof_name(const struct hearth_profile *profile,
                                           const struct hearth_json_cell *cells, size_t n_cells)
{
    assert(cells != NULL || n_cells == 0);

    struct hearth_str type = {"", 0};
    for (uint32_t i = 0; i < profile->n_types; i++) {
        if (hearth_str_eq_c(profile->strings[profile->types[i].type], "wall")) {
            return HEARTH_STR("wall");
        }
    }

    for (uint32_t i = 0; i < profile->n_types; i++) {
        type = find_display_name(profile->strings[profile->types[i].type], cells, n_cells);
        const char *name = find_family(type);
        if (name != NULL) {
            return hearth_str_c(name);
        }
    }

    return type;
}
