/*
 * client_family.h -- who sends profiles, in a word that may be the value of a metric's label.
 *
 * The word is one of a closed table, so that clients cannot make new values. Threads: safe.
 * Source: the User-Agent of SDKs and HTTP libraries, the spyName of agents that use /ingest.
 */
#ifndef HEARTH_FRONT_CLIENT_FAMILY_H
#define HEARTH_FRONT_CLIENT_FAMILY_H

#include "hearth/base/str.h"

#define HEARTH_CLIENT_OTHER "other"
#define HEARTH_CLIENT_TASK  "task" /* what a profiling task brought: the engine counts it */
#define HEARTH_UNSUPPORTED_FORMAT \
    "unsupported_format" /* a reason of refusals beside the statuses */

/* "java", "go", "alloy", ..; "other" for what is not in the table. */
const char *hearth_client_of_user_agent(struct hearth_str user_agent);
/* NULL for a spyName that is not in the table. */
const char *hearth_client_of_spy(struct hearth_str spy);
/* Gives every family its lines in hearth_rejected_profiles_total. */
void hearth_client_declare_metrics(void);

#endif
