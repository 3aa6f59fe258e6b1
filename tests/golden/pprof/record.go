// Records the Go fixtures beside it: a CPU profile with goroutine labels and a heap profile, straight
// from runtime/pprof. Built by:
//
//	go build -trimpath -o demo record.go && ./demo
package main

import (
	"context"
	"crypto/sha256"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"time"
)

var sink [][]byte

func hash(until time.Time) {
	block := make([]byte, 4096)
	for time.Now().Before(until) {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
}

func order(until time.Time) {
	for time.Now().Before(until) {
		numbers := make([]int, 5000)
		for i := range numbers {
			numbers[i] = (i * 7919) % 5003
		}
		sort.Ints(numbers)
	}
}

func keep(n int) {
	if n > 0 {
		sink = append(sink, make([]byte, 64*1024))
		keep(n - 1)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	cpu, err := os.Create("go-cpu-labels.pb.gz")
	check(err)
	check(pprof.StartCPUProfile(cpu))
	for _, endpoint := range []string{"/hash", "/sort"} {
		labels := pprof.Labels("endpoint", endpoint, "region", "süd")
		pprof.Do(context.Background(), labels, func(context.Context) {
			until := time.Now().Add(400 * time.Millisecond)
			if endpoint == "/hash" {
				hash(until)
			} else {
				order(until)
			}
		})
	}
	pprof.StopCPUProfile()
	check(cpu.Close())

	keep(200)
	runtime.GC() // a heap profile is as of the last but one collection
	runtime.GC()
	heap, err := os.Create("go-heap.pb.gz")
	check(err)
	check(pprof.WriteHeapProfile(heap))
	check(heap.Close())
	runtime.KeepAlive(sink)
}
