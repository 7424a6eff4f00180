// Package mcpapp has the vocabulary of MCP Apps, the extension with user interfaces of tools: what a client declares, what the
// definition of a tool has, and the ui:// URIs of the interfaces. Definitions and URIs are those of upstreams, and untrusted.
package mcpapp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"sallyport/internal/sanitize"
)

const (
	// Extension identifies the extension in capabilities.
	Extension = "io.modelcontextprotocol/ui"
	// MIMEType is that of an interface.
	MIMEType = "text/html;profile=mcp-app"

	scheme = "ui://"
	// maxURI is the maximum length of a URI in bytes.
	maxURI = 2 << 10
	// metaKey is the member of a definition's _meta about its interface.
	metaKey = "ui"
)

// Capability returns the value of the extension in a client's capabilities.
func Capability() map[string]any { return map[string]any{"mimeTypes": []string{MIMEType}} }

// Accepted reports whether a client with those capabilities shows interfaces.
func Accepted(capabilities json.RawMessage) bool {
	declared := members(members(members(capabilities)["extensions"])[Extension])
	var types []string
	return json.Unmarshal(declared["mimeTypes"], &types) == nil && slices.Contains(types, MIMEType)
}

// IsURI reports whether a URI has the scheme of interfaces.
func IsURI(uri string) bool { return strings.HasPrefix(uri, scheme) }

// ShownURI returns the URI under which clients see an upstream's interface: ui://UPSTREAM/ followed by the URI without its scheme.
// No two interfaces have the same, as the ID of an upstream has no slash. ok is false for a URI that is not one of an interface.
func ShownURI(upstream, uri string) (shown string, ok bool) {
	if !IsURI(uri) || len(uri) > maxURI || strings.ContainsFunc(uri, isInvalid) {
		return "", false
	}
	return scheme + upstream + "/" + strings.TrimPrefix(uri, scheme), true
}

// isInvalid reports whether a URI cannot have r.
func isInvalid(r rune) bool { return r <= ' ' || r == '\ufffd' || sanitize.Hidden(r) }

// SplitURI returns the upstream and its own URI of an interface by the URI that clients see.
func SplitURI(shown string) (upstream, uri string, ok bool) {
	upstream, rest, ok := strings.Cut(strings.TrimPrefix(shown, scheme), "/")
	if _, valid := ShownURI("", scheme+rest); !ok || !IsURI(shown) || !valid {
		return "", "", false
	}
	return upstream, scheme + rest, true
}

// AppOnly reports whether only interfaces may call a tool with that definition, and not a model.
func AppOnly(definition json.RawMessage) bool {
	if !bytes.Contains(definition, []byte("visibility")) {
		return false // the common case
	}
	visibility, ok := visibilityOf(members(members(definition)["_meta"])[metaKey])
	return ok && !slices.Contains(visibility, "model")
}

// ForApps reports whether interfaces may call a tool with that definition, as they may unless it says otherwise.
func ForApps(definition json.RawMessage) bool {
	visibility, ok := visibilityOf(members(members(definition)["_meta"])[metaKey])
	return !ok || slices.Contains(visibility, "app")
}

// visibilityOf returns who may call a tool; ok is false if its interface does not say so.
func visibilityOf(ui json.RawMessage) (visibility []string, ok bool) {
	ok = json.Unmarshal(members(ui)["visibility"], &visibility) == nil && visibility != nil
	return visibility, ok
}

// members returns the members of an object, nil for any other value.
func members(raw json.RawMessage) (all map[string]json.RawMessage) {
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}
