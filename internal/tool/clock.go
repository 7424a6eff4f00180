package tool

import "context"

// Clock measures the time of a program, and stands still while a person is waited for.
// It is safe for concurrent use.
type Clock interface {
	// Pause stops the clock until resume is called; of several pauses at once, until the last one is over.
	// Calling resume again does nothing.
	Pause() (resume func())
}

// WithClock says that what is done with ctx is done within a program's time.
func WithClock(ctx context.Context, clock Clock) context.Context {
	c := callerOf(ctx)
	c.clock = clock
	return c.in(ctx)
}

// ClockOf returns the clock of the program that ctx is of, nil if it is of none.
func ClockOf(ctx context.Context) Clock { return callerOf(ctx).clock }

// Pause stops the clock of the program that ctx is of, if it is of any.
func Pause(ctx context.Context) (resume func()) {
	if clock := ClockOf(ctx); clock != nil {
		return clock.Pause()
	}
	return func() {}
}
