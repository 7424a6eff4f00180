// Package naming gives the tools and prompts of all upstreams the names that clients see. Its main type is [Namer].
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"sallyport/internal/tool"
)

// maxShownName is the length in bytes of the longest tool or prompt name that clients see:
// some clients truncate longer ones.
const maxShownName = 64

// plainName matches the names that MCP allows, which every client accepts.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

// Namer assigns tools, or prompts, the names that clients see. Each name is unique,
// even if upstreams use the same one.
type Namer struct {
	prefix bool
	taken  map[string]bool
}

// New returns a namer, which gives all names a prefix or only those that are taken.
func New(prefix bool) *Namer { return &Namer{prefix: prefix, taken: map[string]bool{}} }

// Name returns UPSTREAM__NAME; or, without prefixes, the name on the wire as
// long as no earlier upstream has the same. clash reports that one has.
func (n *Namer) Name(id tool.ID, wire string) (shown string, clash bool) {
	if !n.prefix && plainName.MatchString(wire) {
		if !n.taken[wire] {
			n.taken[wire] = true
			return wire, false
		}
		clash = true
	}
	for digits := 8; ; digits += 8 {
		if shown = prefixedName(id, digits); !n.taken[shown] {
			n.taken[shown] = true
			return shown, clash
		}
	}
}

// prefixedName joins both parts of an ID. Where the result is ambiguous or too long,
// the name ends in a digest of the ID, with more than 8 digits where a shorter
// one is taken.
func prefixedName(id tool.ID, digits int) string {
	joined := id.Upstream + "__" + id.Name
	ambiguous := strings.Index(joined, "__") != len(id.Upstream) || strings.LastIndex(joined, "__") != len(id.Upstream)
	if !ambiguous && len(joined) <= maxShownName && digits == 8 {
		return joined
	}
	sum := sha256.Sum256([]byte(id.Upstream + "\x00" + id.Name))
	digest := hex.EncodeToString(sum[:])[:min(digits, 2*len(sum))]
	return joined[:min(len(joined), max(0, maxShownName-1-len(digest)))] + "_" + digest
}
