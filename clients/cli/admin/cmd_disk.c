/* cmd_disk.c -- hearth admin disk: estimated bytes on disk of a tenant's services. */
#include "hearth/pb/hearth/v1/disk.pb-c.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "listing.h"
#include "text.h"

#include <inttypes.h>

static void add_service(struct cli_listing *list, const Hearth__V1__ServiceDisk *service,
                        const Hearth__V1__ServiceDisk *total)
{
    const int64_t tiers[] = {service->profiles, service->segments, service->rollups,
                             service->symbols,  service->spans,    service->originals,
                             service->other};

    cli_list_text(list, service->service_name);
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(tiers); i++) {
        cli_list_number(list, tiers[i]);
    }
    cli_list_share(list, (double)service->bytes, (double)total->bytes);
    cli_list_number(list, service->bytes);
}

/* Says below the table what it leaves out, and how far it is measured. */
static void add_disk_foot(struct cli_listing *list, const Hearth__V1__DiskResponse *answer)
{
    char size[48];
    int64_t n_left = answer->total_services - (int64_t)answer->n_services;
    int64_t left = answer->total->bytes;

    for (size_t i = 0; i < answer->n_services; i++) {
        left -= answer->services[i]->bytes;
    }
    if (n_left > 0) {
        cli_value((double)left, HEARTH_STR("bytes"), size);
        hearth_buf_printf(&list->foot, "%" PRId64 " more services: %s; -n 1000 shows up to 1,000\n",
                          n_left, size);
    }
    cli_value((double)answer->total->bytes, HEARTH_STR("bytes"), size);
    hearth_buf_printf(&list->foot, "estimated: %s in all, with indexes and free space", size);
    if (answer->read_percent < 100) {
        hearth_buf_printf(&list->foot, "; extrapolated from %.1f %% of it", answer->read_percent);
    }
    hearth_buf_cstr(&list->foot, "\n");
}

enum cli_exit cli_admin_disk(struct cli *cli)
{
    Hearth__V1__DiskRequest request;
    Hearth__V1__DiskResponse *answer = NULL;

    hearth__v1__disk_request__init(&request);
    request.limit = cli->has_limit ? cli->limit : 0;
    enum hearth_status status = cli_call(cli, "hearth.v1.AdminService/Disk", &request,
                                         &hearth__v1__disk_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "no service has stored anything";
    for (size_t i = 0; i < answer->n_services && answer->total != NULL; i++) {
        add_service(&list, answer->services[i], answer->total);
    }
    if (answer->n_services > 0 && answer->total != NULL) {
        add_disk_foot(&list, answer);
    }

    return cli_list_end(&list, &answer->base);
}
