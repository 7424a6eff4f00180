// Package library loads the workflow definitions of a folder and reloads changed files. Its main type is [Library]. If a file
// becomes unreadable or invalid, its last valid definition stays in force.
package library

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/sleep"
	"sallyport/internal/yamlstrict"
)

// pollEvery is the poll interval. Polling works on every kind of mount.
const pollEvery = time.Second

// Library holds the definitions of one folder. Its methods are safe for concurrent use.
type Library struct {
	dir     string
	log     *slog.Logger
	current atomic.Pointer[state]
	reading sync.Mutex
}

// state is the result of reading the folder.
type state struct {
	definitions []*spec.Definition
	faults      []error
}

// Open reads the folder once. A missing folder is not a fault. Each fault is logged in one line; nil discards the log.
func Open(dir string, log *slog.Logger) *Library {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Library{dir: dir, log: log}
	l.current.Store(&state{})
	l.Reload()
	return l
}

// Definitions returns the definitions in force, sorted by name. The caller must not modify them.
func (l *Library) Definitions() []*spec.Definition { return l.current.Load().definitions }

// Faults returns the errors in the current files.
func (l *Library) Faults() []error { return l.current.Load().faults }

// Follow reads the folder again whenever its files have changed, and calls changed if definitions have changed, until ctx ends.
func (l *Library) Follow(ctx context.Context, changed func()) {
	last, seen := []string(nil), l.fingerprints() // the first poll finds edits since Open
	for sleep.For(ctx, pollEvery) == nil {
		now := l.fingerprints()
		settled := slices.Equal(now, seen) // no file is being written
		seen = now
		if !settled || slices.Equal(now, last) {
			continue
		}
		last = now // from before reading: later changes and new code files are found by the next poll
		if l.Reload() {
			changed()
		}
	}
}

// Reload reads the folder and reports whether definitions have changed.
func (l *Library) Reload() bool {
	l.reading.Lock()
	defer l.reading.Unlock()
	before := l.current.Load()
	defs, faults := spec.LoadDir(l.dir)
	defs = append(defs, retain(before.definitions, defs)...)
	slices.SortFunc(defs, func(a, b *spec.Definition) int { return strings.Compare(a.Name, b.Name) })
	l.current.Store(&state{defs, faults})
	same := slices.EqualFunc(defs, before.definitions, func(a, b *spec.Definition) bool { return a.Path == b.Path && a.Digest == b.Digest })
	l.logChanges(before, len(defs), !same, faults)
	return !same
}

// retain returns the earlier definitions of files that still exist but are now invalid.
func retain(before, now []*spec.Definition) (keep []*spec.Definition) {
	for _, old := range before {
		replaced := slices.ContainsFunc(now, func(d *spec.Definition) bool { return d.Path == old.Path || d.Name == old.Name })
		if _, err := os.Stat(old.Path); err == nil && !replaced {
			keep = append(keep, old)
		}
	}
	return keep
}

// logChanges logs changes: each new fault once, and the number of definitions if they have changed.
func (l *Library) logChanges(before *state, count int, changed bool, faults []error) {
	for _, fault := range faults {
		if !slices.ContainsFunc(before.faults, func(old error) bool { return old.Error() == fault.Error() }) {
			l.log.Error("cannot read workflow, its last valid version stays in force", "error", FirstLine(fault))
		}
	}
	if changed {
		l.log.Info("workflows", "directory", l.dir, "count", count)
	}
}

// FirstLine returns the location and message of the first fault of a file, without the source snippet.
func FirstLine(fault error) string {
	if one, ok := errors.AsType[*yamlstrict.Error](fault); ok {
		short := *one
		short.Snippet = ""
		return short.Error()
	}
	line, _, _ := strings.Cut(fault.Error(), "\n")
	return line
}

// fingerprints returns fingerprints of the definition and code files.
func (l *Library) fingerprints() []string {
	var marks []string
	entries, _ := os.ReadDir(l.dir)
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".yaml", ".yml", ".json":
			marks = append(marks, fingerprint(filepath.Join(l.dir, e.Name())))
		}
	}
	for _, d := range l.Definitions() {
		spec.Walk(d.Steps, func(s *spec.Step, _ []*spec.Step) {
			if code, ok := s.Do.(*spec.Code); ok && code.File != nil {
				marks = append(marks, fingerprint(filepath.Join(d.Dir, filepath.FromSlash(code.File.Text))))
			}
		})
	}
	return marks
}

// fingerprint returns the path, size and modification time of a file.
func fingerprint(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path + " is not there"
	}
	return fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano())
}
