package secretstore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/sanitize"
)

// answer is what a manager has under a name.
type answer struct {
	// fields are its values by name; text is the whole, for managers whose secrets are texts.
	fields map[string]string
	text   string
	// lease is that of the secret; zero for none.
	lease lease
}

// lease is the right to use a secret for some time.
type lease struct {
	id        string
	lasts     time.Duration
	renewable bool
}

// manager is a secret manager.
type manager interface {
	// read returns what is stored under a name.
	read(ctx context.Context, n name) (answer, error)
	// renew extends a lease.
	renew(ctx context.Context, l lease) (lease, error)
}

// keeper is a manager with credentials of its own that are renewed.
type keeper interface {
	// due returns when maintain is to be called, zero for never.
	due() time.Time
	maintain(ctx context.Context)
}

// pause is how long a manager that failed is left alone: several references to it would wait one after the other.
const pause = 5 * time.Second

// guarded is a manager that is not asked again for some time after it could not be reached.
type guarded struct {
	manager
	mu    sync.Mutex
	until time.Time
	err   error
}

func (g *guarded) due() (at time.Time) {
	if k, ok := g.manager.(keeper); ok {
		return k.due()
	}
	return at
}

func (g *guarded) maintain(ctx context.Context) {
	if k, ok := g.manager.(keeper); ok {
		k.maintain(ctx)
	}
}

func (g *guarded) read(ctx context.Context, n name) (answer, error) {
	g.mu.Lock()
	until, failed := g.until, g.err
	g.mu.Unlock()
	if time.Now().Before(until) {
		return answer{}, failed
	}
	a, err := g.manager.read(ctx, n)
	if e, ok := errors.AsType[*Error](err); ok && e.Kind == Unreachable {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.until, g.err = time.Now().Add(max(pause, min(e.after, time.Minute))), err
	}
	return a, err
}

// document is what a manager has under a name, as it was read last.
type document struct {
	name          name
	manager       *guarded
	store         *Store
	refresh, keep time.Duration
	used          int // the store's generation; under its mu

	mu     sync.Mutex
	has    bool // there is a value
	value  answer
	read   time.Time // when the value was read
	until  time.Time // a lease ends then
	next   time.Time // when it is to be read or renewed
	err    *Error    // of the last try, if there is no value
	warned bool
}

// due returns when it is to be renewed.
func (d *document) due() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next.IsZero() {
		return time.Now().Add(d.refresh)
	}
	return d.next
}

// current returns the value, which it reads if it is due.
func (d *document) current(ctx context.Context) (answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.next.IsZero() || !time.Now().Before(d.next) {
		d.update(ctx)
	}
	return d.value, d.failure()
}

// again returns the value, which it reads again unless it is recent or leased.
func (d *document) again(ctx context.Context) (answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if d.next.IsZero() || !now.Before(d.next) || now.Sub(d.read) >= recent && d.until.IsZero() {
		d.update(ctx)
	}
	return d.value, d.failure()
}

// failure returns the error of the last try as an error, nil for none.
func (d *document) failure() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// update renews the lease, or reads the value. It is called with mu held.
func (d *document) update(ctx context.Context) {
	if d.has && d.renewLease(ctx) {
		return
	}
	a, err := d.manager.read(ctx, d.name)
	if err != nil {
		d.fail(about(d.name, err))
		return
	}
	if d.err != nil || d.has && !a.equal(d.value) {
		d.store.changed.Store(true)
	}
	d.has, d.value, d.read, d.err, d.warned, d.until = true, a, time.Now(), nil, false, time.Time{}
	d.next = d.read.Add(d.refresh)
	if a.lease.id != "" {
		d.leaseFor(a.lease)
	}
	d.store.signal()
}

// leaseFor plans the renewal of a lease.
func (d *document) leaseFor(l lease) {
	now := time.Now()
	d.value.lease.renewable = l.renewable
	d.until, d.next = now.Add(l.lasts), now.Add(l.lasts*2/3)
}

// renewLease reports whether the lease was renewed for a time that is worth it: at the end of the longest time that a
// manager allows, a lease gets shorter each time, and another secret is needed.
func (d *document) renewLease(ctx context.Context) bool {
	l := d.value.lease
	if l.id == "" || !l.renewable || !time.Now().Before(d.until) {
		return false
	}
	renewed, err := d.manager.renew(ctx, l)
	if err != nil || renewed.lasts < l.lasts/2 {
		return false
	}
	d.leaseFor(renewed)
	return true
}

const (
	// retryFailed is when a value that could not be read is tried again.
	retryFailed = 10 * time.Second
	// retryCached is the same where a cached value is used meanwhile.
	retryCached = 30 * time.Second
)

// fail keeps the cached value while it is valid, if the manager has not refused to give it.
func (d *document) fail(err *Error) {
	now := time.Now()
	valid := d.read.Add(d.keep)
	if !d.until.IsZero() {
		valid = d.until
	}
	if d.has && err.isTransient() && now.Before(valid) {
		if d.next = now.Add(retryCached); d.next.After(valid) {
			d.next = valid
		}
		if !d.warned {
			d.store.opts.Logger.Warn("a secret is not renewed, its cached value is used", "secret", d.name.String(), "error", err.Error(), "until", valid.UTC().Format(time.RFC3339))
		}
		d.warned = true
		return
	}
	d.has, d.value, d.until, d.err, d.next = false, answer{}, time.Time{}, err, now.Add(retryFailed)
}

func (a answer) equal(b answer) bool { return a.text == b.text && maps.Equal(a.fields, b.fields) }

// field returns the value that a name refers to.
func (a answer) field(n name) (string, error) {
	if n.field == "" && a.fields == nil {
		return checkValue(n, a.text)
	}
	fields := a.fields
	if fields == nil {
		var err error
		if fields, err = textFields([]byte(a.text)); err != nil {
			return "", &Error{Kind: Missing, Message: n.String() + ` has no fields, as it is no JSON object`, Fix: `leave out "#" and what follows`}
		}
	}
	value, ok := fields[n.field]
	if !ok {
		return "", &Error{Kind: Missing, Message: n.String() + ": there is no field " + quoted(n.field), Fix: "it has " + fieldNames(fields)}
	}
	return checkValue(n, value)
}

// fieldNames lists the names of fields, which are no secrets.
func fieldNames(fields map[string]string) string {
	if len(fields) == 0 {
		return "none"
	}
	return sanitize.Line(strings.Join(slices.Sorted(maps.Keys(fields)), ", "), 100)
}

// textFields returns the fields of a JSON object: texts, numbers and booleans; others as JSON.
func textFields(data []byte) (map[string]string, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || raw == nil {
		return nil, errors.New("no JSON object")
	}
	fields := map[string]string{}
	for name, value := range raw {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		fields[name] = text
	}
	return fields, nil
}
