package bridge

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// The bounds of one emitted item, in addition to those of [Limits].
const (
	// maxEmitText is the maximum size of a text block in bytes; longer text must be a file.
	maxEmitText = 64 << 10
	// maxEmitName is in characters, maxEmitURI in bytes.
	maxEmitName = 100
	maxEmitURI  = 2 << 10
)

// emittedItems holds what a program emitted, in order.
type emittedItems struct {
	mu    sync.Mutex
	items []tool.Content
	bytes int
}

// emitContent is an item that a guest emits.
type emitContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Data is base64.
	Data string `json:"data"`
	MIME string `json:"mimeType"`
	Name string `json:"name"`
	URI  string `json:"uri"`
}

func (e *emittedItems) list() []tool.Content {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.items)
}

// emit stores the item of one frame, or sends an error. The reader calls it, so that
// items keep the program's order.
func (s *session) emit(frame guestFrame) {
	c, err := readContent(frame.Content, s.Limits.Emit)
	if err == nil {
		err = s.emitted.add(c, s.Limits)
	}
	if err != nil {
		s.fail(frame.ID, err)
		return
	}
	s.sendValue(frame.ID, tool.Value{})
}

func (e *emittedItems) add(c tool.Content, limits Limits) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.items) >= limits.Emits {
		return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("this program has emitted its %d items", limits.Emits), Hint: "put more into one: a table, an archive, a picture of several"}
	}
	size := len(c.Text) + len(c.Data) + len(c.MIME) + len(c.Name) + len(c.URI)
	if e.bytes+size > limits.Emitted {
		return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("a program can emit %s in all, and this has %s beside %s before", formatSize(limits.Emitted), formatSize(size), formatSize(e.bytes)), Hint: smallerHint}
	}
	e.items, e.bytes = append(e.items, c), e.bytes+size
	return nil
}

const smallerHint = "make it smaller: fewer pixels, rows or seconds, or compressed"

// readContent validates an emitted item. Only its text and its data are kept as they
// are; type, name and URI are checked or cleaned.
func readContent(raw json.RawMessage, limit int) (tool.Content, error) {
	var c emitContent
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil {
		return tool.Content{}, invalidError("what is emitted must be an object with type, and text or data", "")
	}
	err := c.check(limit)
	if err != nil {
		return tool.Content{}, err
	}
	out := tool.Content{Type: c.Type, Text: c.Text, Name: baseName(c.Name)}
	if out.MIME, err = mimeType(c); err != nil {
		return tool.Content{}, err
	}
	if out.URI, err = checkURI(c.URI); err != nil {
		return tool.Content{}, err
	}
	if c.Data != "" {
		if out.Data, err = base64.StdEncoding.Strict().DecodeString(c.Data); err != nil {
			return tool.Content{}, invalidError("data is not base64", "standard alphabet, with padding, without line breaks")
		}
	}
	return out, nil
}

// check validates which fields are set, and their lengths.
func (c emitContent) check(limit int) error {
	switch c.Type {
	case "text":
		if c.Text == "" || c.Data != "" {
			return invalidError("a text has text and no data", "")
		}
		if len(c.Text) > maxEmitText {
			return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("a text of %s; at most %s can be emitted as text", formatSize(len(c.Text)), formatSize(maxEmitText)), Hint: "emit it as a file"}
		}
	case "image", "audio":
		if c.Data == "" || c.Text != "" {
			return invalidError("an "+c.Type+" has data and no text", "")
		}
	case "resource":
		if c.Data != "" && c.Text != "" {
			return invalidError("a resource has either text or data", "")
		}
	default:
		return invalidError(fmt.Sprintf("type %q cannot be emitted", sanitize.Line(c.Type, 40)), "text, image, audio or resource")
	}
	bytes := len(c.Data)/4*3 - (len(c.Data) - len(strings.TrimRight(c.Data, "=")))
	if size := max(len(c.Text), bytes); size > limit {
		return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("that is %s; at most %s can be emitted at once", formatSize(size), formatSize(limit)), Hint: smallerHint}
	}
	if strings.ContainsAny(c.Data, "\r\n") { // the decoder ignores line breaks
		return invalidError("data is not base64", "standard alphabet, with padding, without line breaks")
	}
	return nil
}

// mediaType is a type, a subtype and perhaps a charset (RFC 6838, 4.2).
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}(; ?charset=[a-z0-9_-]{1,40})?$`)

// mimeType returns the validated MIME type in lower case, or a default.
func mimeType(c emitContent) (string, error) {
	mime := strings.ToLower(c.MIME)
	switch {
	case mime == "" && c.Type == "resource" && c.Data != "":
		return "application/octet-stream", nil
	case mime == "" && (c.Type == "resource" || c.Type == "text"):
		return "text/plain", nil
	case len(mime) > 200 || !mediaType.MatchString(mime):
		return "", invalidError(fmt.Sprintf("invalid MIME type %q", sanitize.Line(c.MIME, 60)), "such as image/png")
	case (c.Type == "image" || c.Type == "audio") && !strings.HasPrefix(mime, c.Type+"/"):
		return "", invalidError(fmt.Sprintf("%s is not an %s type", mime, c.Type), "such as "+map[string]string{"image": "image/png", "audio": "audio/wav"}[c.Type])
	}
	return mime, nil
}

// checkURI validates a URI. Schemes that run code when followed are rejected.
func checkURI(uri string) (string, error) {
	if uri == "" {
		return "", nil
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "" || len(uri) > maxEmitURI || strings.ContainsFunc(uri, isInvalidURIRune):
		return "", invalidError(fmt.Sprintf("invalid URI %q", sanitize.Line(uri, 60)), "with a scheme, percent-encoded")
	case slices.Contains([]string{"javascript", "vbscript", "data"}, u.Scheme):
		return "", invalidError("a URI of scheme "+u.Scheme+" cannot be emitted", "")
	}
	return uri, nil
}

// isInvalidURIRune reports whether r is not allowed in a URI (RFC 3986). Some of these characters would end the link that shows the URI.
func isInvalidURIRune(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("<>\"\\^`{|}", r)
}

// baseName returns the last element of a path with slashes or backslashes, "" if it
// is not a usable name.
func baseName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = sanitize.Line(name, maxEmitName)
	if strings.Trim(name, ". ") == "" {
		return ""
	}
	return strings.Clone(name) // do not retain the longer string
}

func invalidError(message, hint string) error {
	return &tool.Error{Kind: tool.Invalid, Message: message, Hint: hint}
}

// formatSize formats a size for people.
func formatSize(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.3g MiB", float64(bytes)/(1<<20))
	case bytes >= 10<<10:
		return fmt.Sprintf("%d KiB", (bytes+1<<9)>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
