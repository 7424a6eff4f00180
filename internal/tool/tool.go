// Package tool has the types that all packages share: a tool of an upstream, a call, its result, and its errors. It
// imports only the standard library and internal/jsontype.
package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"sallyport/internal/jsontype"
)

// ID identifies one tool of one upstream. Both parts are identifiers as used in programs (see [Identifier]), not the
// wire names.
type ID struct {
	Upstream string
	Name     string
}

// String returns "upstream.name".
func (id ID) String() string { return id.Upstream + "." + id.Name }

// MarshalText writes the id as "upstream.name", so that it is a plain string in JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// ParseID reads "upstream.name". With a slash, the name must be one of the
// methods that a [Call] can ask for.
func ParseID(s string) (ID, error) {
	up, name, ok := strings.Cut(s, ".")
	if !ok || up == "" || name == "" || strings.Contains(name, ".") || strings.Contains(up, "/") || strings.Contains(name, "/") && !isMethod(name) {
		return ID{}, &Error{Kind: Invalid, Message: fmt.Sprintf("%.80q is not a tool id", s), Hint: "write upstream.tool, for example memory.read_graph"}
	}
	return ID{Upstream: up, Name: name}, nil
}

// Tool is one tool as described by its upstream. All text in it is untrusted.
type Tool struct {
	// ID is unique in a catalog.
	ID ID
	// Wire is the tool's name in tools/call.
	Wire        string
	Title       string
	Description string
	// Input is the JSON Schema of the arguments, Output that of the structured
	// result; Output is nil where the upstream did not give one (most do not).
	Input  json.RawMessage
	Output json.RawMessage
	// Annotations are hints of the upstream, only as trustworthy as the upstream.
	Annotations Annotations
	// Raw is the original definition, including members without a field here (_meta, icons, execution); nil for a tool
	// that no upstream sent.
	Raw json.RawMessage
	// Observed describes the results of the tool so far, nil if none was seen; it is not part of the definition.
	Observed *Observed `json:"-"`
	// Siblings maps names of the upstream's tools that are no identifiers to their names in programs; it is not part of the
	// definition. A description may use the former.
	Siblings map[string]string `json:"-"`
}

// Observed is what was learned from the results of a tool.
type Observed struct {
	// Shape is the shape of the value that a program receives (see [Result.Value]).
	Shape jsontype.Shape
	// Count is the number of results, rounded down to 1, 2, 5, 10, 20, 50 ... so that it seldom changes.
	Count int
}

// Annotations are MCP's tool hints. A nil hint was not sent; the protocol's
// defaults are then read-only false, destructive true, idempotent false, open world true.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// Digest identifies the definition: it changes when anything in it changes, including Raw.
func (t Tool) Digest() string {
	data, err := json.Marshal(t)
	if err != nil { // a RawMessage that is not JSON: still a definition to tell apart
		data = fmt.Appendf(nil, "%#v", t)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
