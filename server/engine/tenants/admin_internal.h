/* admin_internal.h -- the struct shared by admin.c and admin_limits.c (private to the engine). */
#ifndef HEARTH_ENGINE_ADMIN_INTERNAL_H
#define HEARTH_ENGINE_ADMIN_INTERNAL_H

#include "hearth/engine/admin.h"

struct hearth_admin {
    struct hearth_store *store;
};

#endif
