/*
 * admit.h -- who calls a method, for which tenant, and whether that is allowed.
 *
 * The transports call hearth_front_admit for the head of a request, before its body is read. It
 * computes only: credentials are in memory (engine/access_control.h). A stream that lasts is
 * checked again before each of its messages (hearth_front_readmit), so that a deleted token ends
 * it.
 *
 * Threads: any, a caller's own structs.
 */
#ifndef HEARTH_FRONT_ADMIT_H
#define HEARTH_FRONT_ADMIT_H

#include "hearth/engine/access_control.h"
#include "hearth/front/front.h"

#include "rpc/caller.h"
#include "rpc/method.h"
#include "rpc/tenant.h"

struct hearth_front;

/* What the admission of a request found. Not copied. Released with hearth_admitted_release. */
struct hearth_admitted {
    /*
     * Empty without HEARTH_METHOD_TENANT; several with HEARTH_METHOD_MANY_TENANTS only. Each with
     * the part that the caller may see.
     */
    struct hearth_tenants tenants;
    struct hearth_admission admission;
    struct hearth_arena arena;                 /* of the list of tenants */
    unsigned modes;                            /* of the listener, enum hearth_auth_mode */
    bool is_over_tls;                          /* as the caller says; only to make cookies safer */
    char address[HEARTH_CALLER_ADDRESS_BYTES]; /* of the client */
};

/*
 * Checks whether the caller may use the method, and finds its tenants. ret is filled in place;
 * after an error it holds nothing.
 *
 * Returns  OK; UNIMPLEMENTED for methods that are switched off; UNAUTHENTICATED without a valid
 *          credential, and without a tenant where one is needed; PERMISSION_DENIED;
 *          RESOURCE_EXHAUSTED after too many wrong credentials; INVALID_ARGUMENT for a malformed
 *          tenant; UNAVAILABLE; NO_MEMORY.
 */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_admit(struct hearth_front *front,
                                      const struct hearth_method *method,
                                      struct hearth_front_caller *caller,
                                      struct hearth_admitted *ret, struct hearth_err *err);
/* Checks again, with the credentials that hold now. */
HEARTH_MUST_CHECK
enum hearth_status hearth_front_readmit(const struct hearth_method *method,
                                        struct hearth_admitted *admitted, struct hearth_err *err);
void hearth_admitted_release(struct hearth_admitted *admitted);

#endif
