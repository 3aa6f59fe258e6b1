// Writes profiles of itself in the text form of Go (debug=1).
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var kept [][]byte

func allocate(n int) {
	for i := 0; i < n; i++ {
		kept = append(kept, make([]byte, 4096))
	}
}

func lose(n int) {
	for i := 0; i < n; i++ {
		_ = append([]byte(nil), make([]byte, 100000)...)
	}
}

func wait(done chan bool) { <-done }

func contend(mu *sync.Mutex, wg *sync.WaitGroup) {
	defer wg.Done()
	for i := 0; i < 5; i++ {
		mu.Lock()
		time.Sleep(time.Millisecond)
		mu.Unlock()
	}
}

func write(name string) {
	f, err := os.Create(name + ".txt")
	if err != nil {
		panic(err)
	}
	pprof.Lookup(name).WriteTo(f, 1)
	f.Close()
	g, _ := os.Create(name + ".pb.gz")
	pprof.Lookup(name).WriteTo(g, 0)
	g.Close()
}

func main() {
	runtime.MemProfileRate = 4096
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	done := make(chan bool)
	for i := 0; i < 3; i++ {
		go wait(done)
	}
	pprof.Do(context.Background(), pprof.Labels("job", "an \"odd\" one", "part", "7"), func(ctx context.Context) {
		go wait(done)
	})
	allocate(300)
	lose(50)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go contend(&mu, &wg)
	}
	wg.Wait()
	runtime.GC()
	for _, name := range []string{"heap", "goroutine", "threadcreate", "mutex", "block"} {
		write(name)
	}
	close(done)
}
