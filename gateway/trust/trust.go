// Package trust decides which tool definitions of the upstreams may be used. Its
// main type is [Store]: it pins the digest of every definition in sallyport.lock
// when it is first seen, and holds a definition that has changed since, or a new
// one that looks as if it were written to mislead a model. Held definitions need
// approval by a person. The detection of misleading text is heuristic.
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
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// FileName is the usual name of the lock file, next to upstreams.yaml.
const FileName = "sallyport.lock"

// ErrNotHeld is the error for approving a definition that is not held.
var ErrNotHeld = errors.New("not pending approval")

// Held is a definition that is pending approval. All its text is untrusted.
type Held struct {
	// Upstream is the upstream's name in the settings, Name the tool's on the wire.
	Upstream, Name string
	// Tool is the held definition, without the parts that its digest leaves out.
	Tool tool.Tool
	// Digest identifies that definition, see [Digest].
	Digest string
	// Reason is "new", "changed" or "suspicious".
	Reason string
	// Findings say what looks wrong with its text; there may be some for any reason.
	Findings []Finding
	// Old is the definition that it would replace, as [Canonical] writes it; nil
	// if there was none or it was not stored. New is the held one.
	Old, New json.RawMessage
	// Rejection is what a person decided about it; zero while it waits.
	Rejection Rejection
}

// The values of Held.Reason.
const (
	ReasonNew        = "new"
	ReasonChanged    = "changed"
	ReasonSuspicious = "suspicious"
)

// ID returns the tool's id in programs. Definitions with the same wire name have the same id.
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

// Why returns the reason as text.
func (h Held) Why() string {
	switch h.Reason {
	case ReasonChanged:
		if h.Old == nil {
			return "its definition has changed; the old one is not stored here, so this is the whole new one"
		}
		return "its definition has changed"
	case ReasonSuspicious:
		return "its text looks like an attack on a model"
	}
	return "it is new"
}

// Store has the pins of the lock file and the held definitions. It is safe for concurrent
// use, also by several processes: none overwrites the lines of another.
type Store struct {
	log     *slog.Logger
	path    string
	reviews *reviewCache
	shared  *sharedLock // nil if the lock file has all

	mu      sync.Mutex
	state   State
	lock    lock
	waiting map[string]map[string]Held // by upstream and name
	unsaved pins                       // pinned in memory, but the file could not be written
	names   map[string][]string        // wire names of each upstream's tools
}

// Options of a Book. The zero value is usable.
type Options struct {
	// Logger; nil discards. Names of tools are shown quoted, their texts never.
	Logger *slog.Logger
	// Dir is a private directory for definitions to review, created if missing; ""
	// keeps them in memory only, so that other processes have no diffs.
	Dir string
	// Records has the pins of several gateways, if they share it; the lock file is a copy then.
	Records *store.Store
}

// OpenForConfig opens the lock file next to the settings file. Definitions to review are
// stored below cacheDir; "" stores none. records is Options.Records.
func OpenForConfig(cfg *config.Config, cacheDir string, records *store.Store, log *slog.Logger) (*Store, error) {
	opts := &Options{Logger: log, Records: records}
	if cacheDir != "" {
		opts.Dir = filepath.Join(cacheDir, "trust")
	}
	return Open(filepath.Join(cfg.Dir, FileName), opts)
}

// Open reads the lock file at path; there need not be one yet. An error says
// which line is wrong. Close it if Options.Records is set.
func Open(path string, opts *Options) (*Store, error) {
	opts = cmp.Or(opts, &Options{})
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	b := &Store{
		log: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), path: abs, reviews: openReviewCache(opts.Dir, abs),
		waiting: map[string]map[string]Held{}, unsaved: pins{}, names: map[string][]string{},
	}
	if b.shared, err = openSharedLock(opts.Records, abs, b.log); err != nil {
		return nil, fmt.Errorf("open lock in the store: %w", err)
	}
	b.state = State{file: stampOf(abs)} // the first Check reads a lock in the store
	if b.lock, err = readLock(abs); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close ends following other gateways.
func (b *Store) Close() { b.shared.close() }

// State identifies a state of the lock: while it is the same, no upstream needs another Check.
type State struct {
	file     fileStamp
	revision uint64 // of the lock in the store
	shared   bool
}

// State returns the state of the lock file now, and of the lock in the store. It costs one stat. Another state may be due to
// an approval here, in another process or at another gateway.
func (b *Store) State() State {
	if b.shared == nil {
		return State{file: stampOf(b.path)}
	}
	return State{stampOf(b.path), b.shared.revision.Load(), true}
}

// refresh reads the lock again if it has changed. While it cannot be read, the last known pins count.
func (b *Store) refresh() error {
	now := b.State()
	if now == b.state {
		return nil
	}
	b.state = now // an invalid file is reported once
	if b.shared != nil {
		return b.update(func(lock) {})
	}
	fresh, err := readLock(b.path)
	if err != nil {
		return err
	}
	fresh.pinAll(b.unsaved)
	b.lock = fresh
	return nil
}

// Check pins new definitions and returns the held ones, by name: they must not be
// called. tools are all that the upstream lists now. An error is about the lock
// file; the held definitions are valid, but pins are in memory only.
func (b *Store) Check(upstream string, policy config.Trust, tools []tool.Tool) (held []Held, err error) {
	if !upstreamName.MatchString(upstream) {
		return nil, fmt.Errorf("check definitions: %.80q cannot name an upstream", upstream)
	}
	listed := digestTools(tools)
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{b.refresh()}
	b.setNames(upstream, tools)
	c := &check{store: b, upstream: upstream, policy: policy, listed: listed, held: map[string]Held{}}
	c.checkAll()
	if len(c.pinned) > 0 {
		errs = append(errs, b.pin(upstream, c.pinned, c.replace))
		c.checkAll() // another process may have pinned something else first
	}
	errs = append(errs, b.reviews.save(upstream, c.listed, b.lock.pins[upstream], c.held))
	b.waiting[upstream] = c.held
	return sortHeld(c.held), errors.Join(errs...)
}

// setNames records the names of tools, which another upstream's text should not mention.
func (b *Store) setNames(upstream string, tools []tool.Tool) {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Wire
	}
	b.names[upstream] = names
}

// otherTools returns the names of the tools of all upstreams but one.
func (b *Store) otherTools(upstream string) map[string]bool {
	names := map[string]bool{}
	for up, tools := range b.lock.pins {
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
	for name := range b.lock.pins[upstream] {
		delete(names, name)
	}
	return names
}

// Held returns all held definitions, by upstream and name, also those of other processes
// with the same directory, and those that are rejected.
func (b *Store) Held() ([]Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{b.refresh()}
	all := map[string]map[string]Held{}
	stored, err := b.reviews.heldTools()
	errs = append(errs, err)
	maps.Copy(all, stored)
	for up, entries := range b.waiting {
		if b.reviews.dir == "" || all[up] == nil {
			all[up] = entries
		}
	}
	var list []Held
	for up, entries := range all {
		for _, h := range sortHeld(entries) {
			if b.lock.pins[up][h.Name] != h.Digest {
				h.Rejection = b.lock.rejected[h.definition()]
				list = append(list, h)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Held) int { return cmp.Compare(a.Upstream, b.Upstream) })
	return list, errors.Join(errs...)
}

// Approve pins held definitions in place of the pinned ones, also rejected ones: those that Held
// returned, and none that has arrived since. The error names those that are no
// longer held, or have another digest; the others are pinned
// nevertheless.
func (b *Store) Approve(held ...Held) error {
	still, err := b.stillHeld("approve", held)
	b.mu.Lock()
	defer b.mu.Unlock()
	approved, errs := pins{}, []error{err}
	for _, h := range still {
		approved.set(h.Upstream, h.Name, h.Digest)
		delete(b.waiting[h.Upstream], h.Name)
	}
	for _, up := range slices.Sorted(keys(approved)) {
		errs = append(errs, b.pin(up, approved[up], true), b.reviews.approve(up, approved[up]))
	}
	return errors.Join(errs...)
}

// stillHeld returns those of some definitions that are held now. The error names the others.
func (b *Store) stillHeld(verb string, held []Held) (still []Held, err error) {
	now, err := b.Held()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, h := range held {
		if slices.ContainsFunc(now, func(n Held) bool { return n.definition() == h.definition() }) {
			still = append(still, h)
		} else {
			errs = append(errs, fmt.Errorf("%s %q of %s: %w with this digest", verb, h.Name, h.Upstream, ErrNotHeld))
		}
	}
	return still, errors.Join(errs...)
}

func sortHeld(held map[string]Held) []Held {
	list := make([]Held, 0, len(held))
	for _, h := range held {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b Held) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
