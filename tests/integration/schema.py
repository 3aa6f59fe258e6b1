"""The messages of the public API as tables, read from its description and not from proto/; JSON and wire out of them.

A message is {field name in JSON: value}: integers, floats, bytes and texts as Python's, enums by name, default values absent
(those of optional fields stay). to_json and from_json follow proto3's JSON mapping, encode and decode the wire format.
"""

import base64
import re
import struct

import wire

# number, then rep or opt, type, name; a name with a dot before it is a message of the same package.
TEXT = """
types.v1.LabelPair: 1 string name; 2 string value
types.v1.Labels: 1 rep LabelPair labels
types.v1.ProfileType: 1 string ID; 2 string name; 4 string sample_type; 5 string sample_unit; 6 string period_type; 7 string period_unit
types.v1.Series: 1 rep LabelPair labels; 2 rep Point points
types.v1.Point: 1 double value; 2 int64 timestamp; 3 rep ProfileAnnotation annotations; 4 rep Exemplar exemplars
types.v1.ProfileAnnotation: 1 string key; 2 string value
types.v1.Exemplar: 1 int64 timestamp; 2 string profile_id; 3 string span_id; 4 int64 value; 5 rep LabelPair labels; 6 string trace_id
types.v1.LabelValuesRequest: 1 string name; 2 rep string matchers; 3 int64 start; 4 int64 end
types.v1.LabelValuesResponse: 1 rep string names
types.v1.LabelNamesRequest: 1 rep string matchers; 2 int64 start; 3 int64 end
types.v1.LabelNamesResponse: 1 rep string names
types.v1.StackTraceSelector: 1 rep Location call_site; 2 GoPGO go_pgo
types.v1.Location: 1 string name
types.v1.GoPGO: 1 uint32 keep_locations; 2 bool aggregate_callees
types.v1.GetProfileStatsRequest:
types.v1.GetProfileStatsResponse: 1 bool data_ingested; 2 int64 oldest_profile_time; 3 int64 newest_profile_time
types.v1.HeatmapSeries: 1 rep LabelPair labels; 2 rep HeatmapSlot slots
types.v1.HeatmapSlot: 1 int64 timestamp; 2 rep double y_min; 3 rep int32 counts; 4 rep Exemplar exemplars
google.v1.Profile: 1 rep ValueType sample_type; 2 rep Sample sample; 3 rep Mapping mapping; 4 rep Location location; 5 rep Function function; 6 rep string string_table; 7 int64 drop_frames; 8 int64 keep_frames; 9 int64 time_nanos; 10 int64 duration_nanos; 11 ValueType period_type; 12 int64 period; 13 rep int64 comment; 14 int64 default_sample_type
google.v1.ValueType: 1 int64 type; 2 int64 unit
google.v1.Sample: 1 rep uint64 location_id; 2 rep int64 value; 3 rep Label label
google.v1.Label: 1 int64 key; 2 int64 str; 3 int64 num; 4 int64 num_unit
google.v1.Mapping: 1 uint64 id; 2 uint64 memory_start; 3 uint64 memory_limit; 4 uint64 file_offset; 5 int64 filename; 6 int64 build_id; 7 bool has_functions; 8 bool has_filenames; 9 bool has_line_numbers; 10 bool has_inline_frames
google.v1.Location: 1 uint64 id; 2 uint64 mapping_id; 3 uint64 address; 4 rep Line line; 5 bool is_folded
google.v1.Line: 1 uint64 function_id; 2 int64 line
google.v1.Function: 1 uint64 id; 2 int64 name; 3 int64 system_name; 4 int64 filename; 5 int64 start_line
push.v1.PushRequest: 1 rep RawProfileSeries series
push.v1.RawProfileSeries: 1 rep types.v1.LabelPair labels; 2 rep RawSample samples; 3 rep types.v1.ProfileAnnotation annotations
push.v1.RawSample: 1 bytes raw_profile; 2 string ID
push.v1.PushResponse:
querier.v1.ProfileTypesRequest: 1 int64 start; 2 int64 end
querier.v1.ProfileTypesResponse: 1 rep types.v1.ProfileType profile_types
querier.v1.SeriesRequest: 1 rep string matchers; 2 rep string label_names; 3 int64 start; 4 int64 end
querier.v1.SeriesResponse: 2 rep types.v1.Labels labels_set
querier.v1.SelectMergeStacktracesRequest: 1 string profile_typeID; 2 string label_selector; 3 int64 start; 4 int64 end; 5 opt int64 max_nodes; 6 enum:ProfileFormat format; 7 types.v1.StackTraceSelector stack_trace_selector; 8 rep string profile_id_selector; 9 AsyncQueryRequest async; 10 rep string trace_id_selector; 11 rep string span_selector
querier.v1.AsyncQueryRequest: 1 string request_id; 2 enum:AsyncQueryType type
querier.v1.SelectMergeStacktracesResponse: 1 FlameGraph flamegraph; 2 bytes tree; 3 string dot; 5 PprofProfile pprof
querier.v1.PprofProfile: 1 google.v1.Profile profile
querier.v1.FlameGraph: 1 rep string names; 2 rep Level levels; 3 int64 total; 4 int64 max_self
querier.v1.Level: 1 rep int64 values
querier.v1.SelectMergeProfileRequest: 1 string profile_typeID; 2 string label_selector; 3 int64 start; 4 int64 end; 5 opt int64 max_nodes; 6 types.v1.StackTraceSelector stack_trace_selector; 7 rep string profile_id_selector; 8 rep string trace_id_selector
querier.v1.SelectSeriesRequest: 1 string profile_typeID; 2 string label_selector; 3 int64 start; 4 int64 end; 5 rep string group_by; 6 double step; 7 opt enum:types.v1.TimeSeriesAggregationType aggregation; 8 types.v1.StackTraceSelector stack_trace_selector; 9 opt int64 limit; 10 enum:types.v1.ExemplarType exemplar_type
querier.v1.SelectSeriesResponse: 1 rep types.v1.Series series
querier.v1.SelectMergeSpanProfileRequest: 1 string profile_typeID; 2 string label_selector; 3 rep string span_selector; 4 int64 start; 5 int64 end; 6 opt int64 max_nodes; 7 enum:ProfileFormat format
querier.v1.SelectMergeSpanProfileResponse: 1 FlameGraph flamegraph; 2 bytes tree
querier.v1.SelectHeatmapRequest: 1 string profile_typeID; 2 string label_selector; 3 int64 start; 4 int64 end; 5 double step; 6 rep string group_by; 7 enum:HeatmapQueryType query_type; 8 enum:types.v1.ExemplarType exemplar_type; 9 opt int64 limit
querier.v1.SelectHeatmapResponse: 1 rep types.v1.HeatmapSeries series
querier.v1.DiffRequest: 1 SelectMergeStacktracesRequest left; 2 SelectMergeStacktracesRequest right
querier.v1.DiffResponse: 1 FlameGraphDiff flamegraph
querier.v1.FlameGraphDiff: 1 rep string names; 2 rep Level levels; 3 int64 total; 4 int64 max_self; 5 int64 leftTicks; 6 int64 rightTicks
querier.v1.AnalyzeQueryRequest: 2 int64 start; 3 int64 end; 4 string query
querier.v1.AnalyzeQueryResponse: 1 rep QueryScope query_scopes; 2 QueryImpact query_impact
querier.v1.QueryScope: 1 string component_type; 2 uint64 component_count; 3 uint64 block_count; 4 uint64 series_count; 5 uint64 profile_count; 6 uint64 sample_count; 7 uint64 index_bytes; 8 uint64 profile_bytes; 9 uint64 symbol_bytes
querier.v1.QueryImpact: 2 uint64 total_bytes_in_time_range; 3 uint64 total_queried_series; 4 bool deduplication_needed
capabilities.v1.GetFeatureFlagsRequest:
capabilities.v1.GetFeatureFlagsResponse: 1 rep FeatureFlag feature_flags
capabilities.v1.FeatureFlag: 1 string name; 2 bool enabled; 3 opt string description; 4 opt string documentation_url
settings.v1.GetSettingsRequest:
settings.v1.GetSettingsResponse: 1 rep Setting settings
settings.v1.SetSettingsRequest: 1 Setting setting
settings.v1.SetSettingsResponse: 1 Setting setting
settings.v1.DeleteSettingsRequest: 1 string name
settings.v1.DeleteSettingsResponse:
settings.v1.Setting: 1 string name; 2 string value; 3 int64 modifiedAt
settings.v1.GetRecordingRuleRequest: 1 string id
settings.v1.GetRecordingRuleResponse: 1 RecordingRule rule
settings.v1.ListRecordingRulesRequest:
settings.v1.ListRecordingRulesResponse: 1 rep RecordingRule rules
settings.v1.UpsertRecordingRuleRequest: 1 string id; 2 string metric_name; 3 rep string matchers; 4 rep string group_by; 5 rep types.v1.LabelPair external_labels; 6 int64 generation; 7 opt StacktraceFilter stacktrace_filter
settings.v1.UpsertRecordingRuleResponse: 1 RecordingRule rule
settings.v1.DeleteRecordingRuleRequest: 1 string id
settings.v1.DeleteRecordingRuleResponse:
settings.v1.RecordingRule: 1 string id; 2 string metric_name; 3 string profile_type; 4 rep string matchers; 5 rep string group_by; 6 rep types.v1.LabelPair external_labels; 7 int64 generation; 8 opt StacktraceFilter stacktrace_filter; 9 bool provisioned
settings.v1.StacktraceFilter: 1 opt StacktraceFilterFunctionName function_name
settings.v1.StacktraceFilterFunctionName: 1 string function_name; 2 enum:MetricType metric_type
adhocprofiles.v1.AdHocProfilesUploadRequest: 1 string name; 2 string profile; 3 opt int64 max_nodes
adhocprofiles.v1.AdHocProfilesGetRequest: 1 string id; 2 opt string profile_type; 3 opt int64 max_nodes
adhocprofiles.v1.AdHocProfilesGetResponse: 1 string id; 2 string name; 3 int64 uploaded_at; 4 string profile_type; 5 rep string profile_types; 6 string flamebearer_profile
adhocprofiles.v1.AdHocProfilesListRequest:
adhocprofiles.v1.AdHocProfilesListResponse: 1 rep AdHocProfilesProfileMetadata profiles
adhocprofiles.v1.AdHocProfilesProfileMetadata: 1 string id; 2 string name; 3 int64 uploaded_at
adhocprofiles.v1.AdHocProfilesDiffRequest: 1 string left_id; 2 string right_id; 3 opt string profile_type; 4 opt int64 max_nodes
adhocprofiles.v1.AdHocProfilesDiffResponse: 1 rep string profile_types; 2 string flamebearer_profile
version.v1.VersionRequest:
version.v1.VersionResponse: 1 uint64 QuerierAPI
grpc.health.v1.HealthCheckRequest: 1 string service
grpc.health.v1.HealthCheckResponse: 1 enum:ServingStatus status
"""

ENUMS = {
    "querier.v1.ProfileFormat": [
        "PROFILE_FORMAT_UNSPECIFIED", "PROFILE_FORMAT_FLAMEGRAPH", "PROFILE_FORMAT_TREE", "PROFILE_FORMAT_DOT", "PROFILE_FORMAT_PPROF",
    ],
    "querier.v1.AsyncQueryType": ["ASYNC_QUERY_TYPE_DISABLED", "ASYNC_QUERY_TYPE_FORCE"],
    "querier.v1.HeatmapQueryType": ["HEATMAP_QUERY_TYPE_UNSPECIFIED", "HEATMAP_QUERY_TYPE_INDIVIDUAL", "HEATMAP_QUERY_TYPE_SPAN"],
    "types.v1.TimeSeriesAggregationType": ["TIME_SERIES_AGGREGATION_TYPE_SUM", "TIME_SERIES_AGGREGATION_TYPE_AVERAGE"],
    "types.v1.ExemplarType": ["EXEMPLAR_TYPE_UNSPECIFIED", "EXEMPLAR_TYPE_NONE", "EXEMPLAR_TYPE_INDIVIDUAL", "EXEMPLAR_TYPE_SPAN"],
    "settings.v1.MetricType": ["TOTAL"],
    "grpc.health.v1.ServingStatus": ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"],
}


class Field:
    def __init__(self, package, text):
        number, *words = text.split()
        self.number, self.proto_name = int(number), words.pop()
        self.repeated, self.optional = words[0] == "rep", words[0] == "opt"
        kind = words[-1]
        self.enum = kind.startswith("enum:")
        self.kind = kind.removeprefix("enum:")
        if self.enum or self.kind[0].isupper() or "." in self.kind:
            self.kind = self.kind if "." in self.kind else package + "." + self.kind
        self.message = "." in self.kind and not self.enum
        self.name = re.sub("_(.)", lambda m: m.group(1).upper(), self.proto_name)


def _read():
    messages = {}
    for line in TEXT.strip().splitlines():
        name, fields = line.split(":", 1)
        package = name.rsplit(".", 1)[0]
        messages[name] = [Field(package, f) for f in fields.split(";") if f.strip()]
    return messages


MESSAGES = _read()


def _is_default(value):
    return value in ("", b"", 0, [], False) or value is None


# ---- the wire ----


def encode(message, value):
    known = {f.name: f for f in MESSAGES[message]}
    assert set(value) <= set(known), "%s has no field %s" % (message, set(value) - set(known))
    out = []
    for name, given in value.items():
        field = known[name]
        if field.repeated and not field.message and field.kind not in ("string", "bytes"):
            if field.kind == "double":
                out.append((field.number, b"".join(struct.pack("<d", v) for v in given)))
            elif given:
                out.append((field.number, ("packed", [_number(field, v) for v in given])))
            continue
        for one in given if field.repeated else [given]:
            out.append((field.number, encode(field.kind, one) if field.message else _number(field, one)))
    return wire.encode(out)


def _number(field, value):
    if field.enum:
        return ENUMS[field.kind].index(value) if isinstance(value, str) else value
    return float(value) if field.kind == "double" else value


def decode(message, data):
    raw = wire.decode(data)
    known = {f.number: f for f in MESSAGES[message]}
    assert set(raw) <= set(known), "%s has no field %s" % (message, set(raw) - set(known))
    out = {}
    for number, values in raw.items():
        field = known[number]
        if field.repeated and field.kind == "double":
            values = [v for part in values for v in (struct.unpack("<%dd" % (len(part) // 8), part) if isinstance(part, bytes) else (part,))]
        elif field.message:
            values = [decode(field.kind, v) for v in values]
        elif field.kind == "string":
            values = [v.decode() for v in values]
        elif field.kind not in ("bytes", "double"):
            values = wire.ints(values)
            if field.kind == "uint64":
                values = [v & (1 << 64) - 1 for v in values]
            elif field.enum:
                values = [ENUMS[field.kind][v] for v in values]
            elif field.kind == "bool":
                values = [bool(v) for v in values]
        value = values if field.repeated else values[-1]
        if field.optional or field.message or not _is_default(value) and not (field.enum and value == ENUMS[field.kind][0]):
            out[field.name] = value
    return out


# ---- JSON ----


def to_json(message, value):
    """For json.dumps: 64-bit integers as texts, bytes in base64."""
    known = {f.name: f for f in MESSAGES[message]}
    out = {}
    for name, given in value.items():
        field = known[name]
        made = [_json(field, v) for v in given] if field.repeated else _json(field, given)
        out[name] = made
    return out


def _json(field, value):
    if field.message:
        return to_json(field.kind, value)
    if field.kind in ("int64", "uint64"):
        return str(value)
    return base64.b64encode(value).decode() if field.kind == "bytes" else value


def from_json(message, value):
    """What json.loads made of an answer; every field must have the JSON type that proto3's mapping gives it."""
    known = {f.name: f for f in MESSAGES[message]}
    assert set(value) <= set(known), "%s has no field %s" % (message, set(value) - set(known))
    out = {}
    for name, given in value.items():
        field = known[name]
        made = [_value(field, v) for v in given] if field.repeated else _value(field, given)
        assert field.optional or field.message or not _is_default(made), "%s has its default value in JSON" % name
        out[name] = made
    return out


def _value(field, value):
    if field.message:
        return from_json(field.kind, value)
    if field.enum:
        assert value in ENUMS[field.kind], value
        return value
    if field.kind in ("int64", "uint64"):
        assert isinstance(value, str), "%s is no text" % field.name
        return int(value)
    if field.kind == "double":
        return float(value)
    expected = {"string": str, "bytes": str, "bool": bool, "int32": int, "uint32": int}[field.kind]
    assert isinstance(value, expected), "%s is %r" % (field.name, value)
    return base64.b64decode(value, validate=True) if field.kind == "bytes" else value
