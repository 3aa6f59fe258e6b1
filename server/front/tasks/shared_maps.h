/*
 * shared_maps.h -- maps of structs that services of several files and rooms answer. Threads:
 * constants.
 */
#ifndef HEARTH_FRONT_SHARED_MAPS_H
#define HEARTH_FRONT_SHARED_MAPS_H

#include "rpc/message_map.h"

/* struct hearth_property to hearth.v1.Property. */
extern const struct hearth_message_map hearth_property_map;
/* struct hearth_process to hearth.v1.Process. */
extern const struct hearth_message_map hearth_process_map;
/* struct hearth_captured_event to hearth.v1.SpanAttachedEventInfo. */
extern const struct hearth_message_map hearth_captured_event_map;

#endif
