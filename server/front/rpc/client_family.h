/*
 * client_family.h -- the kind of client that sends profiles, as a label value of metrics.
 *
 * All values come from a fixed table, so clients cannot create new time series.
 *
 * Threads: safe.
 * Source:  the User-Agent of SDKs and HTTP libraries, the spyName of agents that use /ingest.
 */
#ifndef HEARTH_FRONT_CLIENT_FAMILY_H
#define HEARTH_FRONT_CLIENT_FAMILY_H

#include "hearth/base/str.h"

#define HEARTH_CLIENT_OTHER "other"
#define HEARTH_CLIENT_TASK  "task" /* results of profiling tasks, counted by the engine */

/* A reason for refusing an upload, in addition to the names of statuses. */
#define HEARTH_UNSUPPORTED_FORMAT "unsupported_format"

/* "java", "go", "alloy", ..; "other" for a User-Agent that is not in the table. */
const char *hearth_client_of_user_agent(struct hearth_str user_agent);
/* NULL for a spyName that is not in the table. */
const char *hearth_client_of_spy(struct hearth_str spy);
/* NULL for a name that is not a family of an agent: "go", "java", "node", "python", ... */
const char *hearth_client_of_language(struct hearth_str language);
/* Creates the series of hearth_rejected_profiles_total for every family, with the value 0. */
void hearth_client_declare_metrics(void);

#endif
