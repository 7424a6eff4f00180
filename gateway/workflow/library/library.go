// Package library keeps the definitions of a folder as they are now. Its main type is [Library]. A file that cannot be read
// any more, or says what is not understood, leaves what it said last in force.
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
	"sync/atomic"
	"time"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/sleep"
	"sallyport/internal/yamlstrict"
)

// pollEvery is how often the files are looked at. A poll works on every kind of mount.
const pollEvery = time.Second

// Library is the definitions of one folder. Its methods are safe for concurrent use.
type Library struct {
	dir string
	log *slog.Logger
	now atomic.Pointer[state]
}

// state is what a look at the folder has found.
type state struct {
	definitions []*spec.Definition
	faults      []error
}

// Open reads the folder once. That it is not there is no fault; nil discards the log, which has one line for each fault.
func Open(dir string, log *slog.Logger) *Library {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &Library{dir: dir, log: log}
	l.now.Store(&state{})
	l.look()
	return l
}

// Definitions returns those in force, sorted by name. No one may change them.
func (l *Library) Definitions() []*spec.Definition { return l.now.Load().definitions }

// Faults returns what is wrong with files as they are now.
func (l *Library) Faults() []error { return l.now.Load().faults }

// Follow reads the folder whenever files in it have changed, and calls changed where definitions have, until ctx ends.
func (l *Library) Follow(ctx context.Context, changed func()) {
	last, seen := []string(nil), l.marks() // the first look finds what was edited since Open
	for sleep.For(ctx, pollEvery) == nil {
		now := l.marks()
		settled := slices.Equal(now, seen) // nothing is being written just now
		seen = now
		if !settled || slices.Equal(now, last) {
			continue
		}
		last = now // of before: what changes while it is read is looked at again, and so are files of code that are new in it
		if l.look() {
			changed()
		}
	}
}

// look reads the folder, and reports whether definitions have changed.
func (l *Library) look() bool {
	before := l.now.Load()
	defs, faults := spec.LoadDir(l.dir)
	defs = append(defs, kept(before.definitions, defs)...)
	slices.SortFunc(defs, func(a, b *spec.Definition) int { return strings.Compare(a.Name, b.Name) })
	l.now.Store(&state{defs, faults})
	same := slices.EqualFunc(defs, before.definitions, func(a, b *spec.Definition) bool { return a.Path == b.Path && a.Digest == b.Digest })
	l.tell(before, len(defs), !same, faults)
	return !same
}

// kept are the earlier definitions of files that still exist but cannot be read any more.
func kept(before, now []*spec.Definition) (keep []*spec.Definition) {
	for _, old := range before {
		replaced := slices.ContainsFunc(now, func(d *spec.Definition) bool { return d.Path == old.Path || d.Name == old.Name })
		if _, err := os.Stat(old.Path); err == nil && !replaced {
			keep = append(keep, old)
		}
	}
	return keep
}

// tell logs what is new: each fault once, and how many definitions there are where they have changed.
func (l *Library) tell(before *state, count int, changed bool, faults []error) {
	for _, fault := range faults {
		if !slices.ContainsFunc(before.faults, func(old error) bool { return old.Error() == fault.Error() }) {
			l.log.Error("workflow is not read, what its file said last stays in force", "error", FirstLine(fault))
		}
	}
	if changed {
		l.log.Info("workflows", "directory", l.dir, "count", count)
	}
}

// FirstLine is the place and the message of the first of a file's faults, without the lines of the file.
func FirstLine(fault error) string {
	if one, ok := errors.AsType[*yamlstrict.Error](fault); ok {
		short := *one
		short.Snippet = ""
		return short.Error()
	}
	line, _, _ := strings.Cut(fault.Error(), "\n")
	return line
}

// marks tell the states of the folder and the files of code apart.
func (l *Library) marks() []string {
	var marks []string
	entries, _ := os.ReadDir(l.dir)
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".yaml", ".yml", ".json":
			marks = append(marks, mark(filepath.Join(l.dir, e.Name())))
		}
	}
	for _, d := range l.Definitions() {
		spec.Walk(d.Steps, func(s *spec.Step, _ []*spec.Step) {
			if code, ok := s.Do.(*spec.Code); ok && code.File != nil {
				marks = append(marks, mark(filepath.Join(d.Dir, filepath.FromSlash(code.File.Text))))
			}
		})
	}
	return marks
}

// mark changes when the file does.
func mark(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path + " is not there"
	}
	return fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano())
}
