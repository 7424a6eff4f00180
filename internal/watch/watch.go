// Package watch notifies functions of changes.
package watch

import (
	"slices"
	"sync"
)

// List is a list of functions to call. The zero value is empty and ready. It is safe for concurrent use.
type List struct {
	mu   sync.Mutex
	list []*func()
}

// Add adds a function until stop is called. f must not block and must not call the list's methods.
func (w *List) Add(f func()) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, &f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.list = slices.DeleteFunc(w.list, func(other *func()) bool { return other == &f })
	}
}

// Notify calls all functions. The stop functions of Add wait until it has returned.
func (w *List) Notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.list {
		(*f)()
	}
}
