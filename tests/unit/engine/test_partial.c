/* test_partial.c -- the note of an answer that leaves out services. Their choice needs Citus: tests/integration/test_citus.py. */
#include "common/partial_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *note_of(const struct hearth_partial *partial)
{
    static char note[HEARTH_PARTIAL_NOTE_BYTES];
    hearth_partial_note(partial, note);
    return note;
}

static void an_answer_with_all_services_has_no_note(void **state)
{
    (void)state;
    struct hearth_partial partial = {.nodes = "db-1:5432", .n_nodes = 1, .n_named_nodes = 1};
    assert_string_equal(note_of(&partial), ""); /* no service of the query lies there */
}

static void the_note_names_the_node_and_the_services(void **state)
{
    (void)state;
    struct hearth_partial partial = {.n_services = 2,
                                     .nodes = "db-1:5432",
                                     .services = "api, shop",
                                     .n_nodes = 1,
                                     .n_named_nodes = 1,
                                     .n_named_services = 2};
    assert_string_equal(note_of(&partial),
                        "partial: the node db-1:5432 does not answer; the answer lacks api, shop");
}

static void names_without_room_are_counted(void **state)
{
    (void)state;
    struct hearth_partial partial = {.n_services = 40,
                                     .nodes = "db-1:5432, db-2:5432",
                                     .services = "api, shop",
                                     .n_nodes = 5,
                                     .n_named_nodes = 2,
                                     .n_named_services = 2};
    assert_string_equal(note_of(&partial),
                        "partial: the nodes db-1:5432, db-2:5432 and 3 more do not answer; the "
                        "answer lacks api, shop and 38 more");

    /* The first name is longer than the room for all. */
    partial.services[0] = '\0';
    partial.n_named_services = 0;
    partial.n_nodes = partial.n_named_nodes = 1;
    (void)snprintf(partial.nodes, sizeof partial.nodes, "db-1:5432");
    assert_string_equal(
        note_of(&partial),
        "partial: the node db-1:5432 does not answer; the answer lacks 40 services");
}

static void the_longest_note_is_not_cut(void **state)
{
    (void)state;
    struct hearth_partial partial = {.n_services = 1000000000000,
                                     .n_nodes = HEARTH_MAX_NODES,
                                     .n_named_nodes = 1,
                                     .n_named_services = 1};
    memset(partial.nodes, 'n', sizeof partial.nodes - 1);
    memset(partial.services, 's', sizeof partial.services - 1);
    const char *end = "s and 999999999999 more";
    const char *note = note_of(&partial);
    assert_string_equal(note + strlen(note) - strlen(end), end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_with_all_services_has_no_note),
        cmocka_unit_test(the_note_names_the_node_and_the_services),
        cmocka_unit_test(names_without_room_are_counted),
        cmocka_unit_test(the_longest_note_is_not_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
