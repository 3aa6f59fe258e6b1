/*
 * otlp_values.h -- attributes of OpenTelemetry's protocol as texts.
 *
 * Ownership: texts borrow from the message, or live in the arena.
 * Threads:   pure.
 * Source:    OpenTelemetry specification, "Mapping arbitrary data to OTLP AnyValue", in reverse.
 */
#ifndef HEARTH_FRONT_OTLP_VALUES_H
#define HEARTH_FRONT_OTLP_VALUES_H

#include "hearth/base/arena.h"
#include "hearth/pb/opentelemetry/proto/common/v1/common.pb-c.h"

/*
 * A value as text: strings as they are, numbers and booleans as in JSON, bytes in base64, arrays
 * and maps as JSON. Empty: value is NULL or has no value, or the arena has refused memory
 * (arena->refused).
 */
struct hearth_str hearth_otlp_text(const Opentelemetry__Proto__Common__V1__AnyValue *value,
                                   struct hearth_arena *arena);

/*
 * The value of the first of n attributes that has this name and a text that is not empty. Empty: no
 * attribute has, or the arena has refused memory.
 */
struct hearth_str
hearth_otlp_attribute(Opentelemetry__Proto__Common__V1__KeyValue *const *attributes, size_t n,
                      struct hearth_str name, struct hearth_arena *arena);

#endif
