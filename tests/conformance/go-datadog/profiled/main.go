// profiled URL SECONDS: a program with Datadog's tracer and profiler, as in their manual; only the address of the agent is ours.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/DataDog/dd-trace-go/v2/ddtrace/ext"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
	"github.com/DataDog/dd-trace-go/v2/profiler"
)

var (
	kept [][]byte
	lock sync.Mutex
)

//go:noinline
func burnProcessor(until time.Time) (n uint64) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 1_000_000; i++ {
			n = n*6364136223846793005 + i
		}
		kept = append(kept, make([]byte, 100_000))
		if len(kept) > 50 {
			kept = nil
		}
	}
	return n
}

func answer() (n uint64) {
	root, ctx := tracer.StartSpanFromContext(context.Background(), "web.request",
		tracer.SpanType(ext.SpanTypeWeb), tracer.ResourceName("GET /orders"))
	defer root.Finish()
	span, _ := tracer.StartSpanFromContext(ctx, "work")
	defer span.Finish()
	lock.Lock()
	defer lock.Unlock()
	return burnProcessor(time.Now().Add(200 * time.Millisecond))
}

func main() {
	url := os.Args[1]
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	if err := tracer.Start(tracer.WithAgentURL(url)); err != nil {
		log.Fatal(err)
	}
	defer tracer.Stop()
	err = profiler.Start(
		profiler.WithAgentAddr(strings.TrimPrefix(url, "http://")),
		profiler.WithPeriod(3*time.Second), profiler.CPUDuration(3*time.Second),
		profiler.WithProfileTypes(profiler.CPUProfile, profiler.HeapProfile, profiler.MutexProfile, profiler.GoroutineProfile),
		profiler.MutexProfileFraction(1),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer profiler.Stop()
	go func() {
		for {
			lock.Lock()
			time.Sleep(5 * time.Millisecond)
			lock.Unlock()
			time.Sleep(time.Millisecond)
		}
	}()
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		answer()
	}
}
