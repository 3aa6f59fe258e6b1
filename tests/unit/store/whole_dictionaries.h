/* whole_dictionaries.h -- what must hold of the chunks of dictionaries, whatever happened. */
#ifndef HEARTH_TESTS_UNIT_STORE_WHOLE_DICTIONARIES_H
#define HEARTH_TESTS_UNIT_STORE_WHOLE_DICTIONARIES_H

#include "store_fixture.h"

/* Every chunk continues the one before it. */
static inline void expect_whole_dictionaries(const char *url)
{
    assert_int_equal(
        pg_cluster_int(
            url, "SELECT count(*) FROM (SELECT first_stack, lag(first_stack + n_stacks, 1, 0) OVER"
                 " (PARTITION BY service_id, day, writer_id ORDER BY first_stack) AS want"
                 " FROM hearth_data.dict_chunk) c WHERE first_stack <> want"),
        0);
}

#endif
