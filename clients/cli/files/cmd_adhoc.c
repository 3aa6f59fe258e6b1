/*
 * cmd_adhoc.c -- hearth adhoc: files to look at on the web page, which belong to no service.
 *
 * The server keeps them apart from profiles: no query finds them, and each tenant has a small number.
 */
#include "hearth/base/base64.h"
#include "hearth/codec/json_writer.h"
#include "hearth/pb/adhocprofiles/v1/adhocprofiles.pb-c.h"

#include "cli_call.h"
#include "cli_messages.h"
#include "open_profile.h"
#include "page_link.h"
#include "text.h"

#include <limits.h>
#include <stdio.h>

#define ADHOC          "adhocprofiles.v1.AdHocProfileService/"
#define MAX_FILE_BYTES ((size_t)512 << 20) /* the server's limit is smaller, and of its options */

static void put_adhoc_link(const struct cli *cli, const char *id, struct hearth_buf *out)
{
    page_link_begin(cli->url, "adhoc", out);
    page_link_param(out, "ids", hearth_str_c(id));
}

/* ---- list ---- */

static enum cli_exit list_adhoc(struct cli *cli)
{
    Adhocprofiles__V1__AdHocProfilesListRequest request;
    Adhocprofiles__V1__AdHocProfilesListResponse *answer = NULL;

    adhocprofiles__v1__ad_hoc_profiles_list_request__init(&request);
    enum hearth_status status =
        cli_call(cli, ADHOC "List", &request,
                 &adhocprofiles__v1__ad_hoc_profiles_list_response__descriptor, &answer);
    if (status == HEARTH_OK && answer->n_profiles == 0) {
        status = HEARTH_FAIL(&cli->err, HEARTH_NOT_FOUND,
                             "there are no ad hoc profiles: hearth adhoc FILE adds one");
    }
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    for (size_t i = 0; i < answer->n_profiles; i++) {
        char when[32];
        cli_date(answer->profiles[i]->uploaded_at, when);
        hearth_buf_printf(&out, "%s  %s  ", when, answer->profiles[i]->id);
        cli_fit(hearth_str_c(answer->profiles[i]->name), INT_MAX, false, &out);
        hearth_buf_byte(&out, '\n');
    }

    return cli_print_answer(cli, &answer->base, &out);
}

/* ---- upload ---- */

static enum hearth_status upload_adhoc(struct cli *cli, const char *path,
                                       Adhocprofiles__V1__AdHocProfilesGetResponse **ret)
{
    Adhocprofiles__V1__AdHocProfilesUploadRequest request;
    const char *slash = strrchr(path, '/');
    struct hearth_buf file, text;

    hearth_buf_init(&file, MAX_FILE_BYTES);
    hearth_buf_init(&text, 0);
    enum hearth_status status = cli_read_file(cli, path, &file);
    if (status == HEARTH_OK) {
        hearth_base64_encode(hearth_buf_view(&file), &text);
        hearth_buf_byte(&text, '\0');
    }
    hearth_buf_release(&file);
    if (status == HEARTH_OK && hearth_buf_failed(&text)) {
        status = HEARTH_FAIL(&cli->err, HEARTH_NO_MEMORY, "cannot allocate the request");
    }
    if (status == HEARTH_OK) {
        adhocprofiles__v1__ad_hoc_profiles_upload_request__init(&request);
        request.name = cli_field(cli, slash == NULL ? path : slash + 1);
        request.profile = text.p;
        request.max_nodes_presence_case =
            ADHOCPROFILES__V1__AD_HOC_PROFILES_UPLOAD_REQUEST__MAX_NODES_PRESENCE_MAX_NODES;
        request.max_nodes = 1; /* the answer has a flame graph, which is not printed */
        status = cli_call(cli, ADHOC "Upload", &request,
                          &adhocprofiles__v1__ad_hoc_profiles_get_response__descriptor, ret);
    }
    hearth_buf_release(&text);

    return status;
}

static void json_adhoc(const struct cli *cli, const char *path,
                       const Adhocprofiles__V1__AdHocProfilesGetResponse *answer,
                       struct hearth_buf *out)
{
    struct hearth_buf link;
    struct hearth_json json;

    hearth_buf_init(&link, 0);
    put_adhoc_link(cli, answer->id, &link);
    hearth_json_init(&json, out);
    hearth_json_object(&json);
    hearth_json_key_c(&json, "file");
    hearth_json_string_c(&json, path);
    hearth_json_key_c(&json, "id");
    hearth_json_string_c(&json, answer->id);
    hearth_json_key_c(&json, "profileTypes");
    hearth_json_array(&json);
    for (size_t i = 0; i < answer->n_profile_types; i++) {
        hearth_json_string_c(&json, answer->profile_types[i]);
    }
    hearth_json_array_end(&json);
    hearth_json_key_c(&json, "link");
    hearth_json_string(&json, hearth_buf_view(&link));
    hearth_json_object_end(&json);
    hearth_buf_byte(out, '\n');
    hearth_buf_release(&link);
}

static enum cli_exit view_file(struct cli *cli, const char *path)
{
    Adhocprofiles__V1__AdHocProfilesGetResponse *answer = NULL;
    enum hearth_status status = upload_adhoc(cli, path, &answer);

    if (status != HEARTH_OK) {
        hearth_err_prefix(&cli->err, "%s", path);
        return cli_fail(cli, status);
    }

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (cli->output == CLI_JSON) {
        json_adhoc(cli, path, answer, &out);
    } else {
        put_adhoc_link(cli, answer->id, &out);
        hearth_buf_byte(&out, '\n');
    }

    return cli_print(&out);
}

enum cli_exit cli_adhoc(struct cli *cli)
{
    enum cli_exit code = CLI_OK;

    if (cli->n_args == 0) {
        return list_adhoc(cli);
    }

    /* The files are independent: a failure does not stop the others. */
    for (size_t i = 0; i < cli->n_args; i++) {
        enum cli_exit one = view_file(cli, cli->args[i]);
        code = code == CLI_OK ? one : code;
    }

    return code;
}
