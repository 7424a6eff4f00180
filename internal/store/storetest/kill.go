package storetest

import (
	"fmt"
	"os"
	"sync/atomic"
)

// killVariable says when Killer kills the process that it is in.
const killVariable = "STORE_KILL_AT"

// KillAt is the variable, for the environment of a process of a test, that has Killer kill it at its n-th write,
// counted from 1: right before it is made, or right after it is on the disk and before anybody has been told so.
func KillAt(n int, after bool) string { return fmt.Sprintf("%s=%d %t", killVariable, n, after) }

// Killer returns a store.Options.OnWrite that kills this process as KillAt says, as kill -9 does; nil if nothing says so.
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

// Counter returns a store.Options.OnWrite that counts, and what tells how many writes were made by now.
func Counter() (onWrite func(place string, done bool), made func() int) {
	var seen atomic.Int64
	return func(_ string, done bool) {
		if done {
			seen.Add(1)
		}
	}, func() int { return int(seen.Load()) }
}
