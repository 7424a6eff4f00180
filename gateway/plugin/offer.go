package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sallyport/gateway/plugin/folder"
	"sallyport/internal/atomicfile"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxOffer bounds what a plugin says about its functions, in bytes; maxDoc the documentation of one, in characters.
	maxOffer = 256 << 10
	maxDoc   = 4000
)

// offer is what a plugin says about its tools and steps. It must not be modified.
type offer struct {
	Functions map[string]function `json:"functions"`
}

// newOffer checks what a plugin says about its functions.
func newOffer(p *folder.Plugin, functions map[string]function) (*offer, error) {
	o := &offer{Functions: map[string]function{}}
	for _, list := range [][]string{p.Tools, p.Steps} {
		for _, name := range list {
			f := functions[name]
			var schema struct {
				Type string `json:"type"`
			}
			if len(f.Input) == 0 || json.Unmarshal(f.Input, &schema) != nil || schema.Type != "object" {
				return nil, fmt.Errorf("the parameters of %s are not described", name)
			}
			f.Doc = sanitize.Text(f.Doc, maxDoc)
			o.Functions[name] = f
		}
	}
	if n := len(o.encode()); n > maxOffer {
		return nil, fmt.Errorf("what it says about its functions has more than %d KiB", maxOffer>>10)
	}
	return o, nil
}

func (o *offer) encode() []byte {
	data, err := json.Marshal(o)
	if err != nil { // a schema is not JSON, which it cannot be after decoding
		return nil
	}
	return data
}

func (o *offer) digest() string { return folder.Digest(o.encode()) }

// tools returns the tools of a plugin.
func (o *offer) tools(p *folder.Plugin) (list []tool.Tool) {
	yes, no := true, false
	for _, name := range p.Tools {
		f := o.Functions[name]
		t := tool.Tool{Wire: name, Description: f.Doc, Input: f.Input}
		if len(f.Output) > 0 {
			t.Output = wrappedSchema(f.Output)
		}
		if slices.Contains(p.ReadOnly, name) {
			t.Annotations = tool.Annotations{ReadOnly: &yes, Destructive: &no}
		}
		list = append(list, t)
	}
	return list
}

// isObject reports whether a schema is that of an object, which a structured result must be.
func isObject(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// wrappedSchema returns the schema of a structured result: of {"result": VALUE} for a value that is no object, as FastMCP does.
func wrappedSchema(schema json.RawMessage) json.RawMessage {
	if isObject(schema) {
		return schema
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{"result":%s},"required":["result"],"x-fastmcp-wrap-result":true}`, schema)
}

// toolResult makes a result of the value of a tool.
func toolResult(value json.RawMessage, f function) tool.Result {
	r := textResult(value)
	switch {
	case len(f.Output) > 0 && !isObject(f.Output):
		r.Structured = fmt.Appendf(nil, `{"result":%s}`, value)
	case bytes.HasPrefix(value, []byte("{")):
		r.Structured = value
	}
	return r
}

// textResult makes a result with one text: a string as it is, all else in JSON.
func textResult(value json.RawMessage) tool.Result {
	text := string(value)
	var plain string
	if json.Unmarshal(value, &plain) == nil && text != "null" {
		text = plain
	}
	return tool.Result{Content: []tool.Content{{Type: "text", Text: text}}}
}

// offers caches offers, so that a plugin need not be started to list its tools. The digest of an offer names its file.
type offers struct{ dir string } // "" keeps none

func (c offers) path(digest string) string { return filepath.Join(c.dir, digest+".json") }

// load returns the offer with a digest, nil if it is not cached.
func (c offers) load(digest string) *offer {
	if c.dir == "" || digest == "" {
		return nil
	}
	data, err := os.ReadFile(c.path(digest))
	o := &offer{}
	if err != nil || json.Unmarshal(data, o) != nil || o.digest() != digest {
		return nil
	}
	return o
}

// save stores an offer; without it the next process starts the plugin.
func (c offers) save(o *offer) {
	if c.dir == "" || c.load(o.digest()) != nil {
		return
	}
	if os.MkdirAll(c.dir, 0o700) == nil {
		_ = atomicfile.Replace(c.path(o.digest()), o.encode(), 0o600)
	}
}
