/* test_config_file.c -- configuration files: YAML, and lines of "key = value". */
#include "config_load.h"

static void files_have_comments_blank_lines_and_quotes(void **state)
{
    static const char text[] = "# a comment\r\n"
                               "\n"
                               "   # another\n"
                               "max-samples=5\r\n"
                               "\tdata-dir = \"/a dir \" \n"
                               "listen = 127.0.0.1:1, 127.0.0.1:2\n"
                               "database-url = postgresql://h/db?options=a#b\n"
                               "multitenancy = true";
    struct load *l = *state;

    file(l, text, sizeof text - 1);
    assert_loads(l);
    assert_int_equal(l->config.limits.max_samples, 5);
    assert_string_equal(l->config.data_dir, "/a dir ");
    assert_string_equal(l->config.listen[1], "127.0.0.1:2");
    assert_string_equal(hearth_secret_reveal(l->config.database_url),
                        "postgresql://h/db?options=a#b");
    assert_true(l->config.front.multitenancy);
}

static void yaml_files_have_a_section_for_each_group(void **state)
{
    static const char text[] = "# a comment\n"
                               "listening:\n"
                               "  listen: [127.0.0.1:1, \"127.0.0.1:2\"]\n"
                               "  multitenancy: true\n"
                               "ingest:\n"
                               "  max-samples: 5 # the fifth\n"
                               "  max-profile-bytes: 3k\n"
                               "  service-labels: a, b\n"
                               "limits:\n"
                               "  profile: pyroscope\n"
                               "database:\n"
                               "  data-dir: \"/a dir \"\n"
                               "  commit-linger: 7ms\n"
                               "network:\n"
                               "  redact:\n"
                               "    - /a,b/\n"
                               "    - token\n"
                               "queries:\n";
    struct load *l = *state;

    file(l, text, sizeof text - 1);
    assert_loads(l);
    assert_string_equal(l->config.listen[0], "127.0.0.1:1");
    assert_string_equal(l->config.listen[1], "127.0.0.1:2");
    assert_null(l->config.listen[2]);
    assert_true(l->config.front.multitenancy);
    assert_int_equal(l->config.limits.max_samples, 5);
    assert_int_equal(l->config.limits.max_profile_bytes, 3 * 1024);
    assert_string_equal(l->config.service_labels[1], "b");
    assert_string_equal(l->config.limits_profile, "pyroscope");
    assert_string_equal(l->config.data_dir, "/a dir ");
    assert_int_equal(l->config.store.linger_ns, 7000000);
    assert_string_equal(l->config.network.redact[0], "/a,b/");
    assert_string_equal(l->config.network.redact[1], "token");
}

#define SECTIONS                                                                              \
    "; the sections are listening, database, scraping, background, limits, ingest, queries, " \
    "settings, uploads, originals, agents, opentelemetry, policies, network, process"

static void mistakes_in_yaml_are_refused_with_file_and_line(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *message;
    } cases[] = {
        {"ingest:\n  max-sample: 1\n", 2,
         "unknown key \"max-sample\"; did you mean \"max-samples\"?"},
        {"ingest:\n  readers: 3\n", 2,
         "\"readers\" belongs to the section \"database\", not to \"ingest\""},
        {"readers: 3\n", 1, "\"readers\" belongs to the section \"database\""},
        {"\ningets: {}\n", 2, "unknown key \"ingets\"; did you mean \"ingest\"?"},
        {"\nlogs: {}\n", 2, "unknown key \"logs\"" SECTIONS},
        {"? [a]\n: {}\n", 1, "unknown key \"\"" SECTIONS},
        {"ingest:\n\tmax-samples: 5\n", 2,
         "found character that cannot start any token; lines are indented by blanks, not by tabs"},
        {"queries: 5\n", 1,
         "expected the options of the section \"queries\", each on a line \"option: value\""},
        {"ingest:\n  max-samples: many\n", 2, "max-samples = \"many\" is not a whole number"},
        {"ingest:\n  max-samples: [1]\n", 2, "max-samples takes one value, not a list"},
        {"ingest:\n  max-samples: {a: 1}\n", 2, "max-samples takes one value, not a mapping"},
        {"ingest:\n  max-samples:\n", 2, "max-samples has no value; an empty text is written \"\""},
        {"ingest:\n  service-labels: [a, \"\"]\n", 2,
         "item 2 of service-labels = \"\" is not one line of text"},
        {"ingest:\n  service-labels:\n  - [a]\n", 3,
         "the items of service-labels must be texts, each on one line"},
        {"database:\n  data-dir: \"a\\tb\\x01c\"\n", 2,
         "data-dir = \"a?b?c\" is not one line of text"},
        {"database:\n  agent-token: s3cr3t\n", 2,
         "\"agent-token\" belongs to the section \"agents\", not to \"database\""},
        {"ingest:\n  - x\n", 1,
         "expected the options of the section \"ingest\", each on a line \"option: value\""},
        {"- a\n", 1, "expected a mapping"},
        {"ingest: [\n", 2, "did not find expected node content"},
    };
    struct load *l = *state;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(cases); i++) {
        file(l, cases[i].text, strlen(cases[i].text));
        assert_refused_at(l, cases[i].line, cases[i].message);
        (void)remove(l->path);
        free(l->argv[--l->argc]);
    }
}

static void a_repeated_yaml_key_is_refused_with_both_lines(void **state)
{
    static const char twice[] = "ingest:\n  max-samples: 1\n  max-samples: 2\n";
    static const char sections[] = "ingest:\n  max-samples: 1\ningest: {}\n";
    char message[128];
    struct load *l = *state;

    file(l, twice, sizeof twice - 1);
    (void)snprintf(message, sizeof message, "max-samples is already set at %s:2", l->path);
    assert_refused_at(l, 3, message);
    (void)remove(l->path);
    free(l->argv[--l->argc]);
    file(l, sections, sizeof sections - 1);
    (void)snprintf(message, sizeof message, "the section \"ingest\" has already begun at %s:1",
                   l->path);
    assert_refused_at(l, 3, message);
}

static void all_mistakes_are_found_and_the_first_is_the_error(void **state)
{
    static const char text[] = "ingest:\n  max-sample: 1\nqueries: {max-points: x}\n";
    struct load *l = *state;

    file(l, text, sizeof text - 1);
    env(l, "HEARTH_READERS=none");
    flag(l, "--nonsense");
    flag(l, "--log-level=loud");
    assert_refused_at(l, 2, "unknown key \"max-sample\"; did you mean \"max-samples\"?");
    assert_int_equal(l->config.n_mistakes, 5);
    assert_non_null(strstr(l->config.mistakes[1], ":3: max-points = \"x\" is not"));
    assert_string_equal(l->config.mistakes[2],
                        "environment: readers = \"none\" is not a whole number");
    assert_string_equal(l->config.mistakes[3], "unknown option \"--nonsense\"; try --help");
    assert_string_equal(l->config.mistakes[4], "log-level must be debug, info, warn or error");
}

static void more_mistakes_than_are_kept_are_counted(void **state)
{
    struct load *l = *state;
    char text[100 * 6 + 1];

    for (int i = 0; i < 100; i++) {
        (void)snprintf(text + 6 * i, 7, "x%02d=1\n", i);
    }
    file(l, text, sizeof text - 1);
    assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(l->config.n_mistakes, 100);
    assert_non_null(l->config.mistakes[HEARTH_MAX_MISTAKES - 1]);
}

static void unknown_keys_are_refused_with_file_and_line(void **state)
{
    struct load *l = *state;
    file(l, "max-samples = 1\n\nmax-sample = 2\n", 32);
    assert_refused_at(l, 3, "unknown key \"max-sample\"; did you mean \"max-samples\"?");
}

static void lines_that_are_no_pairs_are_refused_with_file_and_line(void **state)
{
    struct load *l = *state;
    file(l, "# x\nreaders = 3\nmultitenancy\n", 29);
    assert_refused_at(l, 3, "expected \"key = value\"");
}

static void lines_that_are_not_utf8_are_refused_with_file_and_line(void **state)
{
    struct load *l = *state;
    file(l, "# any\xf9\ndata-dir = /a\xf9\n", 22);
    assert_refused_at(l, 2, "the line is not UTF-8");
}

static void wrong_values_in_files_are_refused_with_file_and_line(void **state)
{
    struct load *l = *state;
    file(l, "\n\nmax-samples = many\n", 22);
    assert_refused_at(l, 3, "max-samples = \"many\" is not a whole number");
}

static void a_repeated_key_is_refused_with_both_lines(void **state)
{
    char message[128];
    struct load *l = *state;
    file(l, "listen = 127.0.0.1:1\nlisten = 127.0.0.1:2\n", 42);
    (void)snprintf(message, sizeof message, "listen is already set at %s:1", l->path);
    assert_refused_at(l, 2, message);
}

static void files_beyond_a_mebibyte_are_refused(void **state)
{
    struct load *l = *state;
    size_t n = 1024 * 1024;
    char *text = malloc(n);

    memset(text, '\n', n);
    file(l, text, n);
    free(text);
    assert_int_equal(load(l), HEARTH_INVALID_ARGUMENT);
    assert_non_null(strstr(l->err.msg, "is larger than 1 MiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        load_test(files_have_comments_blank_lines_and_quotes),
        load_test(yaml_files_have_a_section_for_each_group),
        load_test(mistakes_in_yaml_are_refused_with_file_and_line),
        load_test(a_repeated_yaml_key_is_refused_with_both_lines),
        load_test(all_mistakes_are_found_and_the_first_is_the_error),
        load_test(more_mistakes_than_are_kept_are_counted),
        load_test(unknown_keys_are_refused_with_file_and_line),
        load_test(lines_that_are_no_pairs_are_refused_with_file_and_line),
        load_test(lines_that_are_not_utf8_are_refused_with_file_and_line),
        load_test(wrong_values_in_files_are_refused_with_file_and_line),
        load_test(a_repeated_key_is_refused_with_both_lines),
        load_test(files_beyond_a_mebibyte_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
