/*
 * handlers.h -- declares the handlers of all RPCs (methods.def) and plain routes (http_routes.def).
 *
 * A unary handler (UNARY, rpc/unary.h) fills the answer. Any other handler (X) ends its request
 * exactly once; exceptions are HEARTH_METHOD_CHAT and HEARTH_METHOD_COLLECT (rpc/method.h). The
 * files that define handlers include this header, so the compiler checks them against the tables.
 */
#ifndef HEARTH_FRONT_HANDLERS_H
#define HEARTH_FRONT_HANDLERS_H

#include "rpc/method.h"

/* A handler of several methods is declared several times. */
#define X(id, service, method, request, response, handler, pool, right, flags) \
    void handler(struct hearth_rpc *rpc); /* NOLINT(readability-redundant-declaration) */
#define UNARY(id, service, method, request, response, handler, pool, right, flags) \
    hearth_unary_fn handler; /* NOLINT(readability-redundant-declaration) */
#include "methods.def"
#undef X
#undef UNARY

#define X(id, path, methods, handler, pool, right, flags) \
    void handler(struct hearth_rpc *rpc); /* NOLINT(readability-redundant-declaration) */
#include "http_routes.def"
#undef X

#endif
