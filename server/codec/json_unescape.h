/* json_unescape.h -- escapes of JSON strings as UTF-8 (private to codec). */
#ifndef HEARTH_CODEC_JSON_UNESCAPE_H
#define HEARTH_CODEC_JSON_UNESCAPE_H

#include "hearth/base/str.h"

/*
 * Writes the text between two quotes without its escapes to out[text.n]: the result is never
 * longer. Half a surrogate pair and \u0000 become U+FFFD. Returns the length; SIZE_MAX for an
 * unknown escape.
 */
size_t json_unescape(struct hearth_str text, char *out);

#endif
