// Package audit keeps an append-only record of what happened, each record chained to the one before by its hash.
// Its main type is [Log], which [Open] keeps in a directory: files of one JSON object per line, and a signed head
// that says how far they go. Several processes may append to one log; [Read] and [Verify] need no process at all.
//
// A record that Append has acknowledged survives a kill of the process; it is synced to the disk within Options.Sync.
// A failed append is an error, and the caller must not do what was to be recorded.
package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/filelock"
)

// Errors of a log, for errors.Is.
var (
	// ErrDamaged: a line is not a record. If it is the last one, nothing can be appended.
	ErrDamaged = errors.New("the audit log is damaged")
	// ErrGone: the files of the log no longer exist.
	ErrGone = errors.New("the audit log is gone")
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("the audit log is closed")
)

// Options configure a log; nil means all defaults.
type Options struct {
	// Logger gets errors outside of appends; nil discards.
	Logger *slog.Logger
	// Opened is written before the first record of this process, as a log.opened.
	Opened Event
	// Segment bounds a file of records, in bytes; 0 is 16 MiB.
	Segment int64
	// Keep bounds the age of a record, Size the bytes of all; 0 is unlimited. Whole files are removed, the oldest first, when
	// a new one is created, and when Prune is called.
	Keep time.Duration
	Size int64
	// Sync is the longest delay until a record is synced to the disk; 0 is 200 ms.
	Sync time.Duration
	// LockTimeout is how long Append waits for other processes; 0 is 2 s.
	LockTimeout time.Duration
}

func (o *Options) withDefaults() Options {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Segment == 0 {
		opts.Segment = 16 << 20
	}
	if opts.Sync == 0 {
		opts.Sync = 200 * time.Millisecond
	}
	if opts.LockTimeout == 0 {
		opts.LockTimeout = 2 * time.Second
	}
	return opts
}

// Log is an open log. All methods are safe for concurrent use, also by several processes.
type Log struct {
	dir  string
	opts Options
	keys atomic.Pointer[keys]
	log  *slog.Logger

	mu     sync.Mutex
	lock   *filelock.Lock // nil after Close
	file   *os.File       // the last segment; nil: it must be found first
	full   bool           // the next record needs a new segment
	size   int64          // of the segment
	at     end            // the last record
	opened bool           // a log.opened was written

	synced   atomic.Pointer[error] // the error of the last sync, nil if it succeeded
	appended chan struct{}         // has one when something was appended since the last sync
	notifier notifier
	closing  chan struct{}
	work     sync.WaitGroup
}

// Open opens the log in a directory, and creates both if they do not exist. It appends nothing. The caller must Close it.
func Open(dir string, opts *Options) (*Log, error) {
	l := &Log{dir: dir, opts: opts.withDefaults(), appended: make(chan struct{}, 1), closing: make(chan struct{})}
	l.log = l.opts.Logger
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	l.work.Go(l.syncLoop)
	return l, nil
}

func (l *Log) open() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	lock, err := filelock.Open(l.dir)
	if err != nil {
		return err
	}
	if err := lock.Acquire(l.opts.LockTimeout); err != nil {
		return errors.Join(err, lock.Close())
	}
	defer lock.Release()
	if err = l.load(true); err == nil {
		_, _, _, _, err = findEnd(l.dir)
	}
	if err == nil {
		err = checkWritable(l.dir)
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	l.lock = lock
	return nil
}

// checkWritable checks that files can be created in dir.
func checkWritable(dir string) error {
	path := filepath.Join(dir, ".probe")
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Remove(path))
}

// Digest returns a keyed digest of data that a record must not contain. Without the key of this log it cannot be
// compared with guesses. The digest of empty data is "".
func (l *Log) Digest(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	return l.keys.Load().digestOf(data)
}

// Append adds an event. When it returns nil the record survives a kill of the process.
func (l *Log) Append(e Event) error {
	if err := l.append(e.limitFields()); err != nil {
		return fmt.Errorf("append to audit log: %w", err)
	}
	select {
	case l.appended <- struct{}{}:
	default:
	}
	return nil
}

func (l *Log) append(e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failed := l.synced.Load(); failed != nil {
		return *failed
	}
	return l.withLock(func() error {
		if !l.opened {
			opened := l.opts.Opened.limitFields()
			opened.Kind = LogOpened
			if err := l.write(opened); err != nil {
				return err
			}
			l.opened = true
		}
		return l.write(e)
	})
}

// withLock calls do with the log locked against other processes, and positioned at its end. It is called with mu held.
func (l *Log) withLock(do func() error) error {
	if l.lock == nil {
		return ErrClosed
	}
	if err := l.lock.Acquire(l.opts.LockTimeout); err != nil {
		return err
	}
	defer func() { l.lock.Release() }() // l.lock is another one if the directory was replaced
	if err := l.catchUp(); err != nil {
		return err
	}
	return do()
}

// catchUp finds the end of the log, which other processes may have moved.
func (l *Log) catchUp() error {
	if l.file != nil {
		info, err := l.file.Stat()
		if err == nil && !sealed(info) && !removed(info) && (info.Size() == l.size || l.readAppended(info.Size())) {
			return nil
		}
		_ = l.file.Close()
		l.file = nil
	}
	if err := l.relockDirectory(); err != nil {
		return err
	}
	known := l.at
	at, in, size, rest, err := findEnd(l.dir)
	if err != nil {
		return err
	}
	if known.seq > 0 && in.path == "" {
		return fmt.Errorf("%w: %s has no records", ErrGone, l.dir)
	}
	l.at, l.size = at, size
	if err := l.openSegment(in, rest); err != nil {
		return err
	}
	return l.recordLoss(known, rest)
}

// readAppended reads what other processes appended to the segment, and reports whether it was complete records.
func (l *Log) readAppended(size int64) bool {
	more := size - l.size
	if more < 0 || more > maxLine {
		return false
	}
	data := make([]byte, more)
	if _, err := l.file.ReadAt(data, l.size); err != nil || data[more-1] != '\n' {
		return false
	}
	data = data[:more-1]
	last, err := decode(data[bytes.LastIndexByte(data, '\n')+1:])
	if err != nil || last.Seq <= l.at.seq {
		return false
	}
	l.at, l.size = end{last.Seq, last.Hash}, size
	return true
}

// relockDirectory locks the current directory at the path, if it is not the one that was opened.
func (l *Log) relockDirectory() error {
	if same, err := l.lock.Same(l.dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrGone, err)
		}
		return err
	} else if same {
		return nil
	}
	lock, err := filelock.Open(l.dir)
	if err != nil {
		return err
	}
	if err := lock.Acquire(l.opts.LockTimeout); err != nil {
		return errors.Join(err, lock.Close())
	}
	_ = l.lock.Close()
	l.lock = lock
	return l.load(l.at.seq == 0)
}

// load reads the keys. With mayMake it creates them if they do not exist.
func (l *Log) load(mayMake bool) error {
	k, err := loadKeys(l.dir, mayMake)
	if err == nil {
		l.keys.Store(&k)
	}
	return err
}

// openSegment opens the segment to write to, and truncates what a crash left at its end.
func (l *Log) openSegment(in segment, rest tornTail) error {
	if in.path == "" {
		return l.newSegment()
	}
	info, err := os.Stat(in.path)
	if err != nil {
		return err
	}
	if sealed(info) { // a crash came before the next one was created
		return l.newSegment()
	}
	f, err := os.OpenFile(in.path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if rest.bytes > 0 {
		if err := f.Truncate(l.size); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	l.file, l.full = f, false
	return nil
}

// newSegment creates the segment for the next record.
func (l *Log) newSegment() error {
	f, err := os.OpenFile(segmentPath(l.dir, l.at.seq+1), os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l.file, l.size, l.full = f, 0, false
	return nil
}

// recordLoss records what is missing: an incomplete record after a crash, or removed records, which this process or the
// published head knows.
func (l *Log) recordLoss(known end, rest tornTail) error {
	if rest.bytes > 0 {
		if err := l.write(Event{Kind: LogTorn, Bytes: rest.bytes, Note: rest.sum}); err != nil {
			return err
		}
	}
	if head, err := readHead(l.dir); err == nil && head.check(l.keys.Load().public()) && head.Seq > known.seq {
		known = end{head.Seq, head.Hash}
	}
	if known.seq <= l.at.seq {
		return nil
	}
	return l.writeGap(known)
}

// writeGap records that records up to a known one are missing. The next record has the number after it.
func (l *Log) writeGap(known end) error {
	l.log.Error("records of the audit log were removed", "directory", l.dir, "after", l.at.seq, "through", known.seq)
	before := l.at
	l.at.seq = known.seq
	err := l.write(Event{Kind: LogGap, Through: known.seq, Before: known.hash, Note: fmt.Sprintf("the log ended at %d", before.seq)})
	if err != nil {
		l.at = before
	}
	return err
}

// write appends a record with one write. It is called with the log locked, at its end.
func (l *Log) write(e Event) error {
	e.Seq, e.Time = l.at.seq+1, time.Now().UTC()
	line, hash, err := encode(e, l.at.hash)
	if err != nil {
		return err
	}
	if l.full || l.size > 0 && l.size+int64(len(line)) > l.opts.Segment {
		if err := l.roll(); err != nil {
			return err
		}
		return l.write(e) // roll may have appended records about pruning
	}
	n, err := l.file.Write(line)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, l.file.Truncate(l.size))
		}
		_ = l.file.Close()
		l.file = nil // it is opened and checked again before the next write
		return err
	}
	l.at, l.size = end{e.Seq, hash}, l.size+int64(n)
	return nil
}

// roll continues in a new segment, and prunes old ones.
func (l *Log) roll() error {
	l.full = true // until there is a new one
	if err := errors.Join(l.file.Sync(), l.file.Chmod(0o400)); err != nil {
		return err
	}
	old := l.file
	if err := l.newSegment(); err != nil {
		return err
	}
	if err := old.Close(); err != nil {
		return err
	}
	if err := l.prune(time.Now()); err != nil { // not a reason to refuse the record
		l.log.Error("old audit records stay", "directory", l.dir, "error", err)
	}
	return nil
}

// syncLoop syncs appended records to the disk, and publishes the head, until Close.
func (l *Log) syncLoop() {
	for {
		select {
		case <-l.closing:
			return
		case <-l.appended:
		}
		l.notifier.broadcast()
		select {
		case <-l.closing:
			return
		case <-time.After(l.opts.Sync):
		}
		l.noteSync(l.Sync(context.Background()))
	}
}

// noteSync stores the result of a sync. While syncing fails, appends fail, and the sync is retried.
func (l *Log) noteSync(err error) {
	if err == nil {
		if l.synced.Swap(nil) != nil {
			l.log.Info("the audit log can be written again", "directory", l.dir)
		}
		return
	}
	if l.synced.Swap(&err) == nil {
		l.log.Error("the audit log cannot be written", "directory", l.dir, "error", err)
	}
	select {
	case l.appended <- struct{}{}:
	default:
	}
}

// Sync syncs all appended records to the disk, and publishes the head.
func (l *Log) Sync(context.Context) error {
	l.mu.Lock()
	file, at := l.file, l.at
	if l.lock == nil || file == nil || at.seq == 0 {
		l.mu.Unlock()
		return nil
	}
	// The file may be replaced while it is synced: by then roll has synced it, and it is closed.
	l.mu.Unlock()
	if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("sync audit log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.publish(at)
}

// publish writes the head, unless a newer one is published. It is called with mu held.
func (l *Log) publish(at end) error {
	if l.lock == nil {
		return nil
	}
	if err := l.lock.Acquire(l.opts.LockTimeout); err != nil {
		return err
	}
	defer func() { l.lock.Release() }()
	if head, err := readHead(l.dir); err == nil && head.Seq >= at.seq && head.check(l.keys.Load().public()) {
		return nil
	}
	if err := writeHead(l.dir, l.keys.Load().sign(Head{Seq: at.seq, Hash: at.hash, Time: time.Now().UTC()})); err != nil {
		return fmt.Errorf("publish head of audit log: %w", err)
	}
	return nil
}

// Head returns the head of the log as this process knows it, signed.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys.Load().sign(Head{Seq: l.at.seq, Hash: l.at.hash, Time: time.Now().UTC()})
}

// Close syncs the log and closes it. It is idempotent.
func (l *Log) Close() error {
	l.mu.Lock()
	select {
	case <-l.closing:
		l.mu.Unlock()
		return nil
	default:
		close(l.closing)
	}
	l.mu.Unlock()
	l.work.Wait()
	err := l.Sync(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	err = errors.Join(err, l.lock.Close())
	l.lock, l.file = nil, nil
	return err
}
