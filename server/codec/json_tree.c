/*
 * json_tree.c -- jansson with limits.
 *
 * Each element of "[[],[],…]" takes 3 bytes as text and some 130 as a tree, so the size limit of
 * the body does not bound memory. Therefore every block has a header with its size and is charged
 * to a budget of the thread.
 */
#include "json_tree.h"

#include "hearth/base/mem.h"

#include <assert.h>
#include <pthread.h>

#define HEADER_BYTES 16u /* preserves malloc's alignment */

static _Thread_local size_t g_budget;   /* bytes that the tree of this thread may still allocate */
static _Thread_local bool g_refused;    /* an allocation of this tree was refused */
static _Thread_local bool g_over_limit; /* it would have exceeded the budget */

static void *alloc_for_tree(size_t n_bytes)
{
    char *block = NULL;
    g_over_limit = n_bytes > SIZE_MAX - HEADER_BYTES || n_bytes + HEADER_BYTES > g_budget;
    if (!g_over_limit) {
        block = hearth_mem_alloc(n_bytes + HEADER_BYTES);
    }

    if (block == NULL) {
        g_refused = true;
        return NULL;
    }

    size_t taken = n_bytes + HEADER_BYTES;
    memcpy(block, &taken, sizeof taken);
    g_budget -= taken;

    return block + HEADER_BYTES;
}

static void free_for_tree(void *ptr)
{
    if (ptr == NULL) {
        return;
    }

    char *block = (char *)ptr - HEADER_BYTES;
    size_t taken;
    memcpy(&taken, block, sizeof taken);
    assert(taken >= HEADER_BYTES);
    g_budget += taken;
    hearth_mem_free(block);
}

static void set_jansson_allocator(void)
{
    json_set_alloc_funcs(alloc_for_tree, free_for_tree);
}

/* Counts brackets outside strings. jansson recurses once per level, up to 2,048 levels. */
static bool is_too_deep(struct hearth_str text, unsigned max_depth, size_t *ret_at)
{
    unsigned depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > max_depth) {
                *ret_at = i;
                return true;
            }
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
    }

    return false;
}

enum hearth_status json_tree_parse(struct hearth_str text, unsigned max_depth, size_t max_bytes,
                                   json_t **ret_tree, struct hearth_err *err)
{
    assert(max_depth > 0 && ret_tree != NULL);

    static pthread_once_t g_once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&g_once, set_jansson_allocator);
    size_t at;
    if (text.n == 0) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "the JSON body is empty");
    }

    if (is_too_deep(text, max_depth, &at)) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT,
                           "invalid JSON at byte %zu: nested deeper than %u levels", at, max_depth);
    }

    /* One tree at a time: the budget belongs to this call until json_tree_free. */
    g_budget = max_bytes == 0 ? SIZE_MAX : max_bytes;
    g_refused = g_over_limit = false;
    json_error_t why;
    json_t *tree = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &why);
    if (tree == NULL && g_refused) {
        return HEARTH_FAIL(err, HEARTH_NO_MEMORY,
                           "JSON body of %zu bytes needs more than its memory limit of %zu bytes",
                           text.n, max_bytes);
    }

    if (tree == NULL) {
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "invalid JSON at line %d, column %d: %s",
                           why.line, why.column, why.text);
    }

    if (!json_is_object(tree)) {
        json_tree_free(tree);
        return HEARTH_FAIL(err, HEARTH_INVALID_ARGUMENT, "invalid JSON: an object is expected");
    }

    *ret_tree = tree;
    return HEARTH_OK;
}

bool json_tree_is_over_limit(void)
{
    return g_refused && g_over_limit;
}

void json_tree_free(json_t *tree)
{
    json_decref(tree);
}
