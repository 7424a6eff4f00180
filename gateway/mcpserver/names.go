package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"sallyport/internal/tool"
)

// maxShown is how long the name of a tool or prompt may be that a client is
// shown: some clients cut longer ones off.
const maxShown = 64

// plainName is a name that every client takes as it is (MCP asks for no more).
var plainName = regexp.MustCompile(`^[A-Za-z0-9_./-]{1,128}$`)

// namer gives tools, or prompts, the names that clients see. Each name belongs
// to one of them only, whatever the upstreams call theirs.
type namer struct {
	prefix bool
	taken  map[string]bool
}

func newNamer(prefix bool) *namer { return &namer{prefix: prefix, taken: map[string]bool{}} }

// name returns UPSTREAM__NAME; or, without prefixes, the name on the wire as
// long as no upstream before has the same. clash says that another has it.
func (n *namer) name(id tool.ID, wire string) (shown string, clash bool) {
	if !n.prefix && plainName.MatchString(wire) {
		if !n.taken[wire] {
			n.taken[wire] = true
			return wire, false
		}
		clash = true
	}
	for digits := 8; ; digits += 8 {
		if shown = prefixed(id, digits); !n.taken[shown] {
			n.taken[shown] = true
			return shown, clash
		}
	}
}

// prefixed joins both parts of an id. Where that could be read in two ways, or
// is too long, the name carries a digest of the id; more than 8 digits of it
// where the name with 8 is taken.
func prefixed(id tool.ID, digits int) string {
	joined := id.Upstream + "__" + id.Name
	ambiguous := strings.Index(joined, "__") != len(id.Upstream) || strings.LastIndex(joined, "__") != len(id.Upstream)
	if !ambiguous && len(joined) <= maxShown && digits == 8 {
		return joined
	}
	sum := sha256.Sum256([]byte(id.Upstream + "\x00" + id.Name))
	digest := hex.EncodeToString(sum[:])[:min(digits, 2*len(sum))]
	return joined[:min(len(joined), max(0, maxShown-1-len(digest)))] + "_" + digest
}
