/*
 * components.h -- names of the libraries that spans identify by number. Threads: safe, because the
 * table is constant. Source: SkyWalking's public list (components.def).
 */
#ifndef HEARTH_FRONT_COMPONENTS_H
#define HEARTH_FRONT_COMPONENTS_H

#include "hearth/base/str.h"

/* The name of a component; empty if the list does not contain the id. The text is static. */
struct hearth_str hearth_component_name(int32_t id);

#endif
