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
    int64_t original_no;    /* in the database */
    struct hearth_str name; /* as the client said */
    int64_t n_bytes;        /* as sent */
};

#endif
