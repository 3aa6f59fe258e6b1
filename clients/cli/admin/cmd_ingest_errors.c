/* cmd_ingest_errors.c -- hearth admin errors: uploads that were refused. */
#include "hearth/base/clock.h"
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "cli.h"

#define ADMIN "hearth.v1.AdminService/"

static void print_error(const Hearth__V1__IngestError *error, struct hearth_buf *out)
{
    char last[64], uploads[48];

    cli_date(error->last_ms, last);
    cli_count(error->uploads, uploads);
    hearth_buf_printf(out, "%-19s %8s  ", last, uploads);
    cli_fit(hearth_str_c(error->client), 10, false, out);
    hearth_buf_cstr(out, "  ");
    cli_fit(hearth_str_c(error->route), 60, false, out);
    hearth_buf_printf(out, "\n    %s: ", error->code);
    cli_fit(hearth_str_c(error->message), 512, false, out);
    hearth_buf_cstr(out, "\n");
}

enum cli_exit cli_admin_errors(struct cli *cli)
{
    Hearth__V1__IngestErrorsRequest request;
    Hearth__V1__IngestErrorsResponse *answer = NULL;

    hearth__v1__ingest_errors_request__init(&request);
    enum hearth_status status = HEARTH_OK;
    if (cli->since != NULL || cli->from != NULL) {
        status = cli_resolve_range(cli);
        request.from_ms = cli->from_ms;
    }
    request.limit = cli->has_limit ? cli->limit : 0;
    if (status == HEARTH_OK) {
        status = cli_call(cli, ADMIN "IngestErrors", &request,
                          &hearth__v1__ingest_errors_response__descriptor, &answer);
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (answer->n_errors == 0) {
        hearth_buf_cstr(&out, "no upload was refused\n");
    } else {
        hearth_buf_printf(&out, "%-19s %8s  %-10s  %s\n", "latest", "uploads", "client", "route");
    }
    for (size_t i = 0; i < answer->n_errors; i++) {
        print_error(answer->errors[i], &out);
    }

    return cli_print_answer(cli, &answer->base, &out);
}
