/*
 * merged_profile.h -- merged profiles of a query, and files of them.
 */
#ifndef HEARTH_CLIENTS_MERGED_PROFILE_H
#define HEARTH_CLIENTS_MERGED_PROFILE_H

#include "hearth/model/profile.h"

#include "cli.h"

/* Asks for the merged profile of the query: *ret_wire is its encoded form, both are in the arena. n_samples is 0 if
 * there is no data. */
HEARTH_MUST_CHECK enum hearth_status cli_ask_merged(struct cli *cli, const char **ret_type,
                                                    struct hearth_str *ret_wire,
                                                    struct hearth_profile *ret_profile);
/* Asks for it and prints it as -o says: pprof, collapsed stacks, JSON, pictures. */
enum cli_exit cli_put_merged(struct cli *cli);
/* A profile.proto message into the file of -o pprof=FILE, gzipped. */
enum cli_exit cli_save_pprof(struct cli *cli, struct hearth_str wire, uint32_t n_samples);

#endif
