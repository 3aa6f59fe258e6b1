/*
 * pb_json_scalar.h -- one JSON value as one proto3 scalar. Private to codec.
 *
 * Each returns NULL, or what the value should have been ("a 32-bit integer").
 */
#ifndef HEARTH_CODEC_PB_JSON_SCALAR_H
#define HEARTH_CODEC_PB_JSON_SCALAR_H

#include "hearth/base/arena.h"

#include "pb_field.h"

#include <jansson.h>

/* Scalars of fixed size except enums: into pb_value_bytes(type) bytes at `to`. */
const char *pb_scalar_from_json(ProtobufCType type, const json_t *json, void *to);
/* A map key, which JSON writes as a string whatever its type; strings go through the reader. */
const char *pb_scalar_from_key(ProtobufCType type, struct hearth_str key, void *to);

#endif
