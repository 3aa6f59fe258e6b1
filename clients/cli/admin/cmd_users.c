/* cmd_users.c -- hearth admin users. */
#include "cli_call.h"
#include "cli_messages.h"
#include "cmd_access.h"
#include "password.h"

enum cli_exit cli_users_create(struct cli *cli)
{
    Hearth__V1__CreateUserRequest request;
    Hearth__V1__CreateUserResponse *answer = NULL;
    hearth__v1__create_user_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_new_password(cli, &request.password);
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_ACCESS "CreateUser", &request,
                          &hearth__v1__create_user_response__descriptor, &answer);
    }

    return status == HEARTH_OK
               ? cli_print_done(cli, &answer->base,
                                "user %s is created; `hearth admin grants add %s --role viewer` "
                                "gives a role",
                                cli->args[0], cli->args[0])
               : cli_fail(cli, status);
}

enum cli_exit cli_users_password(struct cli *cli)
{
    Hearth__V1__SetPasswordRequest request;
    Hearth__V1__SetPasswordResponse *answer = NULL;
    hearth__v1__set_password_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_new_password(cli, &request.password);
    if (status == HEARTH_OK) {
        status = cli_call(cli, CLI_ACCESS "SetPassword", &request,
                          &hearth__v1__set_password_response__descriptor, &answer);
    }

    return status == HEARTH_OK
               ? cli_print_done(cli, &answer->base,
                                "user %s has a new password; all sessions have ended", cli->args[0])
               : cli_fail(cli, status);
}

static enum cli_exit disable_user(struct cli *cli, bool is_disabled)
{
    Hearth__V1__DisableUserRequest request;
    Hearth__V1__DisableUserResponse *answer = NULL;
    hearth__v1__disable_user_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    request.disabled = is_disabled;
    enum hearth_status status = cli_call(cli, CLI_ACCESS "DisableUser", &request,
                                         &hearth__v1__disable_user_response__descriptor, &answer);

    return status == HEARTH_OK
               ? cli_print_done(cli, &answer->base,
                                is_disabled ? "user %s is disabled; all sessions have ended"
                                            : "user %s may log in again",
                                cli->args[0])
               : cli_fail(cli, status);
}

enum cli_exit cli_users_disable(struct cli *cli)
{
    return disable_user(cli, true);
}

enum cli_exit cli_users_enable(struct cli *cli)
{
    return disable_user(cli, false);
}

enum cli_exit cli_users_delete(struct cli *cli)
{
    Hearth__V1__DeleteUserRequest request;
    Hearth__V1__DeleteUserResponse *answer = NULL;
    hearth__v1__delete_user_request__init(&request);
    request.name = cli_field(cli, cli->args[0]);
    enum hearth_status status = cli_call(cli, CLI_ACCESS "DeleteUser", &request,
                                         &hearth__v1__delete_user_response__descriptor, &answer);

    return status == HEARTH_OK
               ? cli_print_done(cli, &answer->base, "user %s is deleted", cli->args[0])
               : cli_fail(cli, status);
}

enum cli_exit cli_users_list(struct cli *cli)
{
    Hearth__V1__ListUsersRequest request;
    Hearth__V1__ListUsersResponse *answer = NULL;
    hearth__v1__list_users_request__init(&request);
    enum hearth_status status = cli_call(cli, CLI_ACCESS "ListUsers", &request,
                                         &hearth__v1__list_users_response__descriptor, &answer);
    if (status != HEARTH_OK) {
        return cli_fail(cli, status);
    }

    struct cli_listing list;
    cli_list_begin(cli, &list);
    list.empty = "there are no users";
    for (size_t i = 0; i < answer->n_users; i++) {
        const Hearth__V1__User *user = answer->users[i];
        cli_list_text(&list, user->name);
        cli_list_text(&list, user->disabled ? "disabled" : "ok");
        cli_list_time(&list, user->created_ms);
        cli_list_time(&list, user->password_ms);
        cli_list_time(&list, user->last_login_ms);
        cli_list_number(&list, user->sessions);
    }

    return cli_list_end(&list, &answer->base);
}
