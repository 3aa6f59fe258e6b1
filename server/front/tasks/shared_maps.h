/*
 * shared_maps.h -- maps of structs that services of several files and rooms answer. Threads:
 * constants.
 */
#ifndef HEARTH_FRONT_SHARED_MAPS_H
#define HEARTH_FRONT_SHARED_MAPS_H

#include "rpc/message_map.h"

/* struct hearth_captured_event to hearth.v1.SpanAttachedEventInfo. */
extern const struct hearth_message_map hearth_captured_event_map;

#endif
