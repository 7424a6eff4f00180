package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// available is how much memory the machine has for more processes, in MB; 0 if it does not say.
func available() float64 {
	data, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kilobytes, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kilobytes / 1000
		}
	}
	return 0
}

// sample looks every half second for the least memory that is available, until least is called.
func sample() (least func() float64) {
	quit, found := make(chan struct{}), make(chan float64)
	go func() {
		low := available()
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				low = min(low, available())
			case <-quit:
				found <- low
				return
			}
		}
	}()
	return func() float64 {
		close(quit)
		return <-found
	}
}
