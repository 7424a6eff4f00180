package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/filelock"
)

// Options configure a store in a directory; nil means all defaults.
type Options struct {
	// Logger receives the engine's messages; nil discards them.
	Logger *slog.Logger
	// MaxBytes bounds the disk space of all records; 0 means 2 GiB.
	MaxBytes int64
	// LockTimeout is how long Open waits for another process to release the directory; 0 means no wait.
	LockTimeout time.Duration
	// OnWrite is called right before each change of a record and again when it is on disk, with the name of its place
	// ("log_runs"): tests kill the process there. It may be nil. It is called concurrently.
	OnWrite func(place string, done bool)
}

func (o *Options) withDefaults() Options {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = 2 << 30
	}
	return opts
}

// Files in the directory besides the engine's folder.
const (
	engineFolder = "jetstream"
	madeFolder   = "made" // a mark for each stream that was created, to detect a lost one
	schemaFile   = "schema"
	ownerFile    = "pid" // of the lock holder: for messages only, the lock is on the directory
)

// InUseError is an ErrInUse with details.
type InUseError struct {
	Dir string
	// PID is the process that uses the directory, 0 if unknown.
	PID int
}

// Error names the directory and the process.
func (e *InUseError) Error() string {
	by := "another process"
	if e.PID > 0 {
		by = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("%s is in use by %s", e.Dir, by)
}

// Is makes it an ErrInUse.
func (e *InUseError) Is(target error) bool { return target == ErrInUse }

// Open opens a store in a directory, which is created if needed. The process has exclusive use of the directory until
// Close or its end: otherwise the error is an *[InUseError]. The engine starts after Open has returned; the first use
// of the store waits for it.
func Open(dir string, opts *Options) (*Store, error) {
	return openWith(dir, opts.withDefaults(), migrations())
}

// openWith opens a store with the schema migrations.
func openWith(dir string, opts Options, steps []migration) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, madeFolder), 0o700); err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	unlock, err := filelock.Dir(dir, opts.LockTimeout)
	if errors.Is(err, filelock.ErrBusy) {
		return nil, &InUseError{dir, ownerOf(dir)}
	}
	if err != nil {
		return nil, fmt.Errorf("open records: %w", err)
	}
	if err := checkVersion(dir, newest(steps)); err != nil {
		unlock()
		return nil, err
	}
	err = os.WriteFile(filepath.Join(dir, ownerFile), strconv.AppendInt(nil, int64(os.Getpid()), 10), 0o600)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) { // the engine would retry for minutes
		unlock()
		return nil, fmt.Errorf("open records: %w", err)
	}
	if err != nil {
		opts.Logger.Warn("cannot write the lock holder's PID", "error", err)
	}
	return start(dir, opts, steps, unlock), nil
}

// InUse returns which process uses a directory, nil if none does. It holds the lock for a moment.
func InUse(dir string) *InUseError {
	unlock, err := filelock.Dir(dir, 0)
	if errors.Is(err, filelock.ErrBusy) {
		return &InUseError{dir, ownerOf(dir)}
	}
	if err == nil {
		unlock()
	}
	return nil
}

func ownerOf(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, ownerFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// start returns a store. Its engine starts in the background.
func start(dir string, opts Options, steps []migration, unlock func()) *Store {
	var (
		up      = make(chan struct{})
		closing = make(chan struct{})
		e       *engine
		failed  error
	)
	s := newStore(opts.OnWrite)
	s.dir, s.log = dir, opts.Logger
	s.engine = func() *engine { return e }
	go func() {
		defer close(up)
		began := time.Now()
		if failed = repairAndLog(dir, opts.Logger); failed == nil {
			e, failed = startEngine(filepath.Join(dir, engineFolder), opts)
		}
		if failed == nil {
			failed = migrate(dir, e, steps)
		}
		if failed != nil {
			opts.Logger.Error("records cannot be kept", "directory", dir, "error", failed)
			return
		}
		opts.Logger.Debug("records are open", "directory", dir, "duration", time.Since(began))
	}()
	s.wait = func(ctx context.Context) error {
		select {
		case <-closing:
			return ErrClosed
		default:
		}
		select {
		case <-up:
			return failed
		case <-closing:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.open = func(ctx context.Context, name string, perSubject int, limits Limits) (stream, error) {
		return openStream(ctx, e, dir, name, perSubject, limits)
	}
	s.openAlarms = func(ctx context.Context, name string) (alarmClock, error) { return e.openAlarms(ctx, name) }
	s.stop = sync.OnceValue(func() error {
		close(closing)
		<-up
		if e != nil {
			e.close()
		}
		unlock()
		return nil
	})
	return s
}

// repairAndLog repairs damage, and logs what was lost.
func repairAndLog(dir string, log *slog.Logger) error {
	found, err := repair(context.Background(), dir)
	for _, d := range found {
		log.Error("a record is damaged", "record", d.String(), "restored", d.Restored, "kept", filepath.Join(dir, damagedFolder))
	}
	return err
}

// openStream opens an existing stream, or creates it. The error for a created stream that is missing is ErrCorrupt:
// to recreate it would hide the loss.
func openStream(ctx context.Context, e *engine, dir, name string, perSubject int, limits Limits) (stream, error) {
	mark := filepath.Join(dir, madeFolder, name)
	exists, err := e.exists(ctx, name)
	if err != nil {
		return nil, err
	}
	_, missing := os.Lstat(mark)
	if !exists && missing == nil {
		return nil, fmt.Errorf("%w: %s is gone from %s; restore a backup, or remove %s to begin anew", ErrCorrupt, name, dir, mark)
	}
	opened, err := e.stream(ctx, name, perSubject, limits)
	if err != nil {
		return nil, err
	}
	if missing != nil {
		if err := writeFile(mark, nil); err != nil {
			return nil, err
		}
	}
	return opened, saveMetadata(dir, name)
}
