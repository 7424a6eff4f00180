package mcpapp

import (
	"bytes"
	"encoding/json"
	"maps"

	"sallyport/internal/jsonedit"
)

// Definition is the definition of a tool for clients.
type Definition struct {
	// Shown is for clients that show interfaces: their URIs are those that clients see. Text is for other clients.
	Shown, Text json.RawMessage
	// AppOnly reports that no model may call the tool.
	AppOnly bool
}

// uriKeys are the members of _meta that have the URI of the interface too: one is deprecated, and one is of a client.
func uriKeys() []string { return []string{"ui/resourceUri", "openai/outputTemplate"} }

// Interface returns the URI under which clients see the interface of an upstream's tool, "" if it has none.
func Interface(upstream string, definition json.RawMessage) string {
	if !bytes.Contains(definition, []byte("esourceUri")) {
		return "" // the common case
	}
	meta := members(members(definition)["_meta"])
	var uri string
	if json.Unmarshal(members(meta[metaKey])["resourceUri"], &uri) != nil {
		_ = json.Unmarshal(meta[uriKeys()[0]], &uri) // the deprecated member, if any
	}
	shown, _ := ShownURI(upstream, uri)
	return shown
}

// Rewrite returns the definition of an upstream's tool for clients. Members that say nothing about an interface stay as they are;
// invalid ones that do are removed.
func Rewrite(upstream string, definition json.RawMessage) (Definition, error) {
	all := Definition{Shown: definition, Text: definition, AppOnly: AppOnly(definition)}
	meta := members(members(definition)["_meta"])
	shown, text := maps.Clone(meta), maps.Clone(meta)
	for _, key := range append(uriKeys(), metaKey) {
		delete(text, key)
	}
	if len(text) == len(meta) {
		return all, nil
	}
	for _, key := range uriKeys() {
		rewriteURI(upstream, shown, key)
	}
	rewriteInterface(upstream, shown)
	var err error
	if all.Shown, err = withMeta(definition, shown); err != nil {
		return all, err
	}
	all.Text, err = withMeta(definition, text)
	return all, err
}

// rewriteInterface rewrites the member of a _meta about the interface.
func rewriteInterface(upstream string, meta map[string]json.RawMessage) {
	ui := members(meta[metaKey])
	if ui == nil {
		delete(meta, metaKey)
		return
	}
	rewriteURI(upstream, ui, "resourceUri")
	if _, ok := visibilityOf(meta[metaKey]); !ok {
		delete(ui, "visibility")
	}
	meta[metaKey], _ = json.Marshal(ui) // cannot fail: its parts are valid
}

// rewriteURI rewrites a member with the URI of an interface, or removes an invalid one.
func rewriteURI(upstream string, fields map[string]json.RawMessage, name string) {
	if _, has := fields[name]; !has {
		return
	}
	var uri string
	_ = json.Unmarshal(fields[name], &uri) // another value is no URI
	shown, ok := ShownURI(upstream, uri)
	if !ok {
		delete(fields, name)
		return
	}
	fields[name], _ = json.Marshal(shown) // cannot fail
}

func withMeta(definition json.RawMessage, meta map[string]json.RawMessage) (json.RawMessage, error) {
	encoded, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	return jsonedit.Edit(definition, map[string]json.RawMessage{"_meta": encoded})
}
