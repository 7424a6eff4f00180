package executor

import (
	"encoding/json"
	"sync"

	"sallyport/internal/mcpapp"
	"sallyport/internal/tool"
)

const (
	// maxInterfaces is how many user interfaces one program can show, and maxShown the size of the result for one, in bytes.
	maxInterfaces = 32
	maxShown      = 1 << 20
)

// interfaces holds the last result of each tool with a user interface (MCP Apps) that a program called, by the URI that clients
// see: a program that emits this URI shows the result. The zero value is ready; it is safe for concurrent use.
type interfaces struct {
	mu      sync.Mutex
	results map[string]tool.Content
}

// keep keeps the result of a tool with a definition.
func (i *interfaces) keep(id tool.ID, definition json.RawMessage, result tool.Result) {
	uri := mcpapp.Interface(id.Upstream, definition)
	if uri == "" || result.IsError {
		return
	}
	shown := tool.Content{Type: "text", Text: result.Text(), MIME: "text/plain", URI: uri, Name: id.String(), Raw: rawResult(result)}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.results == nil {
		i.results = map[string]tool.Content{}
	}
	if _, known := i.results[uri]; known || len(i.results) < maxInterfaces {
		i.results[uri] = shown
	}
}

// show replaces the URIs among what the program emitted by the results. Where a result is too large, its text remains.
func (i *interfaces) show(emitted []tool.Content) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, c := range emitted {
		shown, ok := i.results[c.Text]
		if c.Type != "text" || !ok {
			continue
		}
		if len(shown.Raw) > maxShown {
			shown.Raw, shown.URI = nil, ""
		}
		emitted[n] = shown
	}
}

// rawResult returns what an interface gets of a result: the structured content, and the texts.
func rawResult(result tool.Result) json.RawMessage {
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	all := struct {
		Content    []block         `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
	}{Content: []block{}, Structured: result.Structured}
	for _, c := range result.Content {
		if c.Type == "text" {
			all.Content = append(all.Content, block{"text", c.Text})
		}
	}
	raw, _ := json.Marshal(all) // an upstream's structured content is valid
	return raw
}
