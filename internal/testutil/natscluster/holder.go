package natscluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
)

// Holder is the [TB] of a program that is not a test.
type Holder struct {
	ctx  context.Context //nolint:containedctx // as a test has one
	dir  string
	ends []func()
	err  error
}

// NewHolder returns a holder with its folders in dir.
func NewHolder(ctx context.Context, dir string) *Holder { return &Holder{ctx: ctx, dir: dir} }

// Run calls a function that may call Fatal, and returns the error that it had.
func (h *Holder) Run(do func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	err := h.err
	h.err = nil
	return err
}

// End calls the functions given to Cleanup, the last one first.
func (h *Holder) End() {
	for _, end := range slices.Backward(h.ends) {
		end()
	}
	h.ends = nil
}

// Context implements [TB].
func (h *Holder) Context() context.Context { return h.ctx }

// Helper implements [TB].
func (h *Holder) Helper() {}

// TempDir implements [TB].
func (h *Holder) TempDir() string {
	dir, err := os.MkdirTemp(h.dir, "nats-")
	if err != nil {
		h.Fatal(err)
	}
	return dir
}

// Cleanup implements [TB].
func (h *Holder) Cleanup(end func()) { h.ends = append(h.ends, end) }

// Fatal implements [TB]. It ends the goroutine, which [Holder.Run] started.
func (h *Holder) Fatal(args ...any) {
	h.err = errors.New(fmt.Sprint(args...))
	runtime.Goexit()
}

// Fatalf implements [TB].
func (h *Holder) Fatalf(format string, args ...any) { h.Fatal(fmt.Sprintf(format, args...)) }
