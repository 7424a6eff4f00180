package storetest

import (
	"fmt"
	"os"
	"sync/atomic"
)

// killVariable is the environment variable that configures Killer.
const killVariable = "STORE_KILL_AT"

// KillAt returns an environment entry for a test process that makes Killer kill it at its n-th write, counted from 1:
// right before it is made, or right after it is on disk and before it is acknowledged.
func KillAt(n int, after bool) string { return fmt.Sprintf("%s=%d %t", killVariable, n, after) }

// Killer returns a store.Options.OnWrite that kills this process, like kill -9, as KillAt configures; nil if it is
// not configured.
func Killer() func(place string, done bool) {
	var (
		n     int64
		after bool
	)
	if _, err := fmt.Sscanf(os.Getenv(killVariable), "%d %t", &n, &after); err != nil {
		return nil
	}
	var seen atomic.Int64
	return func(_ string, done bool) {
		if done == after && seen.Add(1) == n {
			die()
		}
	}
}

func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until it arrives
}

// Counter returns a store.Options.OnWrite that counts writes, and a function that returns the count.
func Counter() (onWrite func(place string, done bool), made func() int) {
	var seen atomic.Int64
	return func(_ string, done bool) {
		if done {
			seen.Add(1)
		}
	}, func() int { return int(seen.Load()) }
}
