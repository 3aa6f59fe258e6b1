/*
 * noise_answer.h -- the answer that tells changes of a diff from noise, as a message.
 *
 * Threads: one call is one thread.
 */
#ifndef HEARTH_FRONT_NOISE_ANSWER_H
#define HEARTH_FRONT_NOISE_ANSWER_H

#include "hearth/engine/query.h"
#include "hearth/pb/hearth/v1/query.pb-c.h"

#include "rpc/rpc.h"

/* The message, in the call's arena, whose failure the caller finds as with other messages. */
Hearth__V1__DiffNoise *hearth_rpc_diff_noise(struct hearth_rpc *rpc,
                                             const struct hearth_flame_diff *diff,
                                             const struct hearth_diff_noise *noise);

#endif
