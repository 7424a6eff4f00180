package process

import (
	"bytes"
	"io"
	"sync"
)

// StderrKept is the size of the kept end of a process's stderr, in bytes.
const StderrKept = 8 << 10

// Ring keeps the end of the data written into it. It is safe for concurrent use.
type Ring struct {
	mu   sync.Mutex
	data []byte
	// total is how many bytes were written, those that are no longer kept included.
	total int64
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
	r.data, r.total = append(r.data, p...), r.total+int64(len(p))
	if over := len(r.data) - StderrKept; over > 0 {
		r.data = append(r.data[:0], r.data[over:]...)
	}
}

// Since returns the complete lines that were written after the first bytes, as far as they are kept, and what is kept before them;
// next is the number of bytes up to their end. Both texts are untrusted and raw.
func (r *Ring) Since(after int64) (before, lines string, next int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.total - int64(len(r.data))
	from := int(max(first, min(after, r.total)) - first)
	end := max(from, bytes.LastIndexByte(r.data, '\n')+1)
	return string(r.data[:from]), string(r.data[from:end]), first + int64(end)
}

// Tail returns what is kept, untrusted and raw.
func (r *Ring) Tail() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.data)
}
