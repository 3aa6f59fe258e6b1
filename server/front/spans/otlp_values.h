/*
 * otlp_values.h -- attributes of OpenTelemetry's protocol as texts.
 *
 * Ownership: texts borrow from the message, or live in the arena.
 * Threads:   pure.
 * Source:    OpenTelemetry specification, "Mapping arbitrary data to OTLP AnyValue", read the other
 *            way.
 */
#ifndef HEARTH_FRONT_OTLP_VALUES_H
#define HEARTH_FRONT_OTLP_VALUES_H

#include "hearth/base/arena.h"
#include "hearth/pb/opentelemetry/proto/common/v1/common.pb-c.h"

/*
 * Numbers and truths as JSON has them, bytes in base64, arrays and maps as JSON. Empty: it has no
 * value; or the arena refused, which it remembers.
 */
struct hearth_str hearth_otlp_text(const Opentelemetry__Proto__Common__V1__AnyValue *value,
                                   struct hearth_arena *arena);

/* The first attribute of a name that has a value, as text; else empty. */
struct hearth_str
hearth_otlp_attribute(Opentelemetry__Proto__Common__V1__KeyValue *const *attributes, size_t n,
                      struct hearth_str name, struct hearth_arena *arena);

#endif
