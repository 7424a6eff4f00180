package tool

import "context"

// Clock measures the time of a program, excluding waits for a person. It is safe for concurrent use.
type Clock interface {
	// Pause stops the clock until resume is called; pauses may overlap. Further calls of resume have no effect.
	Pause() (resume func())
}

// WithClock returns ctx with the clock of a program.
func WithClock(ctx context.Context, clock Clock) context.Context {
	c := callerOf(ctx)
	c.clock = clock
	return c.in(ctx)
}

// ClockOf returns the clock of the program of ctx, nil for none.
func ClockOf(ctx context.Context) Clock { return callerOf(ctx).clock }

// Pause stops the clock of the program of ctx, if there is one.
func Pause(ctx context.Context) (resume func()) {
	if clock := ClockOf(ctx); clock != nil {
		return clock.Pause()
	}
	return func() {}
}
