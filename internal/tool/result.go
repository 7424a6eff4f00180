package tool

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Result is the result of a tool.
type Result struct {
	Content []Content
	// Structured is the structuredContent, nil if there was none.
	Structured json.RawMessage
	// IsError means that the tool itself reports a failure, described in Content.
	IsError bool
	// Raw is the original result, for callers that forward it; nil if the gateway made it.
	Raw json.RawMessage
	// Form says how the tool's results are read.
	Form Form `json:"-"`
}

// Content is one block of a result.
type Content struct {
	// Type is MCP's: text, image, audio, resource, resource_link, or an unknown one.
	Type string
	Text string
	// Data holds the bytes of an image, an audio clip or a binary resource.
	Data []byte
	MIME string
	URI  string
	Name string
	// Raw is the original block, for types that have no other field here.
	Raw json.RawMessage
}

// Value is a result as programs receive it: exactly one of the fields is set. The tag on every level keeps an
// upstream from forging a blob inside JSON.
type Value struct {
	JSON  json.RawMessage `json:"json,omitempty"`
	Blob  *Blob           `json:"blob,omitempty"`
	Parts []Value         `json:"parts,omitempty"`
}

// Blob is binary content.
type Blob struct {
	MIME string `json:"mime"`
	// Data is base64 on the wire.
	Data []byte `json:"data"`
	URI  string `json:"uri,omitempty"`
	Name string `json:"name,omitempty"`
}

// Value converts the result for programs: the structured content if there is any; else the only block, or the list of
// all blocks. A text that is a whole JSON object or array, null, true or false is parsed; every other text stays a string,
// so that "007" and "1e5" do not change, nor a result's type from call to call. The form of the tool says more.
func (r Result) Value() Value {
	if len(r.Structured) > 0 && !bytes.Equal(bytes.TrimSpace(r.Structured), []byte("null")) {
		if r.Form.Wrapped {
			return Value{JSON: unwrapped(r.Structured)}
		}
		return Value{JSON: r.Structured}
	}
	switch len(r.Content) {
	case 0:
		return Value{JSON: json.RawMessage("null")}
	case 1:
		return r.Content[0].value(r.Form)
	}
	parts := make([]Value, len(r.Content))
	for i, c := range r.Content {
		parts[i] = c.value(Form{Texts: true})
	}
	return Value{Parts: parts}
}

// Plain returns the value for [json.Marshal]: JSON unchanged, a blob as an object that describes it, several parts as
// a list. To distinguish a blob from JSON of the same form, use the Value itself.
func (v Value) Plain() any {
	switch {
	case v.Blob != nil:
		return v.Blob
	case v.Parts != nil:
		parts := make([]any, len(v.Parts))
		for i, part := range v.Parts {
			parts[i] = part.Plain()
		}
		return parts
	case v.JSON == nil:
		return nil
	}
	return v.JSON
}

// Text joins the text blocks, for example of an error.
func (r Result) Text() string {
	var texts []string
	for _, c := range r.Content {
		if c.Text != "" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (c Content) value(form Form) Value {
	switch {
	case c.Data != nil:
		return Value{Blob: &Blob{MIME: c.MIME, Data: c.Data, URI: c.URI, Name: c.Name}}
	case c.Type == "text":
		return Value{JSON: textValue(c.Text, form)}
	case c.Raw != nil && c.Type != "resource":
		return Value{JSON: c.Raw}
	default:
		return Value{JSON: resourceValue(c)}
	}
}

func textValue(text string, form Form) json.RawMessage {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
	case trimmed[0] == '{', trimmed[0] == '[':
		if raw := json.RawMessage(trimmed); json.Valid(raw) {
			return raw
		}
	case trimmed == "null", !form.Texts && (trimmed == "true" || trimmed == "false"), form.Numbers && IsNumber(trimmed):
		return json.RawMessage(trimmed)
	}
	return quote(text)
}

// quote returns text as a JSON string. It makes only one copy, as texts can be large.
func quote(text string) json.RawMessage {
	text = strings.ToValidUTF8(text, "\uFFFD")
	size := len(text) + 2
	for i := range len(text) {
		size += escapeSize(text[i])
	}
	quoted := append(make([]byte, 0, size), '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if escapeSize(c) == 0 {
			continue
		}
		quoted = appendEscape(append(quoted, text[from:i]...), c)
		from = i + 1
	}
	return append(append(quoted, text[from:]...), '"')
}

// escapeSize returns how many more bytes a byte takes in JSON.
func escapeSize(c byte) int {
	switch {
	case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
		return 1
	case c < ' ':
		return len(`\u0000`) - 1
	}
	return 0
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	case '"', '\\':
		return append(b, '\\', c)
	}
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

func resourceValue(c Content) json.RawMessage {
	return mustJSON(struct {
		URI  string `json:"uri,omitempty"`
		Name string `json:"name,omitempty"`
		MIME string `json:"mimeType,omitempty"`
		Text string `json:"text,omitempty"`
	}{c.URI, c.Name, c.MIME, c.Text})
}

// mustJSON marshals values made of strings only, which cannot fail.
func mustJSON(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(buf.Bytes())
}
