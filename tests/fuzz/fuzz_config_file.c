/*
 * fuzz_config_file.c -- any bytes as the configuration file of hearthd: each mistake is a sentence, and the printed
 * configuration is a file that means the same.
 */
#include "hearth/app/config.h"

#include "config_options.h"
#include "input_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum hearth_status load(struct hearth_config *config, struct hearth_str text)
{
    static char *const environment[] = {NULL};
    char program[] = "hearthd", option[80];
    char *arguments[] = {program, option};
    struct hearth_err err = HEARTH_ERR_INIT;

    (void)snprintf(option, sizeof option, "--config=%s", write_input_file(text.p, text.n));

    return hearth_config_load(config, HEARTH_ARRAY_LEN(arguments), arguments, environment, &err);
}

/* Secrets are printed as ***. */
static bool has_secret(const struct hearth_config *config)
{
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_option_is_secret(&hearth_options[i]) &&
            hearth_config_is_set(config, hearth_options[i].flag)) {
            return true;
        }
    }

    return false;
}

static void check_printed(const struct hearth_config *config)
{
    struct hearth_config again;
    struct hearth_buf printed, changes;

    hearth_buf_init(&printed, 0);
    hearth_buf_init(&changes, 0);
    hearth_config_print_set(config, &printed);
    HEARTH_ASSERT(load(&again, hearth_buf_view(&printed)) == HEARTH_OK);
    HEARTH_ASSERT(hearth_config_changes(config, &again, true, &changes) == 0);
    HEARTH_ASSERT(hearth_config_changes(config, &again, false, &changes) == 0);
    hearth_config_release(&again);
    hearth_buf_release(&printed);
    hearth_buf_release(&changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hearth_config config;
    struct hearth_str text = {(const char *)data, size};

    if (load(&config, text) != HEARTH_OK) {
        HEARTH_ASSERT(config.n_mistakes > 0);
        for (size_t i = 0; i < config.n_mistakes && i < HEARTH_MAX_MISTAKES; i++) {
            HEARTH_ASSERT(config.mistakes[i][0] != '\0');
        }
    } else if (!config.want_help && !config.want_version && !has_secret(&config)) {
        check_printed(&config);
    }
    hearth_config_release(&config);

    return 0;
}
