//go:build !unix

package filelock

import "time"

// Lock does nothing here, see [Dir].
type Lock struct{}

// Open opens nothing here.
func Open(string) (*Lock, error) { return &Lock{}, nil }

// Acquire does nothing here.
func (l *Lock) Acquire(time.Duration) error { return nil }

// Same always returns true here.
func (l *Lock) Same(string) (bool, error) { return true, nil }

// Release does nothing here.
func (l *Lock) Release() {}

// Close does nothing here.
func (l *Lock) Close() error { return nil }
