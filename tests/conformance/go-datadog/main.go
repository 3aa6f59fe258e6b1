// go-datadog URL APPLICATION: pyroscope-go in a program that dd-trace-go traces, which labels the same samples. The program answers two
// requests at the same time. Says the ids as JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"sync"
	"time"

	"github.com/DataDog/dd-trace-go/v2/ddtrace/ext"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
	"github.com/grafana/pyroscope-go"
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

type ids struct {
	Span uint64 `json:"span"`
	Root uint64 `json:"root"`
}

// A request: a span of the framework, and one of the work below it.
func answer(name string, work func(time.Time) uint64) ids {
	root, ctx := tracer.StartSpanFromContext(context.Background(), "web.request",
		tracer.SpanType(ext.SpanTypeWeb), tracer.ResourceName("GET /"+name))
	defer root.Finish()
	span, _ := tracer.StartSpanFromContext(ctx, "work", tracer.ResourceName(name))
	defer span.Finish()
	log.Print(work(time.Now().Add(5 * time.Second)))
	return ids{span.Context().SpanID(), root.Context().SpanID()}
}

func main() {
	url, service := os.Args[1], os.Args[2]
	if err := tracer.Start(tracer.WithService(service), tracer.WithLogStartup(false), tracer.WithAgentAddr("127.0.0.1:9")); err != nil {
		log.Fatal(err)
	}
	defer tracer.Stop()
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
	log.Print(outsideOfSpans(time.Now().Add(time.Second)))
	said := map[string]ids{}
	var both sync.WaitGroup
	var lock sync.Mutex
	for name, work := range map[string]func(time.Time) uint64{"priceTheOrder": priceTheOrder, "drawTheInvoice": drawTheInvoice} {
		both.Add(1)
		go func() {
			defer both.Done()
			found := answer(name, work)
			lock.Lock()
			said[name] = found
			lock.Unlock()
		}()
	}
	both.Wait()
	if err := profiler.Stop(); err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(said); err != nil {
		log.Fatal(err)
	}
}
