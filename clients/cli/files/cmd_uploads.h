/* cmd_uploads.h -- what the commands of `hearth uploads` share. */
#ifndef HEARTH_CLIENTS_CMD_UPLOADS_H
#define HEARTH_CLIENTS_CMD_UPLOADS_H

#include "hearth/pb/hearth/v1/uploads.pb-c.h"

#include "cli.h"
#include "listing.h"

#define CLI_UPLOADS "hearth.v1.UploadService/"

HEARTH_MUST_CHECK enum hearth_status cli_ask_upload(struct cli *cli, const char *id,
                                                    const Hearth__V1__UploadedFile **ret);
/* Asks until the upload is done or has failed. */
HEARTH_MUST_CHECK enum hearth_status cli_wait_for_upload(struct cli *cli,
                                                         const Hearth__V1__UploadedFile **upload);
/* Prints the upload; CLI_FAILED if it has failed. */
enum cli_exit cli_end_upload(struct cli *cli, const Hearth__V1__UploadedFile *upload);
/* Appends what the server counts as dropped, each part after "; ". Equal stacks that are added up are
 * no loss. */
void cli_put_dropped(const char *dropped, struct hearth_buf *out);
/* "cannot <what>: <errno>". */
enum hearth_status cli_fail_file(struct cli *cli, const char *what);
/* Sleeps between two attempts. */
void cli_pause_upload(void);

#endif
