/* json_number.h -- numbers of JSON text as integers, without floating point (private to codec). */
#ifndef HEARTH_CODEC_JSON_NUMBER_H
#define HEARTH_CODEC_JSON_NUMBER_H

#include "hearth/base/str.h"

/* The length of the number that the text begins with; 0 if it begins with none. */
size_t json_number_measure(struct hearth_str text);

/*
 * A measured number times factor (1 to 10^18), rounded to the nearest integer, halves away from 0;
 * digits after the 19th count as 0. ret_is_exact may be NULL; false: something was rounded. Returns
 * false if the result exceeds 64 bits.
 */
bool json_number_scale(struct hearth_str number, int64_t factor, int64_t *ret, bool *ret_is_exact);

#endif
