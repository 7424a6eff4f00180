//go:build !unix

// Package filelock keeps processes from changing the same files at the same time.
package filelock

import (
	"errors"
	"os"
	"time"
)

// ErrBusy is never returned here.
var ErrBusy = errors.New("another process holds the lock")

// Dir does nothing here: if two processes change a file at the same moment, one change may be lost.
func Dir(string, time.Duration) (unlock func(), err error) { return func() {}, nil }

// File does nothing here.
func File(*os.File) error { return nil }

// Unlock does nothing here.
func Unlock(*os.File) {}
