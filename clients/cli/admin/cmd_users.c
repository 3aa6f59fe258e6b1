/* cmd_users.c -- hearth admin users. */
#include "cmd_access.h"

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

static void print_user(const Hearth__V1__User *user, struct hearth_buf *out)
{
    char created[32], password[32], login[32], sessions[32];

    cli_date(user->created_ms, created);
    cli_date_or_never(user->password_ms, password);
    cli_date_or_never(user->last_login_ms, login);
    cli_count(user->sessions, sessions);
    cli_fit(hearth_str_c(user->name), 24, true, out);
    hearth_buf_printf(out, "  %-8s  %-20s  %-20s  %-20s  %8s\n", user->disabled ? "disabled" : "ok",
                      created, password, login, sessions);
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

    struct hearth_buf out;
    hearth_buf_init(&out, 0);
    if (answer->n_users == 0) {
        hearth_buf_cstr(&out, "there are no users\n");
    } else {
        hearth_buf_printf(&out, "%-24s  %-8s  %-20s  %-20s  %-20s  %8s\n", "user", "state",
                          "created", "password set", "last log-in", "sessions");
    }
    for (size_t i = 0; i < answer->n_users; i++) {
        print_user(answer->users[i], &out);
    }

    return cli_print_answer(cli, &answer->base, &out);
}
