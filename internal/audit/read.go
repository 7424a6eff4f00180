package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sync"
	"time"
)

// Reader reads the records of a directory while other processes append to it. It is not safe for concurrent use. The caller must Close it.
type Reader struct {
	dir     string
	from    uint64 // the number of the next record to return
	started bool   // a record was returned: all that follow are returned in the order of the files
	file    *os.File
	in      *bufio.Reader
	seg     segment
	at      int64 // of the next line
	line    int   // its number in the file, from 1
}

// NewReader returns a reader of the records in a directory, from the number from on.
func NewReader(dir string, from uint64) *Reader { return &Reader{dir: dir, from: max(from, 1)} }

// Close closes the reader.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// Next returns the next record. The error is io.EOF if there is none yet, and an ErrDamaged for a line that is not a
// record or was changed; the next call continues after it.
func (r *Reader) Next() (Record, error) {
	for {
		if r.file == nil {
			if err := r.open(); err != nil {
				return Record{}, err
			}
		}
		line, err := r.readLine()
		if errors.Is(err, io.EOF) {
			if err = r.nextSegment(); err == nil {
				continue
			}
		}
		if err != nil {
			return Record{}, err
		}
		record, err := decode(line)
		if err != nil {
			return record, fmt.Errorf("%w: %s line %d: %w", ErrDamaged, r.seg.path, r.line, err)
		}
		if r.started = r.started || record.Seq >= r.from; r.started {
			r.from = record.Seq + 1
			return record, nil
		}
	}
}

// open opens the file with the next record, or the first file after it.
func (r *Reader) open() error {
	all, err := segments(r.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(all) == 0 {
		return io.EOF
	}
	if err != nil {
		return err
	}
	chosen := all[0]
	for _, s := range all {
		if s.first <= r.from {
			chosen = s
		}
	}
	return r.start(chosen)
}

func (r *Reader) start(s segment) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	if r.file != nil {
		_ = r.file.Close()
	}
	r.file, r.in, r.seg, r.at, r.line = f, bufio.NewReaderSize(f, 64<<10), s, 0, 0
	return nil
}

// nextSegment continues with the next file, if there is one and this file is complete, else it returns io.EOF.
func (r *Reader) nextSegment() error {
	all, err := segments(r.dir)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.first <= r.seg.first {
			continue
		}
		// What was appended before the next file was made is read first.
		if info, err := r.file.Stat(); err == nil && info.Size() > r.at {
			if r.complete(info.Size()) {
				return nil
			}
		}
		return r.start(s)
	}
	return io.EOF
}

// complete reports whether a complete line follows what was read.
func (r *Reader) complete(size int64) bool {
	rest, err := io.ReadAll(io.NewSectionReader(r.file, r.at, min(size-r.at, maxLine+1)))
	return err == nil && slices.Contains(rest, '\n')
}

// readLine returns the next complete line without its newline, or io.EOF if there is none yet. Of a line that is
// longer than any record it returns the beginning.
func (r *Reader) readLine() ([]byte, error) {
	var line []byte
	var size int64
	for {
		piece, err := r.in.ReadSlice('\n')
		size += int64(len(piece))
		if len(line) <= maxLine {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil { // read the incomplete line again later
			if _, wrong := r.file.Seek(r.at, io.SeekStart); wrong != nil {
				return nil, wrong
			}
			r.in.Reset(r.file)
			return nil, err
		}
		r.at += size
		r.line++
		return line[:len(line)-1], nil
	}
}

// Read yields the records of a directory from a number on, until there are no more. A line that is not a record comes
// with an error that is an ErrDamaged, and the walk continues; another error ends it.
func Read(dir string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r := NewReader(dir, from)
		defer func() { _ = r.Close() }()
		for {
			record, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(record, err) || err != nil && !errors.Is(err, ErrDamaged) {
				return
			}
		}
	}
}

// Since returns a number such that all records written at a time or later have that number or a higher one.
func Since(dir string, then time.Time) (uint64, error) {
	all, err := segments(dir)
	if err != nil {
		return 0, err
	}
	from := uint64(1)
	for _, s := range all {
		r := NewReader(dir, 0)
		err := r.start(s)
		if err == nil {
			var first Record
			if first, err = r.Next(); err == nil && first.Time.Before(then) {
				from = first.Seq
			}
		}
		_ = r.Close()
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, ErrDamaged) {
			return 0, err
		}
	}
	return from, nil
}

// pollInterval is the interval of checks for records of other processes.
const pollInterval = 500 * time.Millisecond

// Follow calls do with the records of a directory from a number on, and then with each new one, until ctx ends or do fails. It
// returns that error.
func Follow(ctx context.Context, dir string, from uint64, do func(Record, error) error) error {
	r := NewReader(dir, from)
	defer func() { _ = r.Close() }()
	for {
		record, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollInterval):
			}
		case err != nil && !errors.Is(err, ErrDamaged):
			return err
		default:
			if err := do(record, err); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// notifier notifies waiting goroutines of appended records.
type notifier struct {
	mu sync.Mutex
	ch chan struct{}
}

func (w *notifier) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

func (w *notifier) broadcast() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}
