package server

import (
	"testing"
	"time"

	"sallyport/internal/store"
)

// TestObserver: a standby takes over the records 10 s after a serve has ended, however often other verbs hold them meanwhile, and not
// while a serve has them.
func TestObserver(t *testing.T) {
	const serve = 7
	verb := func(second int) int { return 100 + second } // each one another process
	for name, test := range map[string]struct {
		holder func(second int) int // 0 for none
		want   int                  // the second of the takeover, 0 for none
	}{
		"a serve for good":            {func(int) int { return serve }, 0},
		"a serve that ends":           {func(s int) int { return holds(serve, s < 30) }, 40},
		"verbs at most looks":         {func(s int) int { return holds(serve, s < 30) + holds(verb(s), s >= 30 && s%14 != 0) }, 42},
		"a long verb":                 {func(s int) int { return holds(serve, s < 30) + holds(verb(0), s >= 32 && s < 38) }, 40},
		"a serve that starts again":   {func(s int) int { return holds(serve, s < 30) + holds(serve+1, s >= 32) }, 0},
		"a serve that ends again":     {func(s int) int { return holds(serve, s < 30) + holds(serve+1, s >= 32 && s < 60) }, 70},
		"a verb at the time it is up": {func(s int) int { return holds(serve, s < 30) + holds(verb(s), s >= 39 && s < 43) }, 44},
	} {
		t.Run(name, func(t *testing.T) {
			var o observer
			start, got := time.Now(), 0
			for second := 0; second < 120 && got == 0; second += 2 {
				var used *store.InUseError
				if pid := test.holder(second); pid != 0 {
					used = &store.InUseError{PID: pid}
				}
				if o.observe(used, start.Add(time.Duration(second)*time.Second)) && used == nil {
					got = second
				}
			}
			if got != test.want {
				t.Errorf("taken over after %d s, not %d s", got, test.want)
			}
		})
	}
}

// holds returns a process while it holds the records.
func holds(pid int, while bool) int {
	if while {
		return pid
	}
	return 0
}
