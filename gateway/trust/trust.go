// Package trust decides which tool definitions of the upstreams may be used. Its
// main type is [Book]: it pins the digest of every definition in sallyport.lock
// when it is first seen, and holds back a definition that has changed since, or a
// new one that looks as if it were written to mislead a model. What is held waits
// for a person. Finding misleading text is a tripwire and not a proof.
package trust

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// FileName is the usual name of the lock file, which lies next to upstreams.yaml.
const FileName = "sallyport.lock"

// ErrNotHeld says that what was to be approved does not wait.
var ErrNotHeld = errors.New("does not wait for approval")

// Held is a definition that waits for approval. All text in it is untrusted.
type Held struct {
	// Upstream is the upstream's name in the settings, Name the tool's on the wire.
	Upstream, Name string
	// Tool is the definition that waits, without what its digest leaves out.
	Tool tool.Tool
	// Digest identifies that definition, see [Digest].
	Digest string
	// Reason is "new", "changed" or "suspicious".
	Reason string
	// Findings say what looks wrong with its text; there may be some for any reason.
	Findings []Finding
	// Old is the definition that it would replace, as [Canonical] writes it; nil
	// where there was none or it was not kept. New is the one that waits.
	Old, New json.RawMessage
}

// The values of Held.Reason.
const (
	ReasonNew        = "new"
	ReasonChanged    = "changed"
	ReasonSuspicious = "suspicious"
)

// ID names the tool as programs do. A definition that the list had twice has one name.
func (h Held) ID(cfg *config.Config) tool.ID {
	id := tool.ID{Upstream: tool.Identifier(h.Upstream), Name: h.Tool.ID.Name}
	for _, u := range cfg.Upstreams {
		if u.Name == h.Upstream {
			id.Upstream = u.ID
		}
	}
	if id.Name == "" {
		id.Name = tool.Identifier(h.Name)
	}
	return id
}

// Why says in words why it is held.
func (h Held) Why() string {
	switch h.Reason {
	case ReasonChanged:
		if h.Old == nil {
			return "its definition has changed; what it was is not kept here, so this is all of the new one"
		}
		return "its definition has changed"
	case ReasonSuspicious:
		return "its text looks like an attack on a model"
	}
	return "it is new"
}

// Book is the lock file and what waits. It is safe for concurrent use, also by
// several processes: none loses the lines of another.
type Book struct {
	log  *slog.Logger
	path string
	kept *kept

	mu      sync.Mutex
	stamp   stamp
	pins    pins
	waiting map[string]map[string]Held // by upstream and name
	unsaved pins                       // pinned here, but the file could not be written
	names   map[string][]string        // what each upstream calls its tools
}

// Options of a Book. The zero value is usable.
type Options struct {
	// Logger; nil discards. Names of tools are shown quoted, their texts never.
	Logger *slog.Logger
	// Dir is a private directory, made if it is missing, where definitions are kept
	// for review; "" keeps them in memory only, so that another process has no diffs.
	Dir string
}

// Beside opens the lock file that lies next to the settings, as every verb and the
// gateway do. What it keeps for review goes below cacheDir; "" keeps nothing.
func Beside(cfg *config.Config, cacheDir string, log *slog.Logger) (*Book, error) {
	opts := &Options{Logger: log}
	if cacheDir != "" {
		opts.Dir = filepath.Join(cacheDir, "trust")
	}
	return Open(filepath.Join(cfg.Dir, FileName), opts)
}

// Open reads the lock file at path; there need not be one yet. An error says
// which line is wrong.
func Open(path string, opts *Options) (*Book, error) {
	opts = cmp.Or(opts, &Options{})
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	b := &Book{
		log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), path: abs, kept: openKept(opts.Dir, abs),
		waiting: map[string]map[string]Held{}, unsaved: pins{}, names: map[string][]string{},
	}
	b.stamp = stampOf(abs)
	if b.pins, err = readPins(abs); err != nil {
		return nil, err
	}
	return b, nil
}

// Changed reports whether the lock file is another one than at the last Check:
// someone approved something, and every upstream is worth a Check. It costs one
// stat. While the lock file cannot be read, Check continues with what it knew.
func (b *Book) Changed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return stampOf(b.path) != b.stamp
}

// refresh reads the lock file again if it is another one.
func (b *Book) refresh() error {
	now := stampOf(b.path)
	if now == b.stamp {
		return nil
	}
	fresh, err := readPins(b.path)
	b.stamp = now // a file that is wrong is reported once
	if err != nil {
		return err
	}
	for up, tools := range b.unsaved {
		for name, digest := range tools {
			if fresh[up][name] == "" {
				fresh.set(up, name, digest)
			}
		}
	}
	b.pins = fresh
	return nil
}

// Check pins what is new and returns what is held, by name: none of it may be
// called. The tools are all that the upstream lists now. An error is about the
// lock file and does not change what is held: pins then last as long as the Book.
func (b *Book) Check(upstream string, policy config.Trust, tools []tool.Tool) (held []Held, err error) {
	if !upstreamName.MatchString(upstream) {
		return nil, fmt.Errorf("check definitions: %.80q cannot name an upstream", upstream)
	}
	listed := lookAt(tools)
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{b.refresh()}
	b.remember(upstream, tools)
	c := &check{book: b, upstream: upstream, policy: policy, seen: listed, held: map[string]Held{}}
	c.all()
	if len(c.pinned) > 0 {
		errs = append(errs, b.pin(upstream, c.pinned, c.replace))
		c.all() // another process may have pinned something else first
	}
	errs = append(errs, b.kept.save(upstream, c.seen, b.pins[upstream], c.held))
	b.waiting[upstream] = c.held
	return sorted(c.held), errors.Join(errs...)
}

// remember keeps the names of tools, which another upstream's text should not mention.
func (b *Book) remember(upstream string, tools []tool.Tool) {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Wire
	}
	b.names[upstream] = names
}

// others returns the names of the tools of all upstreams but one.
func (b *Book) others(upstream string) map[string]bool {
	names := map[string]bool{}
	for up, tools := range b.pins {
		for name := range tools {
			names[name] = names[name] || up != upstream
		}
	}
	for up, tools := range b.names {
		for _, name := range tools {
			names[name] = names[name] || up != upstream
		}
	}
	for _, name := range b.names[upstream] {
		delete(names, name)
	}
	for name := range b.pins[upstream] {
		delete(names, name)
	}
	return names
}

// Held returns all that waits, by upstream and name: what this Book held back,
// and what other processes with the same directory did.
func (b *Book) Held() ([]Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{b.refresh()}
	all := map[string]map[string]Held{}
	stored, err := b.kept.all()
	errs = append(errs, err)
	maps.Copy(all, stored)
	for up, entries := range b.waiting {
		if b.kept.dir == "" || all[up] == nil {
			all[up] = entries
		}
	}
	var list []Held
	for up, entries := range all {
		for _, h := range sorted(entries) {
			if b.pins[up][h.Name] != h.Digest {
				list = append(list, h)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Held) int { return cmp.Compare(a.Upstream, b.Upstream) })
	return list, errors.Join(errs...)
}

// Approve pins what is held of an upstream in place of what was pinned: the
// definitions that Held returned, and no other that may have come since. An
// error says which of them do not wait any more, or not with that digest; the
// others are pinned then all the same.
func (b *Book) Approve(held ...Held) error {
	now, err := b.Held()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	approved, errs := map[string]map[string]string{}, []error(nil)
	for _, h := range held {
		if !slices.ContainsFunc(now, func(n Held) bool { return n.Upstream == h.Upstream && n.Name == h.Name && n.Digest == h.Digest }) {
			errs = append(errs, fmt.Errorf("approve %q of %s: %w in this form", h.Name, h.Upstream, ErrNotHeld))
			continue
		}
		if approved[h.Upstream] == nil {
			approved[h.Upstream] = map[string]string{}
		}
		approved[h.Upstream][h.Name] = h.Digest
		delete(b.waiting[h.Upstream], h.Name)
	}
	for _, up := range slices.Sorted(keys(approved)) {
		errs = append(errs, b.pin(up, approved[up], true), b.kept.approve(up, approved[up]))
	}
	return errors.Join(errs...)
}

func sorted(held map[string]Held) []Held {
	list := make([]Held, 0, len(held))
	for _, h := range held {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b Held) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
