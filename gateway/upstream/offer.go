package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"sallyport/internal/tool"
)

// maxInstructions bounds what is kept of a server's instructions, in bytes.
const maxInstructions = 64 << 10

// parts is a set of the parts of an offer.
type parts uint8

const (
	toolPart parts = 1 << iota
	resourcePart
	templatePart
	promptPart

	allParts = toolPart | resourcePart | templatePart | promptPart
)

// listing is the outcome of one listing: the parts of the offer that were listed.
type listing struct {
	offer tool.Offer
	parts parts
}

// list requests the wanted parts. A failed list of tools is an error; the other
// lists are optional: they have a shorter time limit, and failures are only logged.
func (l *link) list(ctx context.Context, wanted parts) (listing, error) {
	h := listing{offer: tool.Offer{Server: l.server}}
	if wanted&toolPart != 0 {
		if l.offers("tools") || l.declaresNoLists() {
			found, err := list(ctx, l, toolFamily(l.settings))
			if err != nil {
				return h, err
			}
			h.offer.Tools = l.nameTools(found)
		}
		h.parts |= toolPart
	}
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, l.optionalTimeout)
	defer cancel()
	listInto(limited, l, &h, wanted&resourcePart, "resources", resourceFamily(), &h.offer.Resources)
	listInto(limited, l, &h, wanted&templatePart, "resources", templateFamily(), &h.offer.Templates)
	listInto(limited, l, &h, wanted&promptPart, "prompts", promptFamily(), &h.offer.Prompts)
	if limited.Err() != nil {
		l.log.Warn("resources and prompts took too long to list", "waited", time.Since(begin).Round(time.Millisecond))
	}
	return h, l.wire.reason()
}

// listInto lists one of the optional parts; it does nothing if p is empty.
func listInto[T any](ctx context.Context, l *link, h *listing, p parts, capability string, f family[T], into *[]T) {
	if p == 0 {
		return
	}
	if l.offers(capability) {
		found, err := list(ctx, l, f)
		if err != nil {
			l.log.Warn("cannot list", "method", f.method, "reason", l.wire.redactor.describe(err))
			return
		}
		*into = found
	}
	h.parts |= p
}

// offers reports whether the server declared the capability.
func (l *link) offers(capability string) bool { return isObject(l.capabilities[capability]) }

// declaresNoLists reports whether the server declared neither resources nor prompts; then its tools are listed even if undeclared.
func (l *link) declaresNoLists() bool { return !l.offers("resources") && !l.offers("prompts") }

// catalog is an upstream's offer with its indexes.
type catalog struct {
	offer  tool.Offer
	wire   map[string]string // tool.ID.Name to the name in tools/call
	index  map[string]int    // tool.ID.Name to its place in offer.Tools
	digest [sha256.Size]byte
	listed bool // from a listing, not only from the cache
}

// prime fills the catalog with a cached offer; nil is none.
func (c *catalog) prime(known *tool.Offer) {
	if known != nil {
		c.set(*known)
	}
}

// merge applies a listing and reports whether the offer differs from the last.
func (c *catalog) merge(h listing) bool {
	next := c.offer
	next.Server = h.offer.Server
	if h.parts&toolPart != 0 {
		next.Tools = h.offer.Tools
	}
	if h.parts&resourcePart != 0 {
		next.Resources = h.offer.Resources
	}
	if h.parts&templatePart != 0 {
		next.Templates = h.offer.Templates
	}
	if h.parts&promptPart != 0 {
		next.Prompts = h.offer.Prompts
	}
	before, first := c.digest, !c.listed
	c.set(next)
	c.listed = true
	return first || before != c.digest
}

func (c *catalog) set(offer tool.Offer) {
	c.offer, c.digest = offer, digestOf(offer)
	c.wire, c.index = make(map[string]string, len(offer.Tools)), make(map[string]int, len(offer.Tools))
	for i, t := range offer.Tools {
		c.wire[t.ID.Name], c.index[t.ID.Name] = t.Wire, i
	}
}

// digestOf returns a digest of an offer, of the definitions as they were sent.
func digestOf(offer tool.Offer) (digest [sha256.Size]byte) {
	sum := sha256.New()
	part := func(raw []byte) {
		one := sha256.Sum256(raw)
		sum.Write(one[:])
	}
	for _, t := range offer.Tools {
		part([]byte(t.ID.Name))
		part(t.Raw)
	}
	part(nil)
	for _, r := range offer.Resources {
		part(r.Raw)
	}
	part(nil)
	for _, t := range offer.Templates {
		part(t.Raw)
	}
	part(nil)
	for _, p := range offer.Prompts {
		part(p.Raw)
	}
	server, _ := json.Marshal(offer.Server) // fails only if the capabilities are invalid JSON
	part(server)
	sum.Sum(digest[:0])
	return digest
}

func (c *catalog) tool(name string) (tool.Tool, bool) {
	i, ok := c.index[name]
	if !ok {
		return tool.Tool{}, false
	}
	return c.offer.Tools[i], true
}

func (c *catalog) names() []string {
	names := make([]string, len(c.offer.Tools))
	for i, t := range c.offer.Tools {
		names[i] = t.ID.Name
	}
	return names
}

// clone returns the offer with copies of its lists.
func (c *catalog) clone() tool.Offer {
	offer := c.offer
	offer.Tools = slices.Clone(offer.Tools)
	offer.Resources = slices.Clone(offer.Resources)
	offer.Templates = slices.Clone(offer.Templates)
	offer.Prompts = slices.Clone(offer.Prompts)
	return offer
}

// nameTools removes the tools that the settings exclude, assigns the others their
// IDs, and sorts by ID.
func (l *link) nameTools(found []tool.Tool) []tool.Tool {
	found = slices.DeleteFunc(found, func(t tool.Tool) bool { return !includes(l.settings, t.Wire) })
	ids := tool.Identifiers(l.applyRenames(found))
	for i := range found {
		found[i].ID = tool.ID{Upstream: l.settings.ID, Name: ids[i]}
	}
	slices.SortStableFunc(found, func(a, b tool.Tool) int { return strings.Compare(a.ID.Name, b.ID.Name) })
	skipped := skipLog{link: l, noun: "tool"}
	defer skipped.close()
	return slices.CompactFunc(found, func(a, b tool.Tool) bool {
		if a.ID != b.ID { // equal only if a name imitates the ID of another
			return false
		}
		skipped.skip(b.Wire, "its identifier is taken")
		return true
	})
}

// includes reports whether the settings include a tool with that name on the wire.
func includes(s Settings, wire string) bool {
	if s.IsAPI() { // the packages of APIs have applied them
		return true
	}
	fits := func(glob string) bool {
		ok, err := path.Match(glob, wire)
		return err == nil && ok // invalid patterns are rejected when the configuration is read
	}
	return (len(s.Include) == 0 || slices.ContainsFunc(s.Include, fits)) && !slices.ContainsFunc(s.Exclude, fits)
}

// applyRenames returns the names for the IDs, after the settings' renames. A rename whose
// identifier is that of another tool, by its own name or a rename, is dropped: every
// tool that was to get that name keeps its own.
func (l *link) applyRenames(found []tool.Tool) []string {
	names := make([]string, len(found))
	for i, t := range found {
		if names[i] = t.Wire; l.settings.Rename[t.Wire] != "" {
			names[i] = l.settings.Rename[t.Wire]
		}
	}
	for clash := true; clash; { // a tool that keeps its own name may collide with another rename
		clash = false
		owners := map[string]int{}
		for _, name := range names {
			owners[tool.Identifier(name)]++
		}
		for i, t := range found {
			if names[i] == t.Wire || owners[tool.Identifier(names[i])] == 1 {
				continue
			}
			l.log.Warn("tool keeps its own name, the new one is taken", "tool", l.show(t.Wire), "rename", l.show(names[i]))
			names[i], clash = t.Wire, true
		}
	}
	return names
}

// truncate truncates s to at most n bytes, at a rune boundary.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
