package execution

import (
	"cmp"
	"fmt"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxNamed is the maximum number of emitted items that a model's text names.
	maxNamed = 8
	// maxInline is the maximum size of a text file that is sent to a client as
	// text, in bytes: clients show text to the model, and store bytes as a file.
	maxInline = 16 << 10
	// maxTexts is the maximum size of all texts that are sent as text, in bytes;
	// further ones are sent as bytes.
	maxTexts = 64 << 10
)

// ClientContent returns the emitted items for a client. A text with a Raw is what a user interface shows (MCP Apps): its URI is
// that of the interface, and Raw the result of the tool. It returns texts without invisible characters,
// long and empty files as bytes, and items that can be resources with a URI.
func (e Result) ClientContent() []tool.Content {
	shown := make([]tool.Content, len(e.Emitted))
	for i, as := range inlineItems(e.Emitted) {
		c := e.Emitted[i]
		c.Text = dropHidden(c.Text)
		if !as {
			if c.Type == "text" {
				c.Type, c.MIME = "resource", cmp.Or(c.MIME, "text/plain")
			}
			c.Data, c.Text = []byte(e.Emitted[i].Text), ""
		}
		if c.Type != "text" && c.URI == "" {
			c.URI = fmt.Sprintf("sallyport://%s/%d", e.ID, i+1)
		}
		shown[i] = c
	}
	return shown
}

// inlineItems reports for each item whether it is sent unchanged; other items are texts that are sent as the bytes of a file.
func inlineItems(items []tool.Content) []bool {
	as, left := make([]bool, len(items)), maxTexts
	for i, c := range items {
		file := c.Type == "resource" && c.Data == nil
		as[i] = !(file && (c.Text == "" || len(c.Text) > maxInline)) && len(c.Text) <= left
		if as[i] {
			left -= len(c.Text)
		}
	}
	return as
}

// dropHidden removes invisible characters and keeps all white space, which matters in files.
func dropHidden(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && r != '\r' && sanitize.Hidden(r) {
			return -1
		}
		return r
	}, sanitize.StripEscapes(text))
}

// emittedText lists the items that were sent to the client, for a model that
// cannot see them.
func emittedText(items []tool.Content) string {
	if len(items) == 0 {
		return ""
	}
	var names []string
	for _, c := range items[:min(len(items), maxNamed)] {
		names = append(names, Label(c))
	}
	if more := len(items) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	texts := 0
	for i, as := range inlineItems(items) {
		if !as && items[i].Type == "text" {
			texts++
		}
	}
	said := "emitted: " + strings.Join(names, "; ")
	if texts > 0 {
		said += fmt.Sprintf("; %d texts beyond %s as files", texts, formatBytes(maxTexts))
	}
	return "(" + said + ")"
}

// Label describes an emitted item: "plot.png, 34 KB image/png".
func Label(c tool.Content) string {
	name := sanitize.Line(c.Name, 60)
	if name != "" {
		name += ", "
	}
	what := cmp.Or(c.MIME, c.Type)
	if c.Type == "text" && what == "text/plain" {
		what = "text"
	}
	return name + formatBytes(max(len(c.Data), len(c.Text))) + " " + sanitize.Line(what, 60)
}

func formatBytes(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%d KB", (n+500)/1000)
	}
	return fmt.Sprintf("%d B", n)
}
