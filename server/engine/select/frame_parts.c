/* frame_parts.c -- names the rows of tables that a frame belongs to (contract: frame_parts.h). */
#include "select/frame_parts.h"

#include "hearth/model/symbol_parts.h"

#include <assert.h>

struct hearth_dict_frame hearth_dict_frame_at(const struct hearth_dict *dict,
                                              const struct hearth_location *location, uint32_t i)
{
    assert(i < location->n_lines || i == 0);

    if (location->n_lines == 0) {
        return (struct hearth_dict_frame){location, HEARTH_NO_INDEX, 0};
    }

    const struct hearth_line *line = &dict->lines[location->first_line + i];
    return (struct hearth_dict_frame){location, line->function, line->line};
}

const struct hearth_mapping *hearth_dict_frame_mapping(const struct hearth_dict *dict,
                                                       const struct hearth_dict_frame *frame)
{
    uint32_t mapping = frame->location->mapping;
    return mapping == HEARTH_NO_INDEX ? NULL : &dict->mappings[mapping];
}

static struct hearth_str find_mapping_file(const struct hearth_dict *dict,
                                           const struct hearth_dict_frame *frame)
{
    const struct hearth_mapping *mapping = hearth_dict_frame_mapping(dict, frame);
    return mapping == NULL ? HEARTH_STR("") : dict->strings[mapping->filename];
}

struct hearth_str hearth_dict_frame_name(const struct hearth_dict *dict,
                                         const struct hearth_dict_frame *frame,
                                         char out[HEARTH_FRAME_NAME_BYTES])
{
    if (frame->function != HEARTH_NO_INDEX) {
        return hearth_frame_shown(dict->strings[dict->functions[frame->function].name]);
    }

    if (frame->location->n_lines > 0) {
        return HEARTH_FRAME_UNKNOWN;
    }

    const struct hearth_mapping *mapping = hearth_dict_frame_mapping(dict, frame);
    return hearth_str_n(out,
                        hearth_frame_name(frame->location->address, mapping, dict->strings, out));
}

struct hearth_str hearth_dict_frame_library(const struct hearth_dict *dict,
                                            const struct hearth_dict_frame *frame)
{
    return hearth_symbol_library(find_mapping_file(dict, frame));
}

struct hearth_str hearth_dict_frame_kind(const struct hearth_dict *dict,
                                         const struct hearth_dict_frame *frame)
{
    struct hearth_str name = HEARTH_STR(""), file = HEARTH_STR("");

    if (frame->function != HEARTH_NO_INDEX) {
        name = dict->strings[dict->functions[frame->function].name];
        file = dict->strings[dict->functions[frame->function].filename];
    }

    return hearth_symbol_kind(name, file, find_mapping_file(dict, frame));
}

size_t hearth_dict_function_bytes(const struct hearth_dict *dict, uint32_t function)
{
    const struct hearth_function *f = &dict->functions[function];
    return HEARTH_SYMBOL_PART_BYTES(dict->strings[f->name], dict->strings[f->filename]);
}

struct hearth_str hearth_dict_function_row(const struct hearth_dict *dict, uint32_t function,
                                           enum hearth_top_kind kind, char *room)
{
    const struct hearth_function *f = &dict->functions[function];
    struct hearth_str name = dict->strings[f->name], file = dict->strings[f->filename];

    switch (kind) {
    case HEARTH_TOP_CLASS:
        return hearth_symbol_class(name, file, room);
    case HEARTH_TOP_PACKAGE:
        return hearth_symbol_package(name, file, room);
    case HEARTH_TOP_DIRECTORY:
        return hearth_symbol_directory(file);
    case HEARTH_TOP_FILE:
        return file;
    case HEARTH_TOP_FUNCTION:
    case HEARTH_TOP_LINE:
    case HEARTH_TOP_MODULE:
    case HEARTH_TOP_THREAD:
    case HEARTH_TOP_FRAME_KIND:
        break;
    }

    HEARTH_BUG("a row that the function does not determine");
}
