// Package sleep waits within a context.
package sleep

import (
	"context"
	"time"
)

// For waits for d. The error is that of ctx, if it ends earlier.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
