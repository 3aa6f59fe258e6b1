/* test_config.c -- sources, values and printing of options. */
#include "config_load.h"

/* ---- sources ---- */

static void flags_win_over_the_environment_the_file_and_the_default(void **state)
{
    static const char text[] = "max-samples = 11\nmax-points=12\nmax-label-sets = 13\n";
    struct load *l = *state;

    file(l, text, sizeof text - 1);
    env(l, "HEARTH_MAX_POINTS=22");
    env(l, "HEARTH_MAX_LABEL_SETS=23");
    env(l, "PATH=/bin");
    flag(l, "--max-label-sets=33");
    assert_loads(l);
    assert_int_equal(l->config.limits.max_stack_depth, 1000);
    assert_int_equal(l->config.limits.max_samples, 11);
    assert_int_equal(l->config.limits.max_points, 22);
    assert_int_equal(l->config.limits.max_label_sets, 33);
    char *text_out = printed(l);
    char from_file[64];
    (void)snprintf(from_file, sizeof from_file, "  max-samples: 11  # from %s:1\n", l->path);
    assert_non_null(strstr(text_out, from_file));
    assert_non_null(strstr(text_out, "  max-points: 22  # from environment\n"));
    assert_non_null(strstr(text_out, "  max-label-sets: 33  # from flag\n"));
    assert_non_null(strstr(text_out, "  max-stack-depth: 1000\n  max-symbol-bytes"));
    free(text_out);
}

static void the_environment_can_name_the_file_and_a_flag_another(void **state)
{
    struct load *l = *state;

    file(l, "max-samples = 11\n", 17);
    free(l->argv[--l->argc]);
    char variable[64];
    (void)snprintf(variable, sizeof variable, "HEARTH_CONFIG=%s", l->path);
    env(l, variable);
    assert_loads(l);
    assert_int_equal(l->config.limits.max_samples, 11);
    flag(l, "--config");
    flag(l, "/dev/null");
    assert_loads(l);
    assert_int_equal(l->config.limits.max_samples, 1000000);
}

static void variables_of_the_client_are_ignored(void **state)
{
    struct load *l = *state;
    env(l, "HEARTH_URL=http://x:1");
    env(l, "HEARTH_TENANT=t");
    env(l, "HEARTH_TOKEN=hearth_x");
    env(l, "HEARTH_TOKEN_FILE=/x");
    env(l, "HEARTHD=/bin/hearthd");
    assert_loads(l);
}

static void flags_take_their_value_behind_an_equals_sign_or_next(void **state)
{
    struct load *l = *state;

    flag(l, "--data-dir=/a=b");
    flag(l, "--postgres-user");
    flag(l, "--help");
    flag(l, "--multitenancy");
    flag(l, "--insecure-no-auth=no");
    assert_loads(l);
    assert_string_equal(l->config.data_dir, "/a=b");
    assert_string_equal(l->config.postgres_user, "--help");
    assert_false(l->config.want_help);
    assert_true(l->config.front.multitenancy);
    assert_false(l->config.insecure_no_auth);
}

static void switches_set_their_members(void **state)
{
    struct load *l = *state;

    flag(l, "--print-config");
    assert_loads(l);
    assert_true(l->config.want_print && !l->config.want_help && !l->config.want_version);
    flag(l, "-h");
    flag(l, "--version");
    assert_loads(l);
    assert_true(l->config.want_print && l->config.want_help && l->config.want_version);
}

static void help_is_given_although_the_environment_is_wrong(void **state)
{
    struct load *l = *state;
    env(l, "HEARTH_NONSENSE=1");
    flag(l, "--help");
    assert_loads(l);
}

/* ---- values ---- */

static void lists_split_at_commas_and_grow_by_repeated_flags(void **state)
{
    struct load *l = *state;

    env(l, "HEARTH_LISTEN=127.0.0.1:1");
    env(l, "HEARTH_SERVICE_LABELS= a , b,,c ");
    flag(l, "--listen=127.0.0.1:2, 127.0.0.1:3");
    flag(l, "--listen");
    flag(l, "[::1]:4");
    assert_loads(l);
    assert_string_equal(l->config.listen[0], "127.0.0.1:2");
    assert_string_equal(l->config.listen[1], "127.0.0.1:3");
    assert_string_equal(l->config.listen[2], "[::1]:4");
    assert_null(l->config.listen[3]);
    assert_string_equal(l->config.front.listen[2], "[::1]:4");
    assert_string_equal(l->config.service_labels[0], "a");
    assert_string_equal(l->config.service_labels[1], "b");
    assert_string_equal(l->config.service_labels[2], "c");
    assert_null(l->config.service_labels[3]);
    flag(l, "--service-labels=");
    assert_loads(l);
    assert_null(l->config.service_labels[0]);
}

static void bytes_and_durations_have_units(void **state)
{
    struct load *l = *state;

    flag(l, "--max-profile-bytes=3k");
    flag(l, "--max-request-bytes=2M");
    flag(l, "--ingest-rate-bytes=1g");
    flag(l, "--max-symbol-bytes=77");
    flag(l, "--commit-linger=500us");
    flag(l, "--reject-older-than=1d12h");
    flag(l, "--reject-newer-than=0");
    assert_loads(l);
    assert_int_equal(l->config.limits.max_profile_bytes, 3 * 1024);
    assert_int_equal(l->config.limits.max_request_bytes, 2 * 1024 * 1024);
    assert_int_equal(l->config.limits.ingest_rate_bytes, 1024 * 1024 * 1024);
    assert_int_equal(l->config.limits.max_symbol_bytes, 77);
    assert_int_equal(l->config.store.linger_ns, 500000);
    assert_int_equal(l->config.limits.reject_older_than_ns, 36 * 3600 * SECOND);
    assert_int_equal(l->config.limits.reject_newer_than_ns, 0);
}

static void options_that_other_layers_need_are_copied_to_them(void **state)
{
    struct load *l = *state;

    flag(l, "--ingest-threads=3");
    flag(l, "--query-threads=100000");
    flag(l, "--max-request-bytes=1m");
    flag(l, "--max-query-memory-bytes=2m");
    flag(l, "--committers=4");
    flag(l, "--readers=5");
    flag(l, "--max-queue-bytes=6m");
    flag(l, "--statement-timeout=7s");
    flag(l, "--database-url=postgresql://h/db");
    assert_loads(l);
    assert_int_equal(l->config.front.ingest_threads, 3);
    assert_int_equal(l->config.front.query_threads, 4096);
    assert_int_equal(l->config.front.max_request_bytes, 1 << 20);
    assert_int_equal(l->config.front.max_query_memory_bytes, 2 << 20);
    assert_int_equal(l->config.store.n_committers, 4);
    assert_int_equal(l->config.store.max_readers, 5);
    assert_int_equal(l->config.store.max_queue_bytes, 6 << 20);
    assert_int_equal(l->config.store.statement_timeout_ms, 7000);
    assert_string_equal(hearth_secret_reveal(l->config.store.url), "postgresql://h/db");
}

static void wrong_values_are_refused_with_the_expected_form(void **state)
{
    static const struct {
        const char *flag, *message;
    } cases[] = {
        {"--max-samples=-1", "flag: max-samples = \"-1\" is not a whole number"},
        {"--max-samples=1k", "flag: max-samples = \"1k\" is not a whole number"},
        {"--max-samples=", "flag: max-samples = \"\" is not a whole number"},
        {"--max-samples=99999999999999999999",
         "flag: max-samples = \"99999999999999999999\" is not a whole number"},
        {"--max-profile-bytes=1t",
         "flag: max-profile-bytes = \"1t\" is not a number of bytes (64k, 16m, 2g)"},
        {"--max-profile-bytes=9999999999g",
         "flag: max-profile-bytes = \"9999999999g\" is not a number of bytes (64k, 16m, 2g)"},
        {"--max-profile-bytes=k",
         "flag: max-profile-bytes = \"k\" is not a number of bytes (64k, 16m, 2g)"},
        {"--commit-linger=3", "flag: commit-linger = \"3\" is not a duration (500ms, 90s, 2h, 7d)"},
        {"--commit-linger=-3s",
         "flag: commit-linger = \"-3s\" is not a duration (500ms, 90s, 2h, 7d)"},
        {"--multitenancy=maybe", "flag: multitenancy = \"maybe\" is not true or false"},
        {"--data-dir=a\nb", "flag: data-dir = \"a?b\" is not one line of text"},
        {"--listen=", "listen: at least one address is needed"},
        {"--listen=,", "listen: at least one address is needed"},
        {"--log-format=xml", "log-format must be logfmt or json"},
        {"--demangle=yes", "demangle must be full, simple or none"},
        {"--grpc-memory-quota=255m", "grpc-memory-quota must be at least 256m"},
        {"--partition-days-ahead=0", "partition-days-ahead must be 1 to 30"},
        {"--partition-days-ahead=31", "partition-days-ahead must be 1 to 30"},
        {"--readers=1", "committers, commit-rows, max-batch-rows and max-queue-rows must be at "
                        "least 1, readers at "
                        "least 2"},
        {"--nonsense=1", "unknown option \"--nonsense\"; try --help"},
        {"--max-sample=1", "unknown option \"--max-sample\"; did you mean --max-samples?"},
        {"--", "unknown option \"--\"; try --help"},
        {"word", "unexpected argument \"word\"; try --help"},
        {"-x", "unexpected argument \"-x\"; try --help"},
        {"--data-dir", "option \"--data-dir\" needs a value"},
        {"--config=/nonexistent/x",
         "cannot open configuration file \"/nonexistent/x\": No such file or directory"},
        {"--config=/", "cannot read configuration file \"/\": Is a directory"},
    };

    struct load *l = *state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        flag(l, cases[i].flag);
        assert_refused(l, cases[i].message);
        free(l->argv[--l->argc]);
    }
}

static void unknown_variables_are_refused(void **state)
{
    struct load *l = *state;

    env(l, "HEARTH_MAX_SAMPLE=1");
    assert_refused(l, "environment: unknown variable \"HEARTH_MAX_SAMPLE\"; did you mean "
                      "HEARTH_MAX_SAMPLES?");
    free(l->environ[--l->n_environ]);
    env(l, "HEARTH_AN_OPTION_WHOSE_NAME_IS_LONGER_THAN_ANY_NAME_OF_AN_OPTION_COULD_EVER_BE=1");
    assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
    free(l->environ[--l->n_environ]);
    env(l, "HEARTH_MAX_SAMPLES=x");
    assert_refused(l, "environment: max-samples = \"x\" is not a whole number");
}

/* ---- the data directory ---- */

static void the_data_directory_has_a_default_only_without_a_database(void **state)
{
    struct load *l = *state;

    env(l, "HOME=/h/somebody");
    assert_loads(l);
    assert_string_equal(l->config.data_dir,
                        geteuid() == 0 ? "/var/lib/hearth" : "/h/somebody/.local/share/hearth");
    flag(l, "--database-url=postgresql://h/db");
    assert_loads(l);
    assert_string_equal(l->config.data_dir, "");
    flag(l, "--data-dir=/x");
    assert_loads(l);
    assert_string_equal(l->config.data_dir, "/x");
}

/* ---- secrets ---- */

#define PASSWORDS \
    "s3cr3t", "s3/cr3t", "s3@cr3t", "s3:cr3t", "s3?a=cr3t", "s3?cr3t", "s3%40cr3t", "s3'cr3t"

/* All places of a password in a URL or a key=value text, and the masked forms. */
static void a_masked_url_never_contains_the_password(void **state)
{
    static const char *const passwords[] = {PASSWORDS};
    static const struct {
        const char *before, *behind, *masked;
    } forms[] = {
        {"postgresql://u:", "@host:5432/db", "postgresql://u:***@host:5432/db"},
        {"postgres://u:", "@[::1]/db?sslmode=require", NULL},
        {"postgresql://:", "@host/db", "postgresql://:***@host/db"},
        {"postgresql://u:", "@h1:1,h2:2/db", "postgresql://u:***@h1:1,h2:2/db"},
        {"key = postgresql://u:", "@host/db", "key = postgresql://u:***@host/db"},
        {"postgresql://password:", "@host/db", "postgresql://password:***@host/db"},
        {"postgresql://u@host/db?password=", "&sslmode=require", NULL},
        {"postgresql://host/db?a=b&password=", "", "postgresql://host/db?a=b&password=***"},
        {"postgresql://host/db?sslpassword=", "&x=y", "postgresql://host/db?sslpassword=***&x=y"},
        {"host=h password=", " user=u", "host=h password=*** user=u"},
        {"password=", "", "password=***"},
        {"host=h password = ", " user=u", "host=h password = *** user=u"},
        {"password=\"", "\" user=u", "password=*** user=u"},
        {"password=a\\ ", " user=u", "password=*** user=u"},
    };

    struct hearth_arena arena;

    (void)state;
    hearth_arena_init(&arena, 0);
    for (size_t f = 0; f < HEARTH_ARRAY_LEN(forms); f++) {
        for (size_t p = 0; p < HEARTH_ARRAY_LEN(passwords); p++) {
            char text[256];
            (void)snprintf(text, sizeof text, "%s%s%s", forms[f].before, passwords[p],
                           forms[f].behind);
            const char *masked = hearth_config_mask_url(text, &arena);
            assert_non_null(masked);
            if (strstr(masked, "cr3t") != NULL || strstr(masked, "***") == NULL) {
                fail_msg("%s shows as %s", text, masked);
            }
            if (p == 0 && forms[f].masked != NULL) {
                assert_string_equal(masked, forms[f].masked);
            }
        }
    }

    hearth_arena_release(&arena);
}

static void quoted_passwords_are_masked_to_their_closing_quote(void **state)
{
    struct hearth_arena arena;

    (void)state;
    hearth_arena_init(&arena, 0);
    assert_string_equal(hearth_config_mask_url("password='a b\\' c\\\\' user=u", &arena),
                        "password=*** user=u");
    assert_string_equal(hearth_config_mask_url("password='never closed", &arena), "password=***");
    assert_string_equal(hearth_config_mask_url("password=a\\", &arena), "password=***");
    assert_string_equal(
        hearth_config_mask_url("password=one host=h password='two' sslpassword=three", &arena),
        "password=*** host=h password=*** sslpassword=***");
    hearth_arena_release(&arena);
}

static void texts_without_a_password_are_unchanged(void **state)
{
    static const char *const texts[] = {
        "",
        "postgresql://host/db",
        "postgresql://host:5432/db",
        "postgresql://u@host:5432/db?sslmode=require",
        "host=/run/postgresql port=5432 user=u dbname=password",
        "passfile=/h/u/.pgpass",
        "127.0.0.1:4040",
    };

    struct hearth_arena arena;

    (void)state;
    hearth_arena_init(&arena, 0);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        assert_string_equal(hearth_config_mask_url(texts[i], &arena), texts[i]);
    }

    hearth_arena_release(&arena);
}

static void no_message_and_no_print_shows_the_password(void **state)
{
    static const char *const flags[] = {
        "postgresql://u:s3cr3t@host/db", /* without its flag */
        "--database-ur1=postgresql://u:s3cr3t@host/db",
        "--postgresql://u:s3cr3t@host/db",
        "--max-samples=postgresql://u:s3cr3t@host/db",
        "--database-url=postgresql://u:s3cr3t@host/\ndb",
        "--log-format=postgresql://u:s3cr3t@host/db",
    };

    static const char *const lines[] = {
        "database-url postgresql://u:s3cr3t@host/db",
        "postgresql://u:s3cr3t@host/db?x=y",
        "database_url = postgresql://u:s3cr3t@host/db",
    };

    struct load *l = *state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(flags); i++) {
        flag(l, flags[i]);
        assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
        assert_null(strstr(l->err.msg, "s3cr3t"));
        free(l->argv[--l->argc]);
    }

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(lines); i++) {
        file(l, lines[i], strlen(lines[i]));
        assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
        assert_null(strstr(l->err.msg, "s3cr3t"));
        (void)unlink(l->path);
        free(l->argv[--l->argc]);
    }

    flag(l, "--database-url=postgresql://u:s3cr3t@host/db");
    assert_loads(l);
    assert_string_equal(hearth_secret_reveal(l->config.database_url),
                        "postgresql://u:s3cr3t@host/db");
    char *text = printed(l);
    assert_null(strstr(text, "s3cr3t"));
    assert_non_null(strstr(text, "database-url: \"postgresql://u:***@host/db\"  # from"));
    free(text);
}

/* ---- secrets in files ---- */

/* A file with this text and mode; returns its path. */
static const char *secret_file(const char *text, mode_t mode)
{
    static char path[32];
    (void)strcpy(path, "/tmp/test_secret.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    assert_true(fchmod(fd, mode) == 0 && close(fd) == 0);
    return path;
}

static void a_secret_can_be_read_from_a_file(void **state)
{
    struct load *l = *state;
    char option[64];
    const char *path = secret_file("s3cr3t\n", 0600);

    (void)snprintf(option, sizeof option, "--agent-token-file=%s", path);
    flag(l, option);
    assert_loads(l);
    assert_true(hearth_secret_equals(l->config.agent_token, HEARTH_STR("s3cr3t")));
    assert_true(hearth_secret_equals(l->config.front.agents.token, HEARTH_STR("s3cr3t")));
    assert_int_equal(l->config.n_warnings, 0);
    char *text = printed(l);
    assert_null(strstr(text, "s3cr3t"));
    assert_non_null(strstr(text, "  # agent-token: \"***\"  # from agent-token-file\n"));
    free(text);

    /* Everybody can read it. */
    assert_int_equal(chmod(path, 0644), 0);
    assert_loads(l);
    assert_int_equal(l->config.n_warnings, 1);
    assert_non_null(strstr(l->config.warnings[0], "every user of this machine can read"));

    /* Both. */
    env(l, "HEARTH_AGENT_TOKEN=other");
    assert_refused(l, "agent-token (environment) and agent-token-file (flag) are both set; remove "
                      "one of them");
    (void)unlink(path);
}

static void a_secret_can_be_a_credential_of_systemd(void **state)
{
    struct load *l = *state;
    const char *path = secret_file("postgresql://u:s3cr3t@h/db", 0400);
    char option[64];

    (void)snprintf(option, sizeof option, "--database-url-file=credential:%s", path + 5);
    flag(l, option);
    assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(l->err.msg, "CREDENTIALS_DIRECTORY is not set"));
    env(l, "CREDENTIALS_DIRECTORY=/tmp");
    assert_loads(l);
    assert_true(
        hearth_secret_equals(l->config.database_url, HEARTH_STR("postgresql://u:s3cr3t@h/db")));
    assert_ptr_equal(l->config.store.url, l->config.database_url);
    (void)unlink(path);
    assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);

    flag(l, "--agent-token-file=credential:../x");
    assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
}

static void every_secret_has_an_option_for_its_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < hearth_n_options; i++) {
        if (hearth_option_is_secret(&hearth_options[i])) {
            const struct hearth_option *file = hearth_option_find_file(&hearth_options[i]);
            assert_non_null(file);
            assert_int_equal(file->kind, TEXT);
        }
    }
}

static void secrets_are_wiped_from_their_source_and_kept_by_a_reload(void **state)
{
    struct load *l = *state;
    struct hearth_config fresh;
    struct hearth_buf changes;

    flag(l, "--agent-token");
    flag(l, "s3cr3t");
    flag(l, "--database-url=postgresql://u:s3cr3t@h/db");
    flag(l, "--max-samples");
    flag(l, "5");
    env(l, "HEARTH_READ_DATABASE_URL=postgresql://u:s3cr3t@r/db");
    assert_loads(l);
    hearth_config_wipe(l->argc, l->argv, l->environ);
    assert_string_equal(l->argv[2], "***");
    assert_string_equal(l->argv[3], "--database-url=***");
    assert_string_equal(l->argv[5], "5");
    assert_string_equal(l->environ[0], "HEARTH_READ_DATABASE_URL=***");

    /* A reload keeps them. */
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_config_reload(&fresh, &l->config, l->argc, l->argv, l->environ, &err),
                     HEARTH_OK);
    assert_true(hearth_secret_equals(fresh.agent_token, HEARTH_STR("s3cr3t")));
    hearth_buf_init(&changes, 0);
    assert_int_equal(hearth_config_changes(&l->config, &fresh, true, &changes), 0);
    assert_int_equal(hearth_config_changes(&l->config, &fresh, false, &changes), 0);
    assert_int_equal(changes.n, 0);
    hearth_buf_release(&changes);
    hearth_config_release(&fresh);
}

static void rewrite(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static size_t count_changes(const struct hearth_config *a, const struct hearth_config *b, bool live,
                            const char *names)
{
    struct hearth_buf changes;

    hearth_buf_init(&changes, 0);
    size_t n = hearth_config_changes(a, b, live, &changes);
    hearth_buf_byte(&changes, '\0');
    assert_string_equal(changes.p, names);
    hearth_buf_release(&changes);

    return n;
}

static void a_reload_reads_secrets_and_names_those_that_need_a_restart(void **state)
{
    struct load *l = *state;
    struct hearth_config fresh;
    struct hearth_err err = HEARTH_ERR_INIT;

    static const char first[] =
        "agents: {agent-token: one}\ndatabase: {database-url: 'postgresql://u:one@h/db'}\n"
        "listening: {oidc-client-secret: one}\n";

    file(l, first, sizeof first - 1);
    env(l, "HEARTH_OIDC_CLIENT_SECRET=of-the-environment");
    assert_loads(l);
    hearth_config_wipe(l->argc, l->argv, l->environ);

    rewrite(l->path,
            "agents: {agent-token: two}\ndatabase: {database-url: 'postgresql://u:two@h/db'}\n"
            "listening: {oidc-client-secret: two}\n");
    assert_int_equal(hearth_config_reload(&fresh, &l->config, l->argc, l->argv, l->environ, &err),
                     HEARTH_OK);
    assert_true(hearth_secret_equals(fresh.agent_token, HEARTH_STR("two")));
    assert_true(
        hearth_secret_equals(fresh.front.oidc.client_secret, HEARTH_STR("of-the-environment")));
    assert_int_equal(count_changes(&l->config, &fresh, true, "agent-token"), 1);
    assert_int_equal(count_changes(&l->config, &fresh, false, "database-url"), 1);

    /* What is published has the URL of the start. */
    assert_int_equal(hearth_config_keep_start_values(&fresh, &err), HEARTH_OK);
    assert_int_equal(count_changes(&l->config, &fresh, false, ""), 0);
    assert_true(hearth_secret_equals(fresh.store.url, HEARTH_STR("postgresql://u:one@h/db")));
    hearth_config_release(&fresh);

    /* Without the secret, and with the same one twice. */
    rewrite(l->path, "database: {database-url: 'postgresql://u:one@h/db'}\n");
    assert_int_equal(hearth_config_reload(&fresh, &l->config, l->argc, l->argv, l->environ, &err),
                     HEARTH_OK);
    assert_null(fresh.agent_token);
    hearth_config_release(&fresh);
    rewrite(l->path, "agent-token = one\nagent-token = one\n");
    assert_int_equal(hearth_config_reload(&fresh, &l->config, l->argc, l->argv, l->environ, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(err.msg, "agent-token is already set at"));
    hearth_config_release(&fresh);
}

static void a_reload_compares_the_file_of_a_database_url_if_it_can_be_read(void **state)
{
    struct load *l = *state;
    struct hearth_config fresh;
    struct hearth_err err = HEARTH_ERR_INIT;
    const char *path = secret_file("postgresql://u:one@h/db", 0600);
    char option[64];

    (void)snprintf(option, sizeof option, "--database-url-file=%s", path);
    flag(l, option);
    assert_loads(l);
    rewrite(path, "postgresql://u:two@h/db\n");
    assert_int_equal(hearth_config_reload(&fresh, &l->config, l->argc, l->argv, l->environ, &err),
                     HEARTH_OK);
    assert_int_equal(count_changes(&l->config, &fresh, false, "database-url"), 1);
    struct hearth_buf text;
    hearth_buf_init(&text, 0);
    hearth_config_write_differences(&l->config, &fresh, &text);
    hearth_buf_byte(&text, '\0');
    assert_string_equal(text.p, "a restart applies database-url: \"postgresql://u:***@h/db\" "
                                "(database-url-file) instead of \"postgresql://u:***@h/db\"");
    hearth_buf_release(&text);
    hearth_config_release(&fresh);

    /* It is gone: a reload needs it for nothing. */
    (void)unlink(path);
    assert_int_equal(hearth_config_reload(&fresh, &l->config, l->argc, l->argv, l->environ, &err),
                     HEARTH_OK);
    assert_int_equal(count_changes(&l->config, &fresh, false, ""), 0);
    assert_int_equal(fresh.n_warnings, 0);
    hearth_config_release(&fresh);
}

/* ---- printing ---- */

/* Without the comments that name the source of a value. */
static char *without_origins(const char *text)
{
    char *out = calloc(1, strlen(text) + 1);
    size_t n = 0;
    while (*text != '\0') {
        size_t line = strcspn(text, "\n") + 1;
        const char *origin = strstr(text, "  # from ");
        size_t kept = origin != NULL && origin < text + line ? (size_t)(origin - text) : line - 1;
        memcpy(out + n, text, kept);
        out[n + kept] = '\n';
        n += kept + 1;
        text += line;
    }

    return out;
}

/* Also a control, line breaks, the mark of the byte order, and a code that is no character. */
#define SPECIAL "a\\b\t: # c\x7f\xc2\x85\xe2\x80\xa8\xef\xbb\xbf\xef\xbf\xbf\xe2\x82\xac"

static void printed_options_are_read_back_unchanged(void **state)
{
    struct load *l = *state;

    flag(l, "--listen=127.0.0.1:1,[::1]:2");
    flag(l, "--data-dir= \"/a dir\"  ");
    flag(l, "--postgres-bin=\"quoted\"");
    flag(l, "--service-labels=\"a,b\"");
    flag(l, "--postgres-user=" SPECIAL);
    flag(l, "--user=null");
    flag(l, "--commit-linger=1h2m3s4ms5us6ns");
    flag(l, "--reject-older-than=0");
    flag(l, "--max-profile-bytes=3g");
    flag(l, "--multitenancy");
    flag(l, "--database-url=host=/run user=u");
    assert_loads(l);
    assert_string_equal(l->config.data_dir, " \"/a dir\"  ");
    char *text = printed(l), *first = without_origins(text);

    while (l->argc > 1) {
        free(l->argv[--l->argc]);
    }

    file(l, text, strlen(text));
    assert_loads(l);
    assert_string_equal(l->config.data_dir, " \"/a dir\"  ");
    assert_string_equal(l->config.postgres_bin, "\"quoted\"");
    assert_string_equal(l->config.postgres_user, SPECIAL);
    assert_string_equal(l->config.user, "null");
    assert_string_equal(l->config.service_labels[0], "\"a");
    assert_string_equal(l->config.service_labels[1], "b\"");
    assert_int_equal(l->config.store.linger_ns, 3723 * SECOND + 4005006);
    char *again = printed(l), *second = without_origins(again);
    assert_string_equal(first, second);
    free(text);
    free(first);
    free(again);
    free(second);
}

static void printed_defaults_are_read_back_unchanged(void **state)
{
    struct load *l = *state;

    assert_loads(l);
    char *text = printed(l);
    assert_null(strstr(text, "# from"));
    file(l, text, strlen(text));
    assert_loads(l);
    char *again = printed(l), *same = without_origins(again);
    assert_string_equal(text, same);
    free(text);
    free(again);
    free(same);
}

static void help_shows_every_option_with_its_default(void **state)
{
    struct hearth_buf out;

    (void)state;
    hearth_buf_init(&out, 0);
    hearth_config_help(true, &out);
    hearth_buf_byte(&out, '\0');
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *o = &hearth_options[i];
        char line[400];
        if (o->group != NULL) {
            (void)snprintf(line, sizeof line, "\n%s\n", o->group);
        } else {
            (void)snprintf(line, sizeof line, "  --%-26s %s%s%s%s\n", o->flag, o->help,
                           o->def[0] == '\0' ? "" : " [", o->def, o->def[0] == '\0' ? "" : "]");
        }
        assert_non_null(strstr(out.p, line));
    }

    hearth_buf_release(&out);
}

/* ---- the table ---- */

static void every_option_is_named_once_and_explained(void **state)
{
    size_t n_flags = 0;

    (void)state;
    assert_non_null(hearth_options[0].group);
    for (size_t i = 0; i < hearth_n_options; i++) {
        const struct hearth_option *o = &hearth_options[i];
        if (o->group != NULL) {
            continue;
        }

        n_flags++;
        assert_true(strlen(o->help) >= 10);
        assert_true(strlen(o->flag) < 64); /* config.c has so many bytes for a flag */
        assert_int_equal(strspn(o->flag, "abcdefghijklmnopqrstuvwxyz0123456789-."),
                         strlen(o->flag));
        for (size_t k = 0; k < i; k++) {
            if (hearth_options[k].group == NULL) {
                assert_string_not_equal(o->flag, hearth_options[k].flag);
                assert_int_not_equal(o->offset, hearth_options[k].offset);
            }
        }
    }

    assert_true(n_flags > 40);
}

/* Two tables have the defaults of limits: options.def for users, limits.def for the engine. */
static void the_defaults_of_limits_agree_with_the_engine(void **state)
{
    struct load *l = *state;
    struct hearth_limits limits;

    hearth_limits_init(&limits);
    assert_loads(l);
#define X(type, field, def) assert_true(l->config.limits.field == limits.field);
#include "hearth/engine/limits.def"
#undef X
    assert_int_equal(l->config.limits.demangle, limits.demangle);
}

static void every_limit_has_an_option(void **state)
{
    static const size_t offsets[] = {
#define X(type, field, def) offsetof(struct hearth_config, limits.field),
#include "hearth/engine/limits.def"
#undef X
    };
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(offsets); i++) {
        bool found = false;
        for (size_t k = 0; k < hearth_n_options; k++) {
            found = found ||
                    (hearth_options[k].group == NULL && hearth_options[k].offset == offsets[i]);
        }
        assert_true(found);
    }
}

/* ---- limits.profile ---- */

static void the_profile_of_pyroscope_sets_the_defaults_of_pyroscope(void **state)
{
    struct load *l = *state;

    flag(l, "--limits.profile=pyroscope");
    flag(l, "--max-samples=20000");
    env(l, "HEARTH_MAX_QUERY_RANGE=2d");
    assert_loads(l);
    const struct hearth_limits *limits = &l->config.limits;
    assert_int_equal(limits->max_profile_bytes, 4 << 20);
    assert_int_equal(limits->max_label_names, 30);
    assert_int_equal(limits->ingest_rate_bytes, 4 << 20);
    assert_int_equal(limits->ingest_burst_bytes, 2 << 20);
    assert_int_equal(limits->reject_older_than_ns, 3600 * SECOND);
    assert_int_equal(limits->max_query_lookback_ns, 7 * 24 * 3600 * SECOND);
    assert_int_equal(l->config.front.max_request_bytes, 256 << 20);
    assert_int_equal(limits->max_samples, 20000); /* a value that is set overrides the profile */
    assert_int_equal(limits->max_query_range_ns, 2 * 24 * 3600 * SECOND);
    assert_int_equal(limits->max_points, 11000000); /* Pyroscope has no such limit */
}

static void the_profile_may_come_from_the_environment_or_a_file(void **state)
{
    struct load *l = *state;

    env(l, "HEARTH_LIMITS_PROFILE=pyroscope");
    assert_loads(l);
    assert_int_equal(l->config.limits.max_samples, 16000);
    forget(l);
    flag(l, "--limits.profile=hearth");
    assert_loads(l);
    assert_int_equal(l->config.limits.max_samples, 1000000);
}

static void a_third_profile_is_refused(void **state)
{
    struct load *l = *state;
    flag(l, "--limits.profile=generous");
    assert_refused(l, "limits.profile must be hearth or pyroscope");
}

static void the_profile_names_options_with_values_that_they_take(void **state)
{
    static const char *const flags[] = {
#define P(flag, value, theirs) flag,
#include "hearth/app/limits_pyroscope.def"
#undef P
    };
    struct load *l = *state;
    flag(l, "--limits.profile=pyroscope");
    assert_loads(l);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(flags); i++) {
        bool found = false;
        for (size_t k = 0; k < hearth_n_options; k++) {
            if (hearth_options[k].group == NULL && strcmp(hearth_options[k].flag, flags[i]) == 0) {
                found = true;
                assert_string_equal(l->config.origins[k], "limits.profile");
            }
        }
        assert_true(found);
    }
}

/* Every kind of value, and a secret that is printed the same. */
static void differing_options_are_named_in_the_order_of_the_table(void **state)
{
    static const char *const pairs[][2] = {
        {"--database-url=postgresql://h:one@db/h", "--database-url=postgresql://h:two@db/h"},
        {"--max-samples=1", "--max-samples=2"},
        {"--max-profile-bytes=1k", "--max-profile-bytes=2k"},
        {"--reject-older-than=1h", "--reject-older-than=2h"},
        {"--multitenancy", "--multitenancy=no"},
        {"--service-labels=a,b", "--service-labels=a"},
        {"--log-level=info", "--log-level=warn"},
    };

    struct load *l = *state, other = {.argv = {l->argv[0]}, .argc = 1};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(pairs); i++) {
        flag(l, pairs[i][0]);
        flag(&other, pairs[i][1]);
    }

    assert_loads(l);
    assert_loads(&other);

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    assert_int_equal(hearth_config_changes(&l->config, &l->config, false, &out), 0);
    assert_int_equal(out.n, 0);
    assert_int_equal(hearth_config_changes(&l->config, &other.config, false, &out), 3);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, "multitenancy, database-url, service-labels");
    hearth_buf_reset(&out);
    assert_int_equal(hearth_config_changes(&l->config, &other.config, true, &out), 4);
    hearth_buf_byte(&out, '\0');
    assert_string_equal(out.p, "max-profile-bytes, max-samples, reject-older-than, log-level");
    hearth_buf_release(&out);

    forget(&other);
    for (int i = 1; i < other.argc; i++) {
        free(other.argv[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        load_test(a_secret_can_be_read_from_a_file),
        load_test(a_secret_can_be_a_credential_of_systemd),
        load_test(every_secret_has_an_option_for_its_file),
        load_test(secrets_are_wiped_from_their_source_and_kept_by_a_reload),
        load_test(a_reload_reads_secrets_and_names_those_that_need_a_restart),
        load_test(a_reload_compares_the_file_of_a_database_url_if_it_can_be_read),
        load_test(the_profile_of_pyroscope_sets_the_defaults_of_pyroscope),
        load_test(the_profile_may_come_from_the_environment_or_a_file),
        load_test(a_third_profile_is_refused),
        load_test(the_profile_names_options_with_values_that_they_take),
        load_test(flags_win_over_the_environment_the_file_and_the_default),
        load_test(the_environment_can_name_the_file_and_a_flag_another),
        load_test(variables_of_the_client_are_ignored),
        load_test(flags_take_their_value_behind_an_equals_sign_or_next),
        load_test(switches_set_their_members),
        load_test(differing_options_are_named_in_the_order_of_the_table),
        load_test(help_is_given_although_the_environment_is_wrong),
        load_test(lists_split_at_commas_and_grow_by_repeated_flags),
        load_test(bytes_and_durations_have_units),
        load_test(options_that_other_layers_need_are_copied_to_them),
        load_test(wrong_values_are_refused_with_the_expected_form),
        load_test(unknown_variables_are_refused),
        load_test(the_data_directory_has_a_default_only_without_a_database),
        cmocka_unit_test(a_masked_url_never_contains_the_password),
        cmocka_unit_test(quoted_passwords_are_masked_to_their_closing_quote),
        cmocka_unit_test(texts_without_a_password_are_unchanged),
        load_test(no_message_and_no_print_shows_the_password),
        load_test(printed_options_are_read_back_unchanged),
        load_test(printed_defaults_are_read_back_unchanged),
        cmocka_unit_test(help_shows_every_option_with_its_default),
        cmocka_unit_test(every_option_is_named_once_and_explained),
        load_test(the_defaults_of_limits_agree_with_the_engine),
        cmocka_unit_test(every_limit_has_an_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
