/* cmd_ingest_errors.c -- hearth admin errors: uploads that were refused. */
#include "hearth/pb/hearth/v1/admin.pb-c.h"

#include "ask.h"
#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"

#define ADMIN "hearth.v1.AdminService/"

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

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "no upload was refused";
    for (size_t i = 0; i < answer->n_errors; i++) {
        const Hearth__V1__IngestError *error = answer->errors[i];
        cli_list_time(&list, error->last_ms);
        cli_list_number(&list, error->uploads);
        cli_list_text(&list, error->client);
        cli_list_text(&list, error->route);
        cli_list_text(&list, error->code);
        cli_list_text(&list, error->message);
    }

    return cli_list_end(&list, &answer->base);
}
