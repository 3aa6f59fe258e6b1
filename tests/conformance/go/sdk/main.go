// sdk URL APPLICATION: pyroscope-go as in its manual, on a program that burns processor time and memory.
package main

import (
	"log"
	"os"
	"time"

	"github.com/grafana/pyroscope-go"
)

var kept [][]byte

//go:noinline
func burnProcessor(until time.Time) (n uint64) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 1_000_000; i++ {
			n = n*6364136223846793005 + i
		}
	}
	return n
}

//go:noinline
func burnMemory() {
	for i := 0; i < 200; i++ {
		kept = append(kept, make([]byte, 1<<20))
	}
	kept = kept[:10]
}

func main() {
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: os.Args[2],
		ServerAddress:   os.Args[1],
		UploadRate:      2 * time.Second,
		Tags:            map[string]string{"region": "eu", "version": "1.2.3"},
		Logger:          pyroscope.StandardLogger,
		// A token is the password of any user.
		BasicAuthUser:     "sdk",
		BasicAuthPassword: os.Getenv("PYROSCOPE_AUTH_TOKEN"),
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace, pyroscope.ProfileInuseObjects,
			pyroscope.ProfileInuseSpace, pyroscope.ProfileGoroutines,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Print(burnProcessor(time.Now().Add(6 * time.Second)))
	burnMemory()
	if err := profiler.Stop(); err != nil {
		log.Fatal(err)
	}
}
