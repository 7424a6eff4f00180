//go:build !unix

package filelock

import "time"

// Lock does nothing here, see [Dir].
type Lock struct{}

// Open opens nothing here.
func Open(string) (*Lock, error) { return &Lock{}, nil }

// Take does nothing here.
func (l *Lock) Take(time.Duration) error { return nil }

// Same always returns true here.
func (l *Lock) Same(string) (bool, error) { return true, nil }

// Leave does nothing here.
func (l *Lock) Leave() {}

// Close does nothing here.
func (l *Lock) Close() error { return nil }
