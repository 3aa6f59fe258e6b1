/* test_secret.c -- secrets: sources, comparison, and what the kernel is told about their pages. */
#include "hearth/base/secret.h"

#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct hearth_secret *make(const char *text)
{
    struct hearth_secret *secret = NULL;
    assert_int_equal(hearth_secret_new(hearth_str_c(text), &secret, NULL), HEARTH_OK);
    return secret;
}

/* Read a secret from a file with these bytes and this mode. */
static enum hearth_status read_from(const char *text, size_t n, mode_t mode,
                                    struct hearth_secret **ret, bool *ret_public,
                                    struct hearth_err *err)
{
    char path[] = "/tmp/test_secret.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n && fchmod(fd, mode) == 0);
    assert_int_equal(close(fd), 0);
    enum hearth_status status = hearth_secret_read(path, ret, ret_public, err);
    assert_int_equal(unlink(path), 0);
    return status;
}

static void an_empty_text_is_not_a_secret(void **state)
{
    (void)state;
    struct hearth_secret *none = make(""), *copy = make("x");

    assert_null(none);
    assert_string_equal(hearth_secret_reveal(NULL), "");
    assert_false(hearth_secret_equals(NULL, HEARTH_STR("")));
    assert_true(hearth_secret_same(NULL, NULL));
    assert_false(hearth_secret_same(NULL, copy));
    hearth_secret_free(none);
    hearth_secret_free(copy);
}

static void secrets_are_compared_by_their_whole_text(void **state)
{
    (void)state;
    struct hearth_secret *secret = make("s3cret"), *copy = NULL, *joined = NULL;

    assert_true(hearth_secret_equals(secret, HEARTH_STR("s3cret")));
    assert_false(hearth_secret_equals(secret, HEARTH_STR("s3cre")));
    assert_false(hearth_secret_equals(secret, HEARTH_STR("s3cret ")));
    assert_false(hearth_secret_equals(secret, HEARTH_STR("")));

    assert_int_equal(hearth_secret_copy(secret, &copy, NULL), HEARTH_OK);
    assert_int_equal(hearth_secret_join(HEARTH_STR("a "), secret, HEARTH_STR(" b"), &joined, NULL),
                     HEARTH_OK);
    assert_true(copy != secret && hearth_secret_same(secret, copy));
    assert_false(hearth_secret_same(secret, joined));
    assert_string_equal(hearth_secret_reveal(joined), "a s3cret b");
    hearth_secret_free(secret);
    hearth_secret_free(copy);
    hearth_secret_free(joined);
}

static void a_nul_or_too_many_bytes_are_refused(void **state)
{
    (void)state;
    struct hearth_secret *secret = NULL;
    static char large[HEARTH_MAX_SECRET_BYTES + 1];

    memset(large, 'x', sizeof large);
    assert_int_equal(hearth_secret_new(HEARTH_STR("a\0b"), &secret, NULL), HEARTH_INVALID_ARGUMENT);
    assert_int_equal(hearth_secret_new(hearth_str_n(large, sizeof large), &secret, NULL),
                     HEARTH_INVALID_ARGUMENT);
    assert_int_equal(hearth_secret_new(hearth_str_n(large, sizeof large - 1), &secret, NULL),
                     HEARTH_OK);
    hearth_secret_free(secret);
}

static void a_file_loses_its_newline_and_its_mode_is_reported(void **state)
{
    (void)state;
    static const char *const texts[] = {"s3cret", "s3cret\n", "s3cret\r\n"};
    bool is_public = false;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        struct hearth_secret *secret = NULL;
        mode_t mode = i == 1 ? 0644 : 0640;
        assert_int_equal(read_from(texts[i], strlen(texts[i]), mode, &secret, &is_public, NULL),
                         HEARTH_OK);
        assert_true(hearth_secret_equals(secret, HEARTH_STR("s3cret")));
        assert_int_equal(is_public, i == 1);
        hearth_secret_free(secret);
    }
}

static void a_file_without_one_line_is_refused_and_not_quoted(void **state)
{
    (void)state;
    static const struct hearth_str texts[] = {
        {"", 0}, {"\n", 1}, {"CANARY\nb", 8}, {"CANARY\0", 7}, {"CANARY\n\n", 8}};
    bool is_public;

    for (size_t i = 0; i < HEARTH_ARRAY_LEN(texts); i++) {
        struct hearth_secret *secret = NULL;
        struct hearth_err err = HEARTH_ERR_INIT;
        assert_int_equal(read_from(texts[i].p, texts[i].n, 0600, &secret, &is_public, &err),
                         HEARTH_INVALID_ARGUMENT);
        assert_non_null(strstr(err.msg, "/tmp/test_secret."));
        assert_null(strstr(err.msg, "CANARY"));
    }

    struct hearth_secret *secret = NULL;
    struct hearth_err err = HEARTH_ERR_INIT;
    assert_int_equal(hearth_secret_read("/nonexistent", &secret, &is_public, &err),
                     HEARTH_INVALID_ARGUMENT);
    assert_string_equal(err.msg, "cannot open the secret's file \"/nonexistent\": "
                                 "No such file or directory");
}

/* The line "VmFlags:" of the mapping that contains the address. */
static void read_vm_flags(const void *at, char flags[256])
{
    FILE *smaps = fopen("/proc/self/smaps", "re");
    char line[512];
    bool is_inside = false;

    flags[0] = '\0';
    assert_non_null(smaps);
    while (fgets(line, sizeof line, smaps) != NULL && flags[0] == '\0') {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
            is_inside = (uintptr_t)at >= from && (uintptr_t)at < to;
        } else if (is_inside && strncmp(line, "VmFlags:", 8) == 0) {
            (void)snprintf(flags, 256, "%.255s", line);
        }
    }
    (void)fclose(smaps);
}

static void pages_of_secrets_are_neither_dumped_nor_inherited(void **state)
{
    (void)state;
    struct hearth_secret *secret = make("s3cret");
    const char *text = hearth_secret_reveal(secret);
    char flags[256];

    read_vm_flags(text, flags);
    assert_non_null(strstr(flags, " dd")); /* left out of core dumps */
    assert_non_null(strstr(flags, " wf")); /* wiped on fork */

    pid_t pid = fork();
    if (pid == 0) {
        _exit(text[0] == '\0' ? 0 : 1);
    }
    int child = -1;
    assert_int_equal(waitpid(pid, &child, 0), pid);
    assert_int_equal(child, 0);
    hearth_secret_free(secret);
}

static void a_file_of_a_container_is_read_by_no_other_user(void **state)
{
    (void)state;

    /* The child has a namespace of processes, whose first process is its own child. */
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) {
            _exit(2);
        }
        pid_t first = fork();
        if (first == 0) {
            struct hearth_secret *secret = NULL;
            bool is_public = true;
            _exit(getpid() == 1 &&
                          read_from("s3cret", 6, 0644, &secret, &is_public, NULL) == HEARTH_OK &&
                          !is_public
                      ? 0
                      : 1);
        }
        int code = -1;
        _exit(first > 0 && waitpid(first, &code, 0) == first && code == 0 ? 0 : 1);
    }
    int child = -1;
    assert_int_equal(waitpid(pid, &child, 0), pid);
    if (WIFEXITED(child) && WEXITSTATUS(child) == 2) {
        print_message("not tested: this user may not make namespaces\n");
        skip();
    }
    assert_int_equal(child, 0);
}

static void a_wiped_text_keeps_nothing(void **state)
{
    (void)state;
    char text[] = "s3cret", tiny[] = "x";

    hearth_secret_wipe(text);
    hearth_secret_wipe(tiny);
    assert_memory_equal(text, "***\0\0\0", 7);
    assert_string_equal(tiny, "*");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_text_is_not_a_secret),
        cmocka_unit_test(secrets_are_compared_by_their_whole_text),
        cmocka_unit_test(a_nul_or_too_many_bytes_are_refused),
        cmocka_unit_test(a_file_loses_its_newline_and_its_mode_is_reported),
        cmocka_unit_test(a_file_without_one_line_is_refused_and_not_quoted),
        cmocka_unit_test(pages_of_secrets_are_neither_dumped_nor_inherited),
        cmocka_unit_test(a_file_of_a_container_is_read_by_no_other_user),
        cmocka_unit_test(a_wiped_text_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
