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

// The bounds of one emitted thing, in addition to those of [Limits].
const (
	// maxEmitText is the longest block of text, in bytes: what is longer is a file.
	maxEmitText = 64 << 10
	// maxEmitName is in characters, maxEmitURI in bytes.
	maxEmitName = 100
	maxEmitURI  = 2 << 10
)

// emitted is what a program sent to its caller, in order.
type emitted struct {
	mu    sync.Mutex
	items []tool.Content
	bytes int
}

// content is what a guest wants to have shown.
type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Data is base64.
	Data string `json:"data"`
	MIME string `json:"mimeType"`
	Name string `json:"name"`
	URI  string `json:"uri"`
}

func (e *emitted) list() []tool.Content {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.items)
}

// emit keeps what one frame brings, or says what is wrong with it. It is done by
// the reader, so that the order is the program's.
func (s *session) emit(frame incoming) {
	c, err := readContent(frame.Content, s.Limits.Emit)
	if err == nil {
		err = s.emitted.add(c, s.Limits)
	}
	if err != nil {
		s.fail(frame.ID, err)
		return
	}
	s.succeed(frame.ID, tool.Value{})
}

func (e *emitted) add(c tool.Content, limits Limits) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.items) >= limits.Emits {
		return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("this program has emitted its %d items", limits.Emits), Hint: "put more into one: a table, an archive, a picture of several"}
	}
	size := len(c.Text) + len(c.Data) + len(c.MIME) + len(c.Name) + len(c.URI)
	if e.bytes+size > limits.Emitted {
		return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("a program can emit %s in all, and this has %s beside %s before", inUnits(limits.Emitted), inUnits(size), inUnits(e.bytes)), Hint: smaller}
	}
	e.items, e.bytes = append(e.items, c), e.bytes+size
	return nil
}

const smaller = "make it smaller: fewer pixels, rows or seconds, or compressed"

// readContent checks what a program wants to have shown. Nothing in it is
// believed but its text and its bytes.
func readContent(raw json.RawMessage, limit int) (tool.Content, error) {
	var c content
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil {
		return tool.Content{}, unfit("what is emitted must be an object with type, and text or data", "")
	}
	err := c.check(limit)
	if err != nil {
		return tool.Content{}, err
	}
	out := tool.Content{Type: c.Type, Text: c.Text, Name: baseName(c.Name)}
	if out.MIME, err = mimeType(c); err != nil {
		return tool.Content{}, err
	}
	if out.URI, err = address(c.URI); err != nil {
		return tool.Content{}, err
	}
	if c.Data != "" {
		if out.Data, err = base64.StdEncoding.Strict().DecodeString(c.Data); err != nil {
			return tool.Content{}, unfit("data is not base64", "standard alphabet, with padding, without line breaks")
		}
	}
	return out, nil
}

// check looks at which members there are, and how long.
func (c content) check(limit int) error {
	switch c.Type {
	case "text":
		if c.Text == "" || c.Data != "" {
			return unfit("a text has text and no data", "")
		}
		if len(c.Text) > maxEmitText {
			return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("a text of %s; at most %s can be emitted as text", inUnits(len(c.Text)), inUnits(maxEmitText)), Hint: "emit it as a file"}
		}
	case "image", "audio":
		if c.Data == "" || c.Text != "" {
			return unfit("an "+c.Type+" has data and no text", "")
		}
	case "resource":
		if c.Data != "" && c.Text != "" {
			return unfit("a resource has either text or data", "")
		}
	default:
		return unfit(fmt.Sprintf("type %q cannot be emitted", sanitize.Line(c.Type, 40)), "text, image, audio or resource")
	}
	bytes := len(c.Data)/4*3 - (len(c.Data) - len(strings.TrimRight(c.Data, "=")))
	if size := max(len(c.Text), bytes); size > limit {
		return &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("that is %s; at most %s can be emitted at once", inUnits(size), inUnits(limit)), Hint: smaller}
	}
	if strings.ContainsAny(c.Data, "\r\n") { // which the decoder would pass over
		return unfit("data is not base64", "standard alphabet, with padding, without line breaks")
	}
	return nil
}

// mediaType is a type, a subtype and perhaps a charset (RFC 6838, 4.2).
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}(; ?charset=[a-z0-9_-]{1,40})?$`)

// mimeType returns the type in lower case, or one that is true for whatever it is.
func mimeType(c content) (string, error) {
	mime := strings.ToLower(c.MIME)
	switch {
	case mime == "" && c.Type == "resource" && c.Data != "":
		return "application/octet-stream", nil
	case mime == "" && (c.Type == "resource" || c.Type == "text"):
		return "text/plain", nil
	case len(mime) > 200 || !mediaType.MatchString(mime):
		return "", unfit(fmt.Sprintf("%q is no MIME type", sanitize.Line(c.MIME, 60)), "such as image/png")
	case (c.Type == "image" || c.Type == "audio") && !strings.HasPrefix(mime, c.Type+"/"):
		return "", unfit(fmt.Sprintf("%s is no type of an %s", mime, c.Type), "such as "+map[string]string{"image": "image/png", "audio": "audio/wav"}[c.Type])
	}
	return mime, nil
}

// address checks a URI. Those that would run code when followed are refused.
func address(uri string) (string, error) {
	if uri == "" {
		return "", nil
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil || u.Scheme == "" || len(uri) > maxEmitURI || strings.ContainsFunc(uri, noURI):
		return "", unfit(fmt.Sprintf("%q is no URI", sanitize.Line(uri, 60)), "with a scheme, percent-encoded")
	case slices.Contains([]string{"javascript", "vbscript", "data"}, u.Scheme):
		return "", unfit("a URI of scheme "+u.Scheme+" cannot be emitted", "")
	}
	return uri, nil
}

// noURI says which characters no URI has (RFC 3986): some of them end the link that it is shown in.
func noURI(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"\\^`{|}", r) }

// baseName is the last part of a name, whichever system's path it is, and
// nothing where that is no name.
func baseName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = sanitize.Line(name, maxEmitName)
	if strings.Trim(name, ". ") == "" {
		return ""
	}
	return strings.Clone(name) // it may be a part of something long
}

func unfit(message, hint string) error {
	return &tool.Error{Kind: tool.Invalid, Message: message, Hint: hint}
}

// inUnits writes a size as a person would.
func inUnits(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.3g MiB", float64(bytes)/(1<<20))
	case bytes >= 10<<10:
		return fmt.Sprintf("%d KiB", (bytes+1<<9)>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
