// Package secretstore reads secrets from secret managers (HashiCorp Vault, 1Password Connect, AWS Secrets Manager, Google
// Secret Manager) by reference. A [Store] caches what it has read, renews it, and says when a value has changed. It
// speaks the managers' HTTP APIs; no error of it has a value or a credential.
package secretstore

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/secret"
)

// Reader reads secrets by references, as [Store] does.
type Reader interface {
	// Use sets the managers for the following calls of Read.
	Use(managers Managers)
	// Read returns the secret that a reference names, such as "vault:secret/data/github#token". Errors are *[Error].
	Read(reference string) (string, error)
}

// Fixed is a Reader that has the same value for every valid reference, for settings that are only edited.
type Fixed string

// Use implements [Reader].
func (Fixed) Use(Managers) {}

// Read implements [Reader].
func (f Fixed) Read(reference string) (string, error) {
	return string(f), Check(reference)
}

// Options configure a [Store]. The zero value is usable.
type Options struct {
	// Getenv looks a variable up, as os.LookupEnv does: the managers' own variables are the defaults of their settings.
	// nil: none is set.
	Getenv func(name string) (string, bool)
	// Logger gets warnings about managers, without values; nil discards them.
	Logger *slog.Logger
	// Transport returns the transport to a manager, with a file of authorities to trust or "" for those of the system; nil
	// is one over TCP and TLS.
	Transport func(ca string) (http.RoundTripper, error)
}

// Store reads secrets from the managers and caches them. It is safe for concurrent use.
type Store struct {
	opts    Options
	changed atomic.Bool
	wake    chan struct{} // something is due earlier than before; capacity 1

	mu         sync.Mutex
	set        Managers
	managers   map[string]*guarded
	documents  map[string]*document
	generation int // of Use
}

// New returns a store for the managers that the environment names, until [Store.Use]. nil opts means the zero Options.
func New(opts *Options) *Store {
	s := &Store{wake: make(chan struct{}, 1), set: DefaultManagers(), managers: map[string]*guarded{}, documents: map[string]*document{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Getenv == nil {
		s.opts.Getenv = func(string) (string, bool) { return "", false }
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if s.opts.Transport == nil {
		s.opts.Transport = newTransport
	}
	return s
}

// Use sets the managers. With other settings than before, nothing that was read is kept.
func (s *Store) Use(managers Managers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	maps.DeleteFunc(s.documents, func(_ string, d *document) bool { return d.used < s.generation-2 })
	if reflect.DeepEqual(managers, s.set) {
		return
	}
	s.set, s.managers, s.documents = managers, map[string]*guarded{}, map[string]*document{}
}

// Read implements [Reader]. A value that was read within [Managers].Refresh is not read again.
func (s *Store) Read(reference string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return s.read(ctx, reference, (*document).current)
}

// read returns the secret that a reference names, from its document as get returns it.
func (s *Store) read(ctx context.Context, reference string, get func(*document, context.Context) (answer, error)) (string, error) {
	n, err := parse(reference)
	if err != nil {
		return "", err
	}
	d, err := s.document(n)
	if err != nil {
		return "", err
	}
	a, err := get(d, ctx)
	if err != nil {
		return "", err
	}
	return a.field(n)
}

// document returns the document that a name is in, and creates it.
func (s *Store) document(n name) (*document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set.Problem != "" {
		return nil, &Error{Kind: Refused, Message: "secret_managers cannot be used: " + s.set.Problem}
	}
	d := s.documents[n.document()]
	if d == nil {
		m, err := s.manager(n.scheme)
		if err != nil {
			return nil, err
		}
		d = &document{name: n, manager: m, store: s, refresh: s.set.Refresh, keep: s.set.Keep}
		s.documents[n.document()] = d
		s.signal()
	}
	d.used = s.generation
	return d, nil
}

// manager returns the manager of a scheme. It is called with mu held.
func (s *Store) manager(scheme string) (*guarded, error) {
	if m := s.managers[scheme]; m != nil {
		return m, nil
	}
	env := environment(s.opts.Getenv)
	var made manager
	var err error
	switch scheme {
	case "vault":
		made, err = newVault(s.set.Vault, env, s.opts.Transport)
	case "op":
		made, err = newOnePassword(s.set.OnePassword, env, s.opts.Transport)
	case "aws":
		made, err = newAWS(s.set.AWS, env, s.opts.Transport)
	default:
		made, err = newGCP(s.set.GCP, env, s.opts.Transport)
	}
	if err != nil {
		return nil, err
	}
	s.managers[scheme] = &guarded{manager: made}
	return s.managers[scheme], nil
}

// signal wakes Run.
func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Changed reports whether a value is another one than Read returned, or can be read now, since the last call.
func (s *Store) Changed() bool { return s.changed.Swap(false) }

// recent is the age of a value up to which Refresh does not read it again.
const recent = time.Second

// Refresh reads the secrets of references again, as something is about to use them, unless they are recent or leased. It
// reports whether Read now returns another result than the values in use for one of them.
func (s *Store) Refresh(ctx context.Context, used map[string]string) (changed bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for reference, old := range used {
		value, err := s.read(ctx, reference, (*document).again)
		changed = changed || err != nil || value != old
	}
	return changed
}

// Run renews what is due, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(s.untilDue())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.wake:
			timer.Stop()
		case <-timer.C:
			s.renewDue(ctx)
		}
	}
}

// shortestWait bounds how often Run works.
const shortestWait = time.Second

// untilDue returns the time until something is due.
func (s *Store) untilDue() time.Duration {
	next := time.Now().Add(time.Hour)
	documents, managers := s.everything()
	for _, d := range documents {
		if at := d.due(); at.Before(next) {
			next = at
		}
	}
	for _, m := range managers {
		if at := m.due(); !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(time.Until(next), shortestWait)
}

// renewDue renews the managers' own credentials, then the secrets.
func (s *Store) renewDue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	documents, managers := s.everything()
	for _, m := range managers {
		if at := m.due(); !at.IsZero() && !time.Now().Before(at) {
			m.maintain(ctx)
		}
	}
	for _, d := range documents {
		if !time.Now().Before(d.due()) {
			_, _ = d.current(ctx) // the error is that of the next Read
		}
	}
}

func (s *Store) everything() ([]*document, []*guarded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.documents)), slices.Collect(maps.Values(s.managers))
}

// checkValue returns a value that can be used as a secret.
func checkValue(n name, value string) (string, error) {
	switch {
	case value == "":
		return "", &Error{Kind: Missing, Message: n.String() + " is empty", Fix: "store a value there"}
	case len(value) > secret.MaxSize:
		return "", &Error{Kind: Invalid, Message: n.String() + " is larger than 64 KiB", Fix: "refer to a field of it"}
	}
	return value, nil
}
