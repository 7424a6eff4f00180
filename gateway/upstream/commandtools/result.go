package commandtools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/gateway/upstream/inprocess"
	"sallyport/internal/commandtool"
	"sallyport/internal/jsonobject"
	"sallyport/internal/sanitize"
)

const (
	maxShown    = 4000    // characters of what a program printed, in an error
	maxRepeated = 1 << 20 // bytes of JSON that is also given as text
	maxNesting  = 500     // levels of JSON
)

// result returns the result of a run, as in the response to tools/call.
func (r *run) result(c *commandtool.Command) map[string]any {
	switch {
	case r.stdout.more && r.ended == "": // it had ended before it could be stopped
		return r.failure(c, "printed more than max_message; ask for less")
	case r.ended != "":
		return r.failure(c, r.ended)
	case !slices.Contains(c.OKExit, r.status):
		return r.failure(c, fmt.Sprintf("exited with status %d", r.status))
	case c.Output == commandtool.Text:
		return content(strings.ToValidUTF8(string(r.stdout.kept), "\uFFFD"))
	case c.Output == commandtool.Lines:
		return r.lines(c)
	}
	value := bytes.TrimSpace(r.stdout.kept)
	if wrong := wrongJSON(value); wrong != "" {
		return r.failure(c, "did not print one JSON value: "+wrong)
	}
	return structured(bytes.ToValidUTF8(value, []byte("\uFFFD")), c.Result != nil && !isObject(c.Result))
}

// lines returns the result of a program that prints a JSON value in each line.
func (r *run) lines(c *commandtool.Command) map[string]any {
	all := []json.RawMessage{}
	for i, line := range bytes.Split(r.stdout.kept, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if wrong := wrongJSON(line); wrong != "" {
			return r.failure(c, fmt.Sprintf("did not print JSON in line %d: %s", i+1, wrong))
		}
		all = append(all, bytes.ToValidUTF8(line, []byte("\uFFFD")))
	}
	value, err := inprocess.Encode(all)
	if err != nil {
		return r.failure(c, "did not print JSON in each line")
	}
	return structured(value, true)
}

// wrongJSON says why a text is not usable as a JSON value, "" if it is.
func wrongJSON(data []byte) string {
	if len(data) == 0 {
		return "it is empty"
	}
	var value json.RawMessage
	if err := json.Unmarshal(data, &value); err != nil {
		return sanitize.Line(err.Error(), 200)
	}
	if jsonobject.Nesting(data) > maxNesting {
		return fmt.Sprintf("it is nested deeper than %d levels", maxNesting)
	}
	return ""
}

// structured returns a result of JSON. Structured content is an object, so another value is wrapped if the tool declares that.
func structured(value json.RawMessage, wrap bool) map[string]any {
	text := string(value)
	if len(value) > maxRepeated && (wrap || value[0] == '{') {
		text = fmt.Sprintf("%d bytes of JSON, see structuredContent", len(value))
	}
	result := content(text)
	switch {
	case wrap:
		result["structuredContent"] = map[string]json.RawMessage{"result": value}
	case value[0] == '{':
		result["structuredContent"] = value
	}
	return result
}

func content(text string) map[string]any {
	return map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}}
}

func failed(text string) map[string]any {
	result := content(text)
	result["isError"] = true
	return result
}

// failure returns the result of a program that failed: why, and the end of its stderr and the beginning of its stdout.
func (r *run) failure(c *commandtool.Command, why string) map[string]any {
	text := c.Run[0] + " " + why
	if tail := strings.TrimSpace(strings.ToValidUTF8(string(r.stderr.kept), "\uFFFD")); tail != "" {
		if runes := []rune(tail); len(runes) > maxShown {
			tail = "..." + string(runes[len(runes)-maxShown:])
		}
		text += "\nstderr: " + sanitize.Text(tail, maxShown+10)
	}
	head := r.stdout.kept[:min(len(r.stdout.kept), 4*maxShown)]
	if shown := strings.TrimSpace(strings.ToValidUTF8(string(head), "\uFFFD")); shown != "" {
		text += "\nstdout: " + sanitize.Text(shown, maxShown)
	}
	return failed(text)
}
