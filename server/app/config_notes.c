/* config_notes.c -- mistakes and warnings of a configuration, which are reported together. */
#include "config_options.h"

void hearth_config_note(struct hearth_config *config, enum hearth_status status,
                        const struct hearth_err *why)
{
    if (status == HEARTH_OK) {
        return;
    }

    if (config->n_mistakes == 0) {
        config->first_mistake = *why;
    }
    if (config->n_mistakes < HEARTH_MAX_MISTAKES) {
        const char *text = hearth_arena_printf(&config->arena, "%s", why->msg);
        config->mistakes[config->n_mistakes] = text == NULL ? "there is no memory" : text;
    }
    config->n_mistakes++;
}

void hearth_config_warn(struct hearth_config *config, const char *text)
{
    if (text != NULL && config->n_warnings < HEARTH_ARRAY_LEN(config->warnings)) {
        config->warnings[config->n_warnings++] = text;
    }
}
