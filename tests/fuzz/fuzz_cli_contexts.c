/*
 * fuzz_cli_contexts.c -- any bytes as the file of contexts of `hearth`: it is refused with a line, or what it says is
 * written again as a text that says the same.
 */
#include "cli_settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_same_text(const char *a, const char *b)
{
    HEARTH_ASSERT((a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0));
}

static void require_same_context(const struct cli_context *a, const struct cli_context *b)
{
    require_same_text(a->name, b->name);
    HEARTH_ASSERT(a->values[CLI_SETTING_URL] != NULL);
    for (size_t i = 0; i < CLI_N_SETTINGS; i++) {
        require_same_text(a->values[i], b->values[i]);
    }
    HEARTH_ASSERT(a->headers.n == b->headers.n && a->skip_verify == b->skip_verify);
    for (size_t i = 0; i < a->headers.n; i++) {
        struct hearth_header left, right;
        struct hearth_err err = HEARTH_ERR_INIT;
        HEARTH_ASSERT(hearth_header_parse(hearth_str_c(a->headers.v[i]), &left, &err) == HEARTH_OK);
        HEARTH_ASSERT(hearth_header_parse(hearth_str_c(b->headers.v[i]), &right, &err) ==
                      HEARTH_OK);
        HEARTH_ASSERT(hearth_str_eq(left.name, right.name) &&
                      hearth_str_eq(left.value, right.value));
    }
}

static void check_written(const struct cli_contexts *contexts, struct hearth_arena *arena)
{
    struct cli_contexts again = {.n = 0};
    struct hearth_err err = HEARTH_ERR_INIT;
    struct hearth_buf text;

    hearth_buf_init(&text, 0);
    cli_format_contexts(contexts, &text);
    HEARTH_ASSERT(cli_parse_contexts(hearth_buf_view(&text), arena, &again, &err) == HEARTH_OK);
    require_same_text(contexts->current, again.current);
    HEARTH_ASSERT(contexts->n == again.n);
    for (size_t i = 0; i < contexts->n; i++) {
        require_same_context(&contexts->v[i], &again.v[i]);
    }
    hearth_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_arena arena;
    struct cli_contexts contexts = {.n = 0};
    struct hearth_err err = HEARTH_ERR_INIT;

    hearth_arena_init(&arena, 64u << 20);
    if (cli_parse_contexts(hearth_str_n((const char *)data, size), &arena, &contexts, &err) ==
        HEARTH_OK) {
        check_written(&contexts, &arena);
    } else {
        HEARTH_ASSERT(err.msg[0] != '\0');
    }
    hearth_arena_release(&arena);

    return 0;
}
