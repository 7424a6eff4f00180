package backoff

import (
	"testing"
	"time"
)

func TestFail(t *testing.T) {
	var b Backoff
	for i := range 40 {
		b.Fail(false, false)
		least := minDelay << min(i, 16)
		if i+1 >= ParkAfter {
			least = min(ParkMin<<min(i+1-ParkAfter, 16), ParkMax)
		}
		if wait := time.Until(b.Until); wait < least-minDelay/2 || wait > least*5/4 {
			t.Errorf("pause %d is %v, want %v and a quarter at most", i+1, wait, least)
		}
	}
}
