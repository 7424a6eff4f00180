package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/store"
)

// HandoverFolder is the folder of the data directory with records of processes that do not have the store, such as exec and
// serve --share. The process that has the store, or the next one that opens it, moves them there.
const HandoverFolder = "handover"

// recordFile is the extension of a handed over record.
const recordFile = ".json"

// handover is the folder of handed over records.
type handover struct {
	dir    string     // "" for none
	taking sync.Mutex // held while records are moved to the store
}

// newHandover returns the folder of a data directory. A process whose journals are elsewhere hands over nothing.
func newHandover(opts Options) *handover {
	if opts.DataDir == "" || opts.Journals != "" {
		return &handover{}
	}
	return &handover{dir: filepath.Join(opts.DataDir, HandoverFolder)}
}

// put writes a record to the folder.
func (o *handover) put(r Record) error {
	data, err := json.Marshal(r)
	if err != nil || o.dir == "" {
		return err
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(o.dir, r.ID+recordFile), data, 0o600)
}

// files returns the paths of the records, the oldest first.
func (o *handover) files() []string {
	if o.dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(o.dir) // a missing directory has none
	times := map[string]time.Time{}
	var paths []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), recordFile) {
			continue
		}
		path := filepath.Join(o.dir, e.Name())
		paths, times[path] = append(paths, path), info.ModTime()
	}
	slices.SortStableFunc(paths, func(a, b string) int { return times[a].Compare(times[b]) })
	return paths
}

// maxHandedOver is the maximum number of records that wait for a process with the store, each in a file.
const maxHandedOver = 10_000

// prune removes records beyond the limits.
func (o *handover) prune(keep time.Duration) {
	paths := o.files()
	for i, path := range paths {
		if len(paths)-i > maxHandedOver || time.Since(modTime(path)) > keep {
			_ = os.Remove(path) // another process may have moved it to the store
		}
	}
}

// read returns a handed over record.
func (o *handover) read(path string) (r Record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %w", errNotRecord, err)
	}
	if r.ID+recordFile != filepath.Base(path) {
		return r, fmt.Errorf("%w: it has the id %.60q", errNotRecord, r.ID)
	}
	return r, nil
}

var errNotRecord = errors.New("the file is not a record")

// takeOver moves handed over records to the store, if this process has it.
func (h *History) takeOver(ctx context.Context) {
	if !h.Durable {
		return
	}
	h.handover.taking.Lock()
	defer h.handover.taking.Unlock()
	for _, path := range h.handover.files() {
		if ctx.Err() != nil {
			return
		}
		if err := h.takeOne(ctx, path); err != nil {
			h.opts.Logger.Error("execution of another process is not recorded", "file", path, "error", err)
		}
	}
}

// takeOne moves one record to the store. It removes a file that is not a record.
func (h *History) takeOne(ctx context.Context, path string) error {
	r, err := h.handover.read(path)
	if errors.Is(err, errNotRecord) {
		return errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return err
	}
	if _, err := h.records.Get(ctx, KeyOf(r.Principal, r.ID)); errors.Is(err, store.ErrNotFound) {
		err = h.write(ctx, r)
		if err != nil {
			return err
		}
		h.opts.onRecord(r)
	} else if err != nil {
		return err
	}
	return os.Remove(path)
}

// isKept reports whether records outlive this process: in its store, or handed over.
func (h *History) isKept() bool { return h.Durable || h.handover.dir != "" }
