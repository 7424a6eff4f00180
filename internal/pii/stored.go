package pii

import (
	"slices"
	"sync"
)

// Stored is a value with its token, which another process takes over.
type Stored struct {
	Kind     Kind     `json:"kind"`
	Value    string   `json:"value"`
	IsNumber bool     `json:"is_number,omitempty"`
	Label    string   `json:"label"`
	Number   int      `json:"number"`
	Spelling int      `json:"spelling"`
	Origins  []string `json:"origins,omitempty"`
	Sent     []string `json:"sent,omitempty"`
	Part     bool     `json:"part,omitempty"`
}

// exchange is what a vault shares with those of other processes.
type exchange struct {
	load    sync.Once
	on      bool
	storing sync.Mutex // held while changes are written
	changed []*entry   // since the last StoreChanged
	places  []Place
}

// Place is a session that uses a vault.
type Place struct{ Principal, Session string }

// note records that an entry has changed. It is called with mu held.
func (v *Vault) note(e *entry) {
	if v.exchange.on && !e.changed {
		e.changed = true
		v.exchange.changed = append(v.exchange.changed, e)
	}
}

// StoreChanged calls write for each session that uses the vault, with the values that are new or have changed since the last call. It
// returns when those of all callers are written; after an error they are part of the next call. There are none unless [Vaults.Load] is
// set.
func (v *Vault) StoreChanged(write func(at Place, values []Stored) error) error {
	v.exchange.storing.Lock()
	defer v.exchange.storing.Unlock()
	values, places := v.takeChanged()
	for _, at := range places {
		if err := write(at, values); err != nil {
			v.putBack(values)
			return err
		}
	}
	return nil
}

func (v *Vault) takeChanged() (values []Stored, places []Place) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.exchange.changed {
		values = append(values, e.stored())
		e.changed = false
	}
	v.exchange.changed = nil
	return values, slices.Clone(v.exchange.places)
}

func (v *Vault) putBack(values []Stored) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range values {
		if e := v.tokens[s.token()]; e != nil {
			v.note(e)
		}
	}
}

// All returns all values.
func (v *Vault) All() (values []Stored) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.oldest {
		values = append(values, e.stored())
	}
	return values
}

func (e *entry) stored() Stored {
	return Stored{e.kind, e.value, e.number, e.token.label, e.token.number, e.token.spell, slices.Clone(e.origins), slices.Clone(e.sent), e.part}
}

func (s Stored) token() tokenKey { return tokenKey{s.Label, s.Number, s.Spelling} }

// Add takes over values of another process. A value that has another token here keeps it, and both mean the value.
func (v *Vault) Add(values []Stored) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range values {
		e := v.tokens[s.token()]
		if e == nil {
			e = v.adopt(s)
		}
		if e.valueKey != (valueKey{s.Kind, s.Value, s.IsNumber}) { // cannot be: numbers are unique
			continue
		}
		e.origins = union(e.origins, s.Origins, maxOrigins)
		v.addSent(e, s.Sent)
	}
	v.evict()
}

// adopt adds an entry. It is not one of a group: two processes that count its spellings would use the same ones. It is called with
// mu held.
func (v *Vault) adopt(s Stored) *entry {
	e := &entry{valueKey: valueKey{s.Kind, s.Value, s.IsNumber}, part: s.Part, token: s.token(), adopted: true}
	e.text = token{label: s.Label, number: s.Number, spell: s.Spelling}.String()
	v.tokens[e.token] = e
	v.oldest = append(v.oldest, e)
	v.bytes += len(e.value)
	if v.values[e.valueKey] != nil {
		return e
	}
	v.values[e.valueKey] = e
	if e.kind == Name && !e.part {
		v.names.add(e.value)
	}
	v.index.add(e)
	return e
}

// addSent records to which upstreams an entry was sent elsewhere. It is called with mu held.
func (v *Vault) addSent(e *entry, upstreams []string) {
	for _, upstream := range upstreams {
		if slices.Contains(e.sent, upstream) {
			continue
		}
		e.sent = append(e.sent, upstream)
		if v.sentTo == nil {
			v.sentTo = map[string]bool{}
		}
		v.sentTo[upstream] = true
	}
	if v.values[e.valueKey] == e && len(upstreams) > 0 {
		v.index.add(e)
	}
}

// union appends what all lacks of more, up to a maximum.
func union(all, more []string, most int) []string {
	for _, one := range more {
		if len(all) < most && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
