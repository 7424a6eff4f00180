package history

import (
	"cmp"
	"strings"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// Output is what a program printed, and its value, as a model read them: without invisible characters and secrets of the settings,
// and with tokens in place of personal data. Each is a beginning of what there was.
type Output struct {
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Value is the value as text; a text value has no quotes.
	Value string `json:"value,omitempty"`
	// Cut says that something is not kept.
	Cut bool `json:"cut,omitempty"`
}

// outputOf returns at most so many bytes of each output, nil if there is none.
func outputOf(e execution.Result, most int) *Output {
	if most == 0 {
		return nil
	}
	o := Output{Cut: e.Truncated()}
	o.Stdout, o.Stderr = e.CleanOutput()
	o.Value = e.ValueText()
	for _, text := range []*string{&o.Stdout, &o.Stderr, &o.Value} {
		if len(*text) > most {
			*text, o.Cut = strings.ToValidUTF8((*text)[:most], ""), true
		}
	}
	if o == (Output{}) {
		return nil
	}
	return &o
}

// errorLine returns a line on why an execution did not succeed, "" if it did.
func errorLine(e execution.Result) string {
	if e.Status == sandbox.OK {
		return ""
	}
	line, _, _ := strings.Cut(e.Ending(), "\n")
	return sanitize.Line(cmp.Or(line, string(e.Status)), 300)
}

// toolNames returns the names of the tools of calls.
func toolNames(calls []toolcall.RecordedCall) []string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Tool.String())
	}
	return names
}
