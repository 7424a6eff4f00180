package bridge_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/sandbox/bridge"
)

func TestClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var over atomic.Bool
		var told []bool
		c := bridge.NewClock(2*time.Second, func() { over.Store(true) })
		defer c.Stop()
		c.OnChange(func(still bool) { told = append(told, still) })
		at := func(d time.Duration, want bool) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if over.Load() != want {
				t.Fatalf("over: %t, want %t", !want, want)
			}
		}
		at(time.Second, false)
		first, second := c.Pause(), c.Pause()
		at(time.Hour, false)
		first()
		first()
		at(time.Hour, false)
		second()
		at(999*time.Millisecond, false)
		at(2*time.Millisecond, true)
		if len(told) != 2 || !told[0] || told[1] {
			t.Errorf("told %v", told)
		}
	})
}

// TestClockBeginsStill: a limit that is set during a pause is whole when that is over, and none is up after Stop.
func TestClockBeginsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var over atomic.Int32
		c := bridge.NewClock(time.Hour, func() { over.Add(1) })
		resume := c.Pause()
		c.Reset(time.Second)
		time.Sleep(time.Minute)
		resume()
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if over.Load() != 0 {
			t.Error("a pause has cost time")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if over.Load() != 1 {
			t.Error("the limit was not kept")
		}
		c.Reset(time.Second)
		resume = c.Pause()
		c.Stop()
		resume()
		time.Sleep(time.Hour)
		synctest.Wait()
		if over.Load() != 1 {
			t.Error("it called after Stop")
		}
	})
}
