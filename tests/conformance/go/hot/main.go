// hot FILE writes a CPU profile of two seconds in a function that the compiler inlines and devirtualises
// only when a profile says that it is hot.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

type shape interface{ area(int) int }
type square struct{ side int }

// Too large to be inlined without a profile.
func (s square) area(n int) int {
	t := 0
	for i := 0; i < 4; i++ {
		t += s.side*n + i*i - n/(i+1)
		if t%7 == 3 {
			t -= s.side ^ n
		} else if t%5 == 2 {
			t += s.side & n
		}
		t ^= (t << 3) + (n >> 2) - i*s.side
		t += (n * i) % (s.side + 1)
	}
	return t
}

func work(s shape, rounds int) int {
	t := 0
	for i := 0; i < rounds; i++ {
		t += s.area(i)
	}
	return t
}

func main() {
	f, err := os.Create(os.Args[1])
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		panic(err)
	}
	t := 0
	for begun := time.Now(); time.Since(begun) < 2*time.Second; {
		t += work(square{3 + t&1}, 1000000)
	}
	pprof.StopCPUProfile()
	if err = f.Close(); err != nil {
		panic(err)
	}
	fmt.Println(t)
}
