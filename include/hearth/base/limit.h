/*
 * limit.h -- how messages say that a limit can be raised.
 *
 * A refusal names the option of hearthd that sets its limit. The macros below end such a message,
 * so that all of them say the same.
 */
#ifndef HEARTH_BASE_LIMIT_H
#define HEARTH_BASE_LIMIT_H

/* The end of a message about a limit of the server. `option`: a literal, such as "max-samples". */
#define HEARTH_RAISE_OPTION(option) "; raise it with --" option

/* The same for limits that tenants may have themselves (options.def: limits). */
#define HEARTH_RAISE_LIMIT(option) \
    HEARTH_RAISE_OPTION(option) ", or for one tenant with hearth admin limits"

#endif
