// go-collector HOST:PORT: sends a profile by the Collector's own exporters, in each encoding and compression. Prints the services.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Two samples of CPU time, by their timestamps as the eBPF profiler sends them, one of them in a span.
func profiles(service string) pprofile.Profiles {
	all := pprofile.NewProfiles()
	dictionary := all.Dictionary()
	dictionary.StringTable().Append("", "samples", "count", "cpu", "nanoseconds", "main.work", "thread.name", "worker")
	dictionary.MappingTable().AppendEmpty()
	dictionary.FunctionTable().AppendEmpty()
	dictionary.FunctionTable().AppendEmpty().SetNameStrindex(5)
	dictionary.LocationTable().AppendEmpty()
	dictionary.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(1)
	dictionary.StackTable().AppendEmpty()
	dictionary.StackTable().AppendEmpty().LocationIndices().Append(1)
	dictionary.LinkTable().AppendEmpty()
	link := dictionary.LinkTable().AppendEmpty()
	link.SetTraceID(pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	link.SetSpanID(pcommon.SpanID{0xa1, 2, 3, 4, 5, 6, 7, 8})
	dictionary.AttributeTable().AppendEmpty()
	thread := dictionary.AttributeTable().AppendEmpty()
	thread.SetKeyStrindex(6)
	thread.Value().SetStr("worker")

	resource := all.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	resource.Resource().Attributes().PutInt("process.pid", 42)
	scope := resource.ScopeProfiles().AppendEmpty()
	scope.Scope().SetName("conformance")
	profile := scope.Profiles().AppendEmpty()
	profile.SampleType().SetTypeStrindex(1)
	profile.SampleType().SetUnitStrindex(2)
	profile.PeriodType().SetTypeStrindex(3)
	profile.PeriodType().SetUnitStrindex(4)
	profile.SetPeriod(50_000_000)
	now := time.Now()
	profile.SetTime(pcommon.NewTimestampFromTime(now))
	profile.SetDurationNano(1_000_000_000)
	for i := 0; i < 2; i++ {
		sample := profile.Samples().AppendEmpty()
		sample.SetStackIndex(1)
		sample.TimestampsUnixNano().Append(uint64(now.UnixNano()))
		sample.AttributeIndices().Append(1)
		sample.SetLinkIndex(int32(i))
	}
	return all
}

func send(factory exporter.Factory, service string, settings map[string]any) {
	settings["sending_queue"] = map[string]any{"enabled": false}
	config := factory.CreateDefaultConfig()
	check(confmap.NewFromStringMap(settings).Unmarshal(config))
	made, err := factory.(xexporter.Factory).CreateProfiles(context.Background(), exportertest.NewNopSettings(factory.Type()), config)
	check(err)
	check(made.Start(context.Background(), componenttest.NewNopHost()))
	check(made.ConsumeProfiles(context.Background(), profiles(service)))
	check(made.(component.Component).Shutdown(context.Background()))
	fmt.Println(service)
}

func main() {
	address := os.Args[1]
	for _, compression := range []string{"none", "gzip"} {
		send(otlpexporter.NewFactory(), "conformance.collector.grpc."+compression, map[string]any{
			"endpoint": address, "compression": compression, "tls": map[string]any{"insecure": true}})
	}
	for _, encoding := range []string{"proto", "json"} {
		for _, compression := range []string{"none", "gzip", "zstd"} {
			send(otlphttpexporter.NewFactory(), "conformance.collector."+encoding+"."+compression, map[string]any{
				"endpoint": "http://" + address, "compression": compression, "encoding": encoding})
		}
	}
}
