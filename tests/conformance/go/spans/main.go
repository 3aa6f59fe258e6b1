// spans URL APPLICATION: pyroscope-go with otel-profiling-go and OpenTelemetry as in their manuals, on a program that answers
// two requests at the same time, each a span of one trace. Says their ids as JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"sync"
	"time"

	otelpyroscope "github.com/grafana/otel-profiling-go"
	"github.com/grafana/pyroscope-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

func burn(until time.Time) (n uint64) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 1_000_000; i++ {
			n = n*6364136223846793005 + i
		}
	}
	return n
}

//go:noinline
func priceTheOrder(until time.Time) uint64 { return burn(until) + 1 }

//go:noinline
func drawTheInvoice(until time.Time) uint64 { return burn(until) + 2 }

//go:noinline
func outsideOfSpans(until time.Time) uint64 { return burn(until) + 3 }

func provider(url, service string) *trace.TracerProvider {
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(url+"/v1/traces"))
	if err != nil {
		log.Fatal(err)
	}
	about := resource.NewSchemaless(attribute.String("service.name", service), attribute.String("region", "eu"))
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
}

type said struct {
	Trace string            `json:"trace"`
	Root  string            `json:"root"`
	Spans map[string]string `json:"spans"` // by function
}

func main() {
	url, service := os.Args[1], os.Args[2]
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: service,
		ServerAddress:   url,
		UploadRate:      2 * time.Second,
		Tags:            map[string]string{"region": "eu"},
		ProfileTypes:    []pyroscope.ProfileType{pyroscope.ProfileCPU},
	})
	if err != nil {
		log.Fatal(err)
	}
	traces := provider(url, service)
	otel.SetTracerProvider(otelpyroscope.NewTracerProvider(traces,
		otelpyroscope.WithSpanIDLabelScope(otelpyroscope.ScopeAllSpans), otelpyroscope.WithSpanNameLabelScope(otelpyroscope.ScopeAllSpans)))
	tracer := otel.Tracer("conformance")

	log.Print(outsideOfSpans(time.Now().Add(time.Second)))
	ctx, root := tracer.Start(context.Background(), "checkout")
	said := said{root.SpanContext().TraceID().String(), root.SpanContext().SpanID().String(), map[string]string{}}
	var both sync.WaitGroup
	var lock sync.Mutex
	for name, work := range map[string]func(time.Time) uint64{"priceTheOrder": priceTheOrder, "drawTheInvoice": drawTheInvoice} {
		both.Add(1)
		go func() {
			defer both.Done()
			_, span := tracer.Start(ctx, name)
			defer span.End()
			lock.Lock()
			said.Spans[name] = span.SpanContext().SpanID().String()
			lock.Unlock()
			log.Print(work(time.Now().Add(5 * time.Second)))
		}()
	}
	both.Wait()
	root.End()
	if err := profiler.Stop(); err != nil {
		log.Fatal(err)
	}
	if err := traces.Shutdown(context.Background()); err != nil {
		log.Print(err) // a server may take profiles and no traces
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		log.Fatal(err)
	}
}
