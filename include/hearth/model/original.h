/*
 * original.h -- a file as its client sent it, kept next to the profiles that were made of it;
 * without its bytes.
 *
 * Threads: plain values.
 */
#ifndef HEARTH_MODEL_ORIGINAL_H
#define HEARTH_MODEL_ORIGINAL_H

#include "hearth/base/str.h"

struct hearth_original {
    int64_t original_no; /* in the database; negative: a file of a task */
    struct hearth_str
        name;        /* as the client said; of a task: the id of its upload, and its format */
    int64_t n_bytes; /* as sent */
    /* What the client said of itself beyond labels: name:value, separated by commas. */
    struct hearth_str client_tags;
};

#endif
