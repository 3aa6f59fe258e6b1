/* fuzz_cli_policy_file.c -- any bytes as a policy: what is read has kinds and monitors that exist. */
#include "policy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct hearth_policy_target *targets;
    struct hearth_err err = HEARTH_ERR_INIT;
    size_t n;
    hearth_arena_init(&arena, 8u << 20);
    struct hearth_str text = {(const char *)data, size};
    if (policy_file_read(text, &arena, &targets, &n, &err) == HEARTH_OK) {
        for (size_t i = 0; i < n; i++) {
            HEARTH_ASSERT(hearth_policy_kind_name(targets[i].kind)[0] != '?');
            for (size_t k = 0; k < targets[i].n_items; k++) {
                HEARTH_ASSERT(hearth_monitor_name(targets[i].items[k].monitor)[0] != '?');
            }
        }
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);
    return 0;
}
