/* client_family.c -- families of clients by the beginning of a name. */
#include "rpc/client_family.h"

#include "hearth/base/metrics.h"

struct client_prefix {
    const char *prefix, *family;
};

static const struct client_prefix g_spies[] = {
    {"gospy", "go"},          {"javaspy", "java"},     {"nodespy", "node"},
    {"pyspy", "python"},      {"rbspy", "ruby"},       {"phpspy", "php"},
    {"pyroscope-rs", "rust"}, {"dotnetspy", "dotnet"}, {"ebpfspy", "ebpf"},
};

/* The first match counts: programs stand before libraries that several programs use. */
static const struct client_prefix g_user_agents[] = {
    {"alloy", "alloy"},        {"grafanaagent", "alloy"}, {"pyroscope/", "profilecli"},
    {"pyroscope-rs", "rust"},  {"hearth", "hearth"},      {"otel", "otel"},
    {"opentelemetry", "otel"}, {"curl/", "curl"},         {"grpc-go", "go"},
    {"connect-go", "go"},      {"go-http-client", "go"},  {"grpc-java", "java"},
    {"apache-http", "java"},   {"okhttp", "java"},        {"java", "java"},
    {"grpc-python", "python"}, {"python", "python"},      {"grpc-node", "node"},
    {"connect-es", "node"},    {"node", "node"},          {"axios", "node"},
    {"grpc-ruby", "ruby"},     {"ruby", "ruby"},          {"faraday", "ruby"},
    {"grpc-dotnet", "dotnet"}, {"dotnet", "dotnet"},      {".net", "dotnet"},
    {"reqwest", "rust"},       {"hyper/", "rust"},        {"grpc-c", "grpc"},
};

static const char *find_client_family(const struct client_prefix *entries, size_t n,
                                      struct hearth_str name)
{
    for (size_t i = 0; i < n; i++) {
        struct hearth_str prefix = hearth_str_c(entries[i].prefix);
        if (name.n >= prefix.n && hearth_str_eq_nocase(hearth_str_n(name.p, prefix.n), prefix)) {
            return entries[i].family;
        }
    }
    return NULL;
}

const char *hearth_client_of_user_agent(struct hearth_str user_agent)
{
    const char *family =
        find_client_family(g_user_agents, HEARTH_ARRAY_LEN(g_user_agents), user_agent);
    return family == NULL ? HEARTH_CLIENT_OTHER : family;
}

const char *hearth_client_of_spy(struct hearth_str spy)
{
    return find_client_family(g_spies, HEARTH_ARRAY_LEN(g_spies), spy);
}

const char *hearth_client_of_language(struct hearth_str language)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_spies); i++) {
        if (hearth_str_eq_c(language, g_spies[i].family)) {
            return g_spies[i].family;
        }
    }

    return NULL;
}

static void declare_refusal_metrics(const char *family)
{
    static const char *const usual[] = {"invalid_argument", HEARTH_UNSUPPORTED_FORMAT,
                                        "resource_exhausted", "unavailable"};
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(usual); i++) {
        hearth_metric_add_labels(HEARTH_M_REJECTED, usual[i], family, 0);
    }
}

void hearth_client_declare_metrics(void)
{
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_spies); i++) {
        declare_refusal_metrics(g_spies[i].family);
    }
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_user_agents); i++) {
        declare_refusal_metrics(g_user_agents[i].family);
    }
    declare_refusal_metrics(HEARTH_CLIENT_OTHER);
    declare_refusal_metrics(HEARTH_CLIENT_TASK);
}
