/*
 * entity_id.h -- public ids of processes and schedules, as SkyWalking's agents and protocols define
 * them.
 *
 *   service    base64(name) "." "1"                   base64: standard alphabet, padded
 *   instance   service id "_" base64(instance name)
 *   process    hex SHA-256 of: process name "_" instance id
 *   schedule   hex SHA-256 of: task id "_" process id "_" start in milliseconds
 *
 * A blank name counts as "_blank". Ids do not contain the tenant.
 *
 * Threads: pure.
 * Errors:  false if memory was refused; callers bound the names and may retry.
 * Source:  public protocol of Apache SkyWalking; vectors in tests/unit/model/test_entity_id.c.
 */
#ifndef HEARTH_MODEL_ENTITY_ID_H
#define HEARTH_MODEL_ENTITY_ID_H

#include "hearth/base/str.h"

#define HEARTH_ENTITY_HASH_TEXT 64 /* hex digits, without the NUL */

struct hearth_entity_hash {
    char text[HEARTH_ENTITY_HASH_TEXT + 1];
};

HEARTH_MUST_CHECK bool hearth_process_public_id(struct hearth_str service,
                                                struct hearth_str instance,
                                                struct hearth_str process,
                                                struct hearth_entity_hash *ret);
HEARTH_MUST_CHECK bool hearth_schedule_public_id(struct hearth_str task_id,
                                                 struct hearth_str process_id, int64_t start_ms,
                                                 struct hearth_entity_hash *ret);

#endif
