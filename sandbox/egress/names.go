package egress

import (
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// maxNames bounds the names with an address; wildcards allow many.
	maxNames = 4096
	// nameTTL is the time in seconds that a sandbox may keep an address. It never changes.
	nameTTL = 600
)

// firstName is the synthetic address of the first name.
var firstName = netip.AddrFrom4([4]byte{198, 18, 1, 0})

// book maps allowed names to synthetic addresses, the same ones as long as it lives.
type book struct {
	mu     sync.Mutex
	byName map[string]netip.Addr
	byAddr map[netip.Addr]string
	next   netip.Addr
}

func newBook() *book {
	return &book{byName: map[string]netip.Addr{}, byAddr: map[netip.Addr]string{}, next: firstName}
}

// address returns the address of a name, false if there are too many.
func (b *book) address(name string) (netip.Addr, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at, ok := b.byName[name]; ok {
		return at, true
	}
	if len(b.byName) >= maxNames {
		return netip.Addr{}, false
	}
	at := b.next
	b.byName[name], b.byAddr[at], b.next = at, name, at.Next()
	return at, true
}

// name returns the name of an address.
func (b *book) name(at netip.Addr) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name, ok := b.byAddr[at]
	return name, ok
}

// answer answers a DNS query: an A query for an allowed name with its address, other queries for it with nothing, and all others with
// NXDOMAIN. No query goes to another resolver. It returns nil for what is not a query.
func answer(query []byte, allowed policy, names *book, refused func(Refusal)) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil || header.Response {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{question},
	}
	name := strings.ToLower(strings.TrimSuffix(question.Name.String(), "."))
	switch {
	case !allowed.names(name):
		reply.RCode = dnsmessage.RCodeNameError
		refused(Refusal{Host: name, Reason: ReasonName, Allow: name})
	case question.Type == dnsmessage.TypeA && question.Class == dnsmessage.ClassINET:
		at, ok := names.address(name)
		if !ok {
			reply.RCode = dnsmessage.RCodeRefused
			refused(Refusal{Host: name, Reason: ReasonNameCount})
			break
		}
		reply.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: nameTTL},
			Body:   &dnsmessage.AResource{A: at.As4()},
		}}
	}
	out, err := reply.Pack()
	if err != nil {
		return nil
	}
	return out
}
