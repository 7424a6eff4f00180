package process

import (
	"io"
	"sync"
)

// StderrKept is the size of the kept end of a process's stderr, in bytes.
const StderrKept = 8 << 10

// Ring keeps the end of the data written into it. It is safe for concurrent use.
type Ring struct {
	mu   sync.Mutex
	data []byte
}

// Fill reads r to its end.
func (r *Ring) Fill(from io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		r.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (r *Ring) add(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = append(r.data, p...)
	if over := len(r.data) - StderrKept; over > 0 {
		r.data = append(r.data[:0], r.data[over:]...)
	}
}

// Tail returns what is kept, untrusted and raw.
func (r *Ring) Tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.data)
}
