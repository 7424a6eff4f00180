package pii

import (
	"slices"
	"strconv"
	"sync"
)

// maxVaults bounds the number of vaults; beyond it the least recently used one is dropped.
const maxVaults = 256

// Vaults holds the vaults of all principals and sessions. The zero value is empty. It is safe for concurrent use.
type Vaults struct {
	mu     sync.Mutex
	all    map[string]*Vault
	used   []string // least recently used first
	leased map[string]int

	// Lease, if set before the first use, keeps numbers unique beyond the life of this process.
	Lease Lease
	// Load, if set before the first use, adds what other processes know of a session to its vault before it is used.
	Load func(at Place, v *Vault)
}

// Of returns the vault of a session of a principal.
func (v *Vaults) Of(principal, session string) *Vault {
	one := v.of(principal, session)
	if v.Load != nil {
		one.exchange.load.Do(func() { v.Load(Place{principal, session}, one) })
	}
	return one
}

// Known returns the vault of a session if it was used, else nil.
func (v *Vaults) Known(at Place) *Vault {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all[strconv.Quote(at.Principal)+at.Session]
}

func (v *Vaults) of(principal, session string) *Vault {
	key := strconv.Quote(principal) + session
	v.mu.Lock()
	defer v.mu.Unlock()
	if at := slices.Index(v.used, key); at >= 0 {
		if at < len(v.used)-1 {
			v.used = append(slices.Delete(v.used, at, at+1), key)
		}
		return v.all[key]
	}
	if v.all == nil {
		v.all = map[string]*Vault{}
	}
	if len(v.used) == maxVaults {
		delete(v.all, v.used[0])
		v.used = slices.Delete(v.used, 0, 1)
	}
	lease := v.Lease
	if lease == nil {
		lease = v.lease
	}
	one := newVault(maxValues, func(size int) int { return lease(principal, size) })
	one.exchange.on, one.exchange.places = v.Load != nil, []Place{{principal, session}}
	v.all[key] = one
	v.used = append(v.used, key)
	return one
}

// Share makes one session of a principal use the vault of another: tokens mean the same in both.
func (v *Vaults) Share(principal, from, to string) {
	vault := v.Of(principal, from)
	v.of(principal, to) // which makes room
	vault.mu.Lock()
	vault.exchange.places = append(vault.exchange.places, Place{principal, to})
	vault.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all[strconv.Quote(principal)+to] = vault
}

// maxNumber is where numbers wrap around: a token's number has at most nine digits.
const maxNumber = 900_000_000

// lease keeps numbers unique while the process lives.
func (v *Vaults) lease(principal string, size int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.leased == nil {
		v.leased = map[string]int{}
	}
	base := v.leased[principal] % maxNumber
	v.leased[principal] = base + size
	return base
}
