package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
)

// Output is the workspace folder for truncated output.
const Output = ".out"

// MappedOptions configure a host folder as a workspace.
type MappedOptions struct {
	// Bytes and Inodes bound what programs see of it, as in Options.
	Bytes  int64
	Inodes int
	// Write writes programs' changes back, except to paths that [Automatic] reports; without it the folder is never
	// written.
	Write bool
	// Ignore are globs, over paths or names, of files that programs neither see nor change.
	Ignore []string
	// Output stores the files of the folder Output, which is not in the mapped one; nil discards them.
	Output *Dir
}

// Mapped is a host folder as a workspace. Files that have changed on the host since a program read them are not
// overwritten. It is safe for concurrent use. The caller must Close it.
type Mapped struct {
	dir    *Dir
	opts   MappedOptions
	listed []File
	links  []string // the first skipped paths, for a note
	odd    int
}

// TooLarge means that a mapped folder exceeds the bounds.
type TooLarge struct {
	Bytes int64
	Files int
	// Largest are its largest folders and files with their sizes, the largest first.
	Largest []string
	// Names are the names of Largest.
	Names []string
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%d MiB in %d files and folders", e.Bytes>>20, e.Files)
}

// OpenMapped opens an existing folder, which its owner has allowed programs to use.
func OpenMapped(dir string, opts MappedOptions) (*Mapped, error) {
	hidden := func(path string) bool {
		return path == Output || strings.HasPrefix(path, Output+"/") || matches(opts.Ignore, path)
	}
	d, err := Open(dir, Options{Sync: true, Careful: true, Existing: true, ReadOnly: !opts.Write, Hidden: hidden, Fixed: Automatic})
	if err != nil {
		return nil, err
	}
	d.opts.Bytes, d.opts.Inodes = cmp.Or(opts.Bytes, math.MaxInt64), cmp.Or(opts.Inodes, math.MaxInt)
	return &Mapped{dir: d, opts: opts}, nil
}

// Close releases the folder, and Output.
func (m *Mapped) Close() error {
	if m.opts.Output == nil {
		return m.dir.Close()
	}
	return errors.Join(m.dir.Close(), m.opts.Output.Close())
}

// Measure scans the whole folder. The error is a *TooLarge if it exceeds the bounds.
func (m *Mapped) Measure() error {
	sizes, counts := map[string]int64{}, map[string]int{}
	var bytes int64
	err := m.dir.walk(func(f File, err error) error {
		if err != nil {
			if m.odd++; len(m.links) < 3 {
				m.links = append(m.links, f.Path)
			}
			return nil
		}
		m.listed = append(m.listed, f)
		bytes += f.Size
		for at := f.Path; at != ""; at = parent(at) {
			if strings.Count(at, "/") < 2 {
				sizes[at] += f.Size
				counts[at]++
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list folder: %w", err)
	}
	if bytes <= m.dir.opts.Bytes && len(m.listed) <= m.dir.opts.Inodes {
		return nil
	}
	large := &TooLarge{Bytes: bytes, Files: len(m.listed)}
	weight := func(path string) float64 {
		return float64(sizes[path])/float64(m.dir.opts.Bytes) + float64(counts[path])/float64(m.dir.opts.Inodes)
	}
	var paths []string
	for path := range sizes {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
	for _, path := range paths {
		if slices.ContainsFunc(large.Names, func(name string) bool { return strings.HasPrefix(path, name+"/") }) {
			continue
		}
		if len(large.Names) == 3 {
			break
		}
		large.Names = append(large.Names, path)
		large.Largest = append(large.Largest, fmt.Sprintf("%s (%d MiB, %d)", path, sizes[path]>>20, counts[path]))
	}
	return large
}

// Files returns the visible files, as [Dir.Files] does. Skipped files are reported once.
func (m *Mapped) Files() iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		if m.listed == nil {
			if err := m.Measure(); err != nil {
				yield(File{}, err)
				return
			}
		}
		for _, f := range m.listed {
			if !yield(f, nil) {
				return
			}
		}
		if m.odd > 0 {
			err := errLink
			if m.odd > 1 {
				err = fmt.Errorf("as %d more: links and the like are not followed", m.odd-1)
			}
			if !yield(File{Path: m.links[0]}, err) {
				return
			}
		}
		if m.opts.Output == nil {
			return
		}
		for f, err := range m.opts.Output.Files() {
			if !yield(f, err) {
				return
			}
		}
	}
}

// Open opens a file as [Dir.Open] does.
func (m *Mapped) Open(path string) (File, error) {
	if m.isOutput(path) {
		if m.opts.Output == nil {
			return File{}, fs.ErrNotExist
		}
		return m.opts.Output.Open(path)
	}
	if m.dir.opts.Hidden(path) {
		return File{}, fmt.Errorf("open %q: %w", path, fs.ErrNotExist)
	}
	return m.dir.Open(path)
}

func (m *Mapped) isOutput(path string) bool {
	return path == Output || strings.HasPrefix(path, Output+"/")
}

// Reasons to reject changes in a mapped folder.
var (
	errReadOnly = errors.New("the folder is mapped read-only")
	errHidden   = errors.New("the settings leave it out")
	errFixed    = errors.New("the host's tools run it automatically")
)

// Update applies a program's changes as [Dir.Update] does; if the folder is read-only, none.
func (m *Mapped) Update(changes iter.Seq2[File, error]) (Updated, error) {
	outputs := Updated{Versions: map[string]string{}}
	var refused refusals
	own := func(yield func(File, error) bool) {
		for f, err := range changes {
			switch {
			case err != nil:
				yield(f, err)
				return
			case m.isOutput(f.Path):
				m.output(f, &outputs)
			case !m.opts.Write:
				refused.add(f.Path, errReadOnly)
			case !yield(f, nil):
				return
			}
		}
	}
	updated, err := m.dir.Update(own)
	updated.Notes = slices.Concat(updated.Notes, refused.lines(), outputs.Notes)
	maps.Copy(updated.Versions, outputs.Versions)
	return updated, err
}

// output stores one file of the folder Output.
func (m *Mapped) output(f File, into *Updated) {
	if m.opts.Output == nil {
		return
	}
	updated, err := m.opts.Output.Update(Changes(f))
	into.Notes = append(into.Notes, updated.Notes...)
	if err != nil {
		into.Notes = append(into.Notes, fmt.Sprintf("not kept: %q", f.Path))
	}
	maps.Copy(into.Versions, updated.Versions)
}

// refusals counts rejected changes by reason, for one line each.
type refusals struct {
	whys  []error
	first map[error]string
	count map[error]int
}

func (a *refusals) add(path string, why error) {
	if a.count == nil {
		a.first, a.count = map[error]string{}, map[error]int{}
	}
	if a.count[why]++; a.count[why] == 1 {
		a.whys, a.first[why] = append(a.whys, why), path
	}
}

func (a *refusals) lines() []string {
	var notes Notes
	for _, why := range a.whys {
		if n := a.count[why]; n > 1 {
			notes.Add(a.first[why], fmt.Sprintf("as %d more: %v", n-1, why))
		} else {
			notes.Add(a.first[why], why.Error())
		}
	}
	return notes.Lines()
}
