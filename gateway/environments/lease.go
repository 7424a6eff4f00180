package environments

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/filelock"
)

// leaseFolder is the folder in the cache directory for the leases.
const leaseFolder = "environments"

// leaseSuffix ends the name of each lease that is in force.
const leaseSuffix = ".lease"

// lease says which images and layers this process uses, so that no process that removes old ones removes these. It is a
// file with their names that this process keeps locked: when the process ends, in whatever way, so does its lease.
//
// Where files cannot be locked, only the time of last use protects them: mark renews it daily, and nothing is removed
// that was used in the last [MinUnused] while a gateway runs. It is safe for concurrent use.
type lease struct {
	cacheDir string
	log      *slog.Logger

	mu    sync.Mutex
	file  *os.File                // nil before start, and if it could not be made
	marks map[string]func() error // update the time of last use, by path below the cache directory
}

// start makes the lease, which names nothing yet, unless it exists. first reports whether it was not started before.
func (l *lease) start() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marks != nil {
		return false
	}
	l.marks = map[string]func() error{}
	var err error
	if l.file, err = createLease(filepath.Join(l.cacheDir, leaseFolder)); err != nil {
		l.log.Warn("other processes do not see which environments this one uses", "error", err)
	}
	return true
}

// createLease creates and locks a lease. It has its final name only once it is locked, because others remove leases
// that are not.
func createLease(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return nil, err
	}
	name := file.Name() + leaseSuffix
	err = errors.Join(filelock.File(file), os.Rename(file.Name(), name))
	if err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()), file.Close())
	}
	return file, nil
}

// add adds an image or a layer that is used from now on.
func (l *lease) add(path string, mark func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marks[path] != nil {
		return
	}
	l.marks[path] = mark
	if l.file == nil {
		return
	}
	if _, err := l.file.WriteString(path + "\n"); err != nil {
		l.log.Warn("other processes do not see that this one uses an environment", "of", path, "error", err)
	}
}

// drop ends the use of some images and layers. While the file is written again, others may miss the rest of it; they remove nothing that was
// marked in the last [MinUnused].
func (l *lease) drop(paths ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range paths {
		delete(l.marks, path)
	}
	if l.file == nil {
		return
	}
	rest := strings.Join(append(slices.Sorted(maps.Keys(l.marks)), ""), "\n")
	_, err := l.file.WriteAt([]byte(rest), 0)
	if err == nil {
		err = l.file.Truncate(int64(len(rest)))
	}
	if err == nil {
		_, err = l.file.Seek(0, io.SeekEnd)
	}
	if err != nil {
		l.log.Warn("other processes do not see which environments this one still uses", "error", err)
	}
}

// mark makes now the time of last use of all that is used.
func (l *lease) mark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for path, mark := range l.marks {
		if err := mark(); err != nil {
			l.log.Warn("environment could not be marked as used", "of", path, "error", err)
		}
	}
}

// close ends the lease. Nothing may be used any more.
func (l *lease) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = os.Remove(l.file.Name() + leaseSuffix)
		_ = l.file.Close()
		l.file = nil
	}
}

// leases are those in force.
type leases struct {
	processes int
	paths     map[string]bool // below the cache directory
}

// readLeases reads the leases of all processes, this one included, and removes those of processes that were killed.
func readLeases(cacheDir string) (leases, error) {
	all := leases{paths: map[string]bool{}}
	names, err := filepath.Glob(filepath.Join(cacheDir, leaseFolder, "*"+leaseSuffix))
	for _, name := range names {
		err = errors.Join(err, all.read(name))
	}
	if err != nil {
		return all, fmt.Errorf("read which environments are in use: %w", err)
	}
	return all, nil
}

// read reads one lease, or removes it if no process has it locked.
func (l *leases) read(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just ended
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	err = filelock.File(file)
	if err == nil {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if !errors.Is(err, filelock.ErrBusy) {
		return err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	l.processes++
	for path := range strings.Lines(string(data)) {
		l.paths[strings.TrimSpace(path)] = true
	}
	return nil
}

// markLoop marks what is used every interval until the gateway ends. Time during which the machine was suspended counts:
// the loop looks at the clock more often than it marks.
func (e *Environments) markLoop(interval time.Duration) {
	ticker := time.NewTicker(interval / 24)
	defer ticker.Stop()
	for marked := wallTime(); ; {
		select {
		case <-e.quit.Done():
			return
		case <-ticker.C:
		}
		if wallTime().Sub(marked) >= interval {
			e.lease.mark()
			marked = wallTime()
		}
	}
}

// wallTime is the time without the monotonic clock, which stops while the machine is suspended.
func wallTime() time.Time { return time.Now().Round(0) }
