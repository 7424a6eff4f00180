package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sallyport/internal/tool"
)

var exampleBlock = regexp.MustCompile("(?ms)^```json (host|guest)\n(.*?)\n```$")

// TestDocumentExamples holds docs/reference/bridge.md to the code: what it shows is what is sent.
func TestDocumentExamples(t *testing.T) {
	page := document(t)
	examples := exampleBlock.FindAllStringSubmatch(page, -1)
	if blocks := strings.Count(page, "```json"); blocks != len(examples) {
		t.Errorf("%d of %d JSON examples are marked host or guest", len(examples), blocks)
	}
	seen := map[string]int{}
	for _, example := range examples {
		encode := map[string]func([]byte) ([]byte, error){"host": encodeHost, "guest": encodeGuest}[example[1]]
		var sent bytes.Buffer // frames have no white space; examples are broken into lines
		if err := json.Compact(&sent, []byte(example[2])); err != nil {
			t.Fatalf("%s: %v", example[2], err)
		}
		back, err := encode(sent.Bytes())
		if err != nil || string(back) != sent.String() {
			t.Errorf("%s\nbecame\n%s %v", &sent, back, err)
		}
		var frame struct{ Type string }
		_ = json.Unmarshal(sent.Bytes(), &frame)
		seen[frame.Type]++
	}
	for kind, least := range map[string]int{"run": 1, "call": 3, "progress": 2, "result": 3, "error": 2, "emit": 3, "done": 5, "ping": 1, "pong": 1} {
		if seen[kind] < least {
			t.Errorf("%d examples of %s, want %d", seen[kind], kind, least)
		}
	}
}

// strictly decodes data and refuses what v has no field for.
func strictly(data []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(v)
}

// encodeHost reads a frame as a guest would, and writes it as the host does.
func encodeHost(example []byte) ([]byte, error) {
	var frame struct {
		Type  string
		ID    int64
		Value tool.Value
		Error errorBody
		Program
		progress
	}
	decoder := json.NewDecoder(bytes.NewReader(example))
	if err := decoder.Decode(&frame); err != nil {
		return nil, err
	}
	switch frame.Type {
	case "files":
		var files filesFrame
		if err := strictly(example, &files); err != nil {
			return nil, err
		}
		return appendJSON(nil, files)
	case "run":
		return appendRun(nil, frame.Program)
	case "ping":
		return []byte(pingFrame), nil
	case "result":
		return appendResult(nil, frame.ID, frame.Value)
	case "progress":
		return appendProgress(nil, frame.ID, frame.progress), nil
	case "error":
		return appendError(nil, frame.ID, &tool.Error{Kind: frame.Error.Kind, Message: frame.Error.Message, Hint: frame.Error.Hint, Retryable: frame.Error.Retryable}), nil
	}
	return nil, fmt.Errorf("type %q", frame.Type)
}

// encodeGuest reads a frame as the host does, and writes what the host understood.
func encodeGuest(example []byte) ([]byte, error) {
	frame, err := parse(example)
	if err != nil {
		return nil, err
	}
	if err := strictly(example, &guestFrame{}); err != nil {
		return nil, err
	}
	if frame.Type == "files" {
		entries, err := parseEntries(frame.Entries, 10)
		if err != nil {
			return nil, err
		}
		return appendJSON(nil, filesFrame{frame.Type, entries})
	}
	if frame.Type == "copied" {
		r := replica{}
		r.setClock(frame.Clock)
		return appendJSON(nil, struct {
			Type  string `json:"type"`
			Clock string `json:"clock"`
		}{frame.Type, r.clock})
	}
	if frame.Type == "emit" {
		return encodeEmit(frame)
	}
	if frame.Type == "done" {
		return appendJSON(nil, struct {
			Type string `json:"type"`
			ProgramResult
			Leaving bool `json:"leaving,omitempty"`
		}{frame.Type, frame.programResult(1000), frame.Leaving})
	}
	if frame.Type == "pong" {
		return appendJSON(nil, map[string]string{"type": frame.Type})
	}
	return appendJSON(nil, struct {
		Type     string          `json:"type"`
		ID       int64           `json:"id"`
		Tool     string          `json:"tool"`
		Args     json.RawMessage `json:"args"`
		Progress bool            `json:"progress,omitempty"`
	}{frame.Type, frame.ID, frame.Tool, frame.Args, frame.Progress})
}

// encodeEmit reads what is emitted as the host does, and writes that as a guest would.
func encodeEmit(frame guestFrame) ([]byte, error) {
	if err := strictly(frame.Content, &emitContent{}); err != nil {
		return nil, err
	}
	c, err := readContent(frame.Content, Limits{}.withDefaults().Emit)
	if err != nil {
		return nil, err
	}
	return appendJSON(nil, struct {
		Type    string `json:"type"`
		ID      int64  `json:"id"`
		Content any    `json:"content"`
	}{frame.Type, frame.ID, struct {
		Type string `json:"type"`
		Text string `json:"text,omitempty"`
		Data []byte `json:"data,omitempty"`
		MIME string `json:"mimeType"`
		Name string `json:"name,omitempty"`
		URI  string `json:"uri,omitempty"`
	}{c.Type, c.Text, c.Data, c.MIME, c.Name, c.URI}})
}

// TestDocumentNumbers compares the page's limits, kinds and handshake with what the code has.
func TestDocumentNumbers(t *testing.T) {
	page, limits := document(t), Limits{}.withDefaults()
	for _, want := range []string{
		fmt.Sprintf("| request line and headers | %d KiB |", headerLimit>>10),
		fmt.Sprintf("| time to send them | %.0f s |", headerTimeout.Seconds()),
		fmt.Sprintf("| frame of the guest | %d MiB |", limits.Frame>>20),
		fmt.Sprintf("| calls of one program | %d |", limits.Calls),
		fmt.Sprintf("| concurrent calls | %d |", limits.Concurrency),
		fmt.Sprintf("| time for the guest to read an answer | %.0f s |", limits.Write.Seconds()),
		fmt.Sprintf("| description of a fault | %d MiB |", maxFault>>20),
		fmt.Sprintf("| type of a fault, function of a line | %d bytes |", maxName),
		fmt.Sprintf("| progress frames of one call | one in %d ms |", progressInterval.Milliseconds()),
		fmt.Sprintf("| message of a progress frame | %d KiB |", maxProgressMessage>>10),
		fmt.Sprintf("| message of a fault | %d KiB |", maxMessage>>10),
		fmt.Sprintf("| hint of a fault | %d KiB |", maxHint>>10),
		fmt.Sprintf("| lines of a fault | %d |", maxLines),
		fmt.Sprintf("| source of a line | %d KiB |", maxSource>>10),
		fmt.Sprintf("| bytes of a program's frames, both ways | %d GiB |", limits.Traffic>>30),
		fmt.Sprintf("| further bytes of the guest | %d MiB |", trafficAllowance>>20),
		fmt.Sprintf("| frame of a guest without a program | %d KiB |", pingLimit>>10),
		fmt.Sprintf("| emitted contents of a program | %d |", limits.Emits),
		fmt.Sprintf("| one emitted content | %d MiB |", limits.Emit>>20),
		fmt.Sprintf("| one emitted text | %d KiB |", maxEmitText>>10),
		fmt.Sprintf("| all emitted contents | %d MiB |", limits.Emitted>>20),
		fmt.Sprintf("| name of emitted content | %d characters |", maxEmitName),
		fmt.Sprintf("| URI of emitted content | %d KiB |", maxEmitURI>>10),
		"\nGET " + endpoint + " HTTP/1.1\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/reference/bridge.md does not say %q", want)
		}
	}
	for _, kind := range []tool.Kind{tool.Invalid, tool.NotFound, tool.Denied, tool.Limit, tool.Timeout, tool.Canceled, tool.Upstream, tool.Failed, tool.Internal} {
		if !strings.Contains(page, "| `"+string(kind)+"` | ") {
			t.Errorf("docs/reference/bridge.md does not name the kind %q", kind)
		}
	}
}

func document(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/bridge.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
