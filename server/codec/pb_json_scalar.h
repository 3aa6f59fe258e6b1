/*
 * pb_json_scalar.h -- converts a JSON value to a proto3 scalar (private to codec).
 *
 * Each function returns NULL, or the expected kind of value ("a 32-bit integer").
 */
#ifndef HEARTH_CODEC_PB_JSON_SCALAR_H
#define HEARTH_CODEC_PB_JSON_SCALAR_H

#include "hearth/base/arena.h"

#include "pb_field.h"

#include <jansson.h>

/* For scalars of fixed size except enums: writes pb_value_bytes(type) bytes to `to`. */
const char *pb_scalar_from_json(ProtobufCType type, const json_t *json, void *to);
/* The same for a map key, which is a string in JSON for every type. Not for keys of type string. */
const char *pb_scalar_from_key(ProtobufCType type, struct hearth_str key, void *to);

#endif
