package store_test

import (
	"syscall"
	"testing"
	"time"

	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
)

// TestCloseWhileAway: a store closes in limited time while its servers do not answer.
func TestCloseWhileAway(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	s := storetest.Connect(t, c.Server(""))
	asks, err := s.Requests("test")
	if err != nil {
		t.Fatal(err)
	}
	end := asks.Serve(testutil.Logger(t), func(store.Key, []byte) bool { return true })
	testutil.Eventually(t, "the store answers", time.Minute, func() bool { return s.Available() == nil })
	c.Signal(t, 0, syscall.SIGSTOP)
	testutil.Eventually(t, "the store is away", time.Minute, func() bool { return s.Available() != nil })
	closed := make(chan error, 1)
	go func() {
		end()
		closed <- s.Close()
	}()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the store does not close")
	}
}
