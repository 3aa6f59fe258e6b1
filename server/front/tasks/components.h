/* components.h -- what the numbers of libraries in spans mean. Threads: pure. Source: SkyWalking's
 * public list. */
#ifndef HEARTH_FRONT_COMPONENTS_H
#define HEARTH_FRONT_COMPONENTS_H

#include "hearth/base/str.h"

/* Empty: not one of the list. */
struct hearth_str hearth_component_name(int32_t id);

#endif
