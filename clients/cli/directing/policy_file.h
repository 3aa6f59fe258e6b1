/*
 * policy_file.h -- policies in files: SkyWalking's YAML, or the JSON of hearth.v1.Policy, which is YAML, too.
 *
 *   policy: [{type: ON_CPU, checkers: [{type: PROCESS_CPU, threshold: 80, period: 10, count: 3}]}]
 *   {"targets": [{"kind": "ON_CPU", "checkItems": [{"monitor": "PROCESS_CPU", "threshold": "80", ..}]}]}
 *
 * The second may stand below "policy", as in answers. Enums may have their prefix. What a policy means is the server's
 * to check; here only what can be read is.
 *
 * Limits:    1 MiB of text; 64 targets, 64 checkers of a target, 1000 URIs of a checker.
 * Ownership: the answer lives in the arena. Threads: pure.
 * Errors:    INVALID_ARGUMENT with the line; NO_MEMORY.
 */
#ifndef HEARTH_CLIENTS_POLICY_FILE_H
#define HEARTH_CLIENTS_POLICY_FILE_H

#include "hearth/model/policy_rule.h"

#define POLICY_FILE_BYTES ((size_t)1 << 20)

HEARTH_MUST_CHECK
enum hearth_status policy_file_read(struct hearth_str text, struct hearth_arena *arena,
                                    struct hearth_policy_target **ret, size_t *ret_n,
                                    struct hearth_err *err);

#endif
