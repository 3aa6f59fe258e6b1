/*
 * read_dict_load.h -- reading a dictionary from its chunks (private to the room).
 *
 * Threads: a dictionary belongs to one thread while it is loaded.
 */
#ifndef HEARTH_STORE_READ_DICT_LOAD_H
#define HEARTH_STORE_READ_DICT_LOAD_H

#include "hearth/store/store.h"

/* A dictionary and how much of it is loaded. */
struct hearth_loaded_dict {
    struct hearth_dict *dict;
    bool has_tree;                   /* it can be used */
    int32_t last_stack, last_string; /* key of the last applied chunk; -1 before the first */
};

/*
 * Apply the chunks that follow the last one, and extend the name tree. Another tenant's dictionary
 * has no chunks. CORRUPT: a chunk is damaged;
 * the chunks before it are applied, and has_tree may be set.
 */
HEARTH_MUST_CHECK enum hearth_status hearth_read_dict_load(const struct hearth_scope *scope,
                                                           struct hearth_dict_key key,
                                                           struct hearth_loaded_dict *loaded,
                                                           struct hearth_err *err);

#endif
