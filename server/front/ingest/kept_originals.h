/*
 * kept_originals.h -- which protocols keep their files as sent, and the names of these files
 * (private to the front; docs/decisions/0029-originals.md).
 *
 * The protocols of the option keep-originals: "datadog", "ingest" (POST /ingest), "push" (push.v1).
 * Threads: pure.
 */
#ifndef HEARTH_FRONT_KEPT_ORIGINALS_H
#define HEARTH_FRONT_KEPT_ORIGINALS_H

#include "hearth/base/arena.h"
#include "hearth/base/status.h"

struct hearth_front;

#define HEARTH_KEPT_DATADOG "datadog"
#define HEARTH_KEPT_INGEST  "ingest"
#define HEARTH_KEPT_PUSH    "push"

/* INVALID_ARGUMENT for a protocol that cannot be kept. The list is NULL-terminated; NULL: none. */
HEARTH_MUST_CHECK
enum hearth_status hearth_kept_protocols_check(const char *const *protocols,
                                               struct hearth_err *err);
/* Whether files of the protocol, one of HEARTH_KEPT_..., are kept. */
bool hearth_front_keeps(const struct hearth_front *front, const char *protocol);

/* A name that a client sent: at most 255 bytes, valid UTF-8, in arena; p is NULL without memory. */
struct hearth_str hearth_original_name_of_client(struct hearth_arena *arena,
                                                 struct hearth_str name);
/*
 * A name for bytes that were sent without one: `plain` and, if they are compressed, the suffix of
 * the compression. In arena; p is NULL without memory.
 */
struct hearth_str hearth_original_name_of_bytes(struct hearth_arena *arena, const char *plain,
                                                struct hearth_str bytes);

#endif
