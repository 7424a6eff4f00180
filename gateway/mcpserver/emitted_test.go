package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestEmittedReachesTheClient in every revision, after the text that names it.
func TestEmittedReachesTheClient(t *testing.T) {
	t.Parallel()
	g := open(t)
	user := &mcp.Annotations{Audience: []mcp.Role{"user"}}
	code := `
from sallyport import emit
emit(b"\x89PNG\r\n\x1a\nrest", name="plot.png")
emit("a \x1b[31mred\u202e word")
emit(b"RIFF\0\0\0\0WAVE", name="beep.wav")
emit("a,b\r\n1,2\r\n", name="t.csv")
emit(b"\0\1", name="raw.bin")
emit("x" * 20000, name="long.txt")
emit("", name="none.txt")
"done"`
	for _, version := range []string{"", "2025-11-25", "2025-03-26", "2024-11-05"} {
		client := connect(t, g, version)
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": code}})
		if err != nil || result.IsError || len(result.Content) != 8 {
			t.Fatalf("%s: %v, %+v", version, err, result)
		}
		said := result.Content[0].(*mcp.TextContent).Text
		if want := "done\n(emitted: plot.png, 12 B image/png; 18 B text; beep.wav, 12 B audio/wav; t.csv, 10 B text/csv; raw.bin, 2 B application/octet-stream; long.txt, 20 KB text/plain; none.txt, 0 B text/plain)"; said != want {
			t.Errorf("%s: got %s\nwant %s", version, said, want)
		}
		id := resource(t, result.Content[4]).URI
		id = strings.TrimSuffix(id, "4")
		if !strings.HasPrefix(id, "sallyport://e-") {
			t.Errorf("URI %s", id)
		}
		file := func(n, mime, text string, data []byte) mcp.Content {
			return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: id + n, MIMEType: mime, Text: text, Blob: data}, Annotations: user}
		}
		var sound mcp.Content = &mcp.AudioContent{Data: []byte("RIFF\x00\x00\x00\x00WAVE"), MIMEType: "audio/wav"}
		if version == "2024-11-05" {
			sound = file("3", "audio/wav", "", []byte("RIFF\x00\x00\x00\x00WAVE"))
		}
		want := []mcp.Content{
			&mcp.ImageContent{Data: []byte("\x89PNG\r\n\x1a\nrest"), MIMEType: "image/png"},
			&mcp.TextContent{Text: "a red word", Annotations: user},
			sound, file("4", "text/csv", "a,b\r\n1,2\r\n", nil), file("5", "application/octet-stream", "", []byte{0, 1}),
			file("6", "text/plain", "", []byte(strings.Repeat("x", 20000))), file("7", "text/plain", "", []byte{}),
		}
		if diff := cmp.Diff(want, result.Content[1:]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func resource(t *testing.T, c mcp.Content) *mcp.ResourceContents {
	t.Helper()
	embedded, ok := c.(*mcp.EmbeddedResource)
	if !ok {
		t.Fatalf("%+v is no resource", c)
	}
	return embedded.Resource
}

// TestEmittedOfFailures: what was sent before is delivered, and the result is an error still.
func TestEmittedOfFailures(t *testing.T) {
	t.Parallel()
	client := connect(t, open(t), "")
	for end, want := range map[string]string{
		"1/0": "ZeroDivisionError", "raise SystemExit(3)": "exited with status 3", "while True: pass": "stopped: it ran longer", "import os; os.kill(os.getpid(), 9)": "",
	} {
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "from sallyport import emit\nemit('kept')\n" + end, "timeout": 1}})
		if err != nil || !result.IsError || len(result.Content) != 2 {
			t.Fatalf("%s: %v, %+v", end, err, result)
		}
		said, kept := result.Content[0].(*mcp.TextContent).Text, result.Content[1].(*mcp.TextContent).Text
		if !strings.HasPrefix(said, "(emitted: 4 B text)\n") || !strings.Contains(said, want) || kept != "kept" {
			t.Errorf("%s: %q and %q", end, said, kept)
		}
	}
}
