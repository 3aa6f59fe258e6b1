/* tables.h -- the tables that front.c hands to the transports. Threads: immutable. */
#ifndef HEARTH_FRONT_TABLES_H
#define HEARTH_FRONT_TABLES_H

#include "http/http_call.h"
#include "rpc/method.h"

extern const struct hearth_method_table hearth_method_table;
extern const struct hearth_http_route_table hearth_http_route_table;

#endif
