package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/gateway/toolcall"
	"sallyport/internal/journal"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

const (
	// maxPeek is how much of a journal is read to be shown, in bytes, maxViewed how many of its calls are shown at once.
	maxPeek, maxViewed = 64 << 20, 200
	// maxViewedText is how much of one call's arguments and of its result is shown, in bytes.
	maxViewedText = 16 << 10
)

// JournaledCalls is what the journal of an execution says of its calls.
type JournaledCalls struct {
	// Calls are some of them, in the order in which they began; Total is how many there are.
	Calls []JournaledCall `json:"calls"`
	Total int             `json:"total"`
	// Fault is the message of what ended the program, "" where nothing did.
	Fault string `json:"fault,omitempty"`
	// Resumed is the execution that continues with this one, "" if none does.
	Resumed string `json:"resumed,omitempty"`
}

// JournaledCall is a call as the program made it: personal data are names of kinds with numbers, as the program had them.
type JournaledCall struct {
	// Number counts the calls from 1.
	Number int     `json:"number"`
	Tool   tool.ID `json:"tool"`
	// State is begun, ended or refused.
	State string `json:"state"`
	// Unasked says that the execution before has made it, and this one has not asked for it so far.
	Unasked bool `json:"unasked,omitempty"`
	// Digest is as [toolcall.RecordedCall].Arguments. Arguments are in compact JSON, "" where they are not kept; ArgumentsSize is how long they are, in bytes: of long ones only the beginning is here.
	Digest        string `json:"arguments_sha256,omitempty"`
	Arguments     string `json:"arguments,omitempty"`
	ArgumentsSize int    `json:"arguments_size,omitempty"`
	// Result is its text, or what is structured in JSON; ResultSize is how long that is, in bytes: of a long one only the beginning is here.
	Result     string `json:"result,omitempty"`
	ResultSize int    `json:"result_size,omitempty"`
	// Failed says that the tool reports a failure; Problem and Hint are those of a call that failed otherwise.
	Failed  bool   `json:"failed,omitempty"`
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Lost says that the result is not kept.
	Lost bool `json:"lost,omitempty"`
}

// Journaled returns calls of an execution of the caller, or any for an operator, as its journal has them: at most so many, after the
// first few. It may still run. Errors are *tool.Error; NotFound also where the journal is not kept any more.
func (h *History) Journaled(ctx context.Context, id string, after, limit int) (JournaledCalls, error) {
	path := h.journalOf(ctx, id)
	c, err := journal.Peek(path, maxPeek)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && tool.Operator(ctx) == "" && c.Principal != tool.Principal(ctx):
		return JournaledCalls{}, &tool.Error{Kind: tool.NotFound, Message: "the journal of " + sanitize.Line(id, 60) + " is not kept",
			Hint: "journal.keep in upstreams.yaml says for how long, journal.successes whether also those of programs that end well"}
	case err != nil:
		return JournaledCalls{}, toolcall.Unreadable(ctx, h.opts.Logger, err)
	}
	view := JournaledCalls{Total: len(c.Calls), Resumed: c.Resumed, Calls: []JournaledCall{}}
	var end End
	if json.Unmarshal(c.Over, &end) == nil {
		view.Fault = end.Fault
	}
	from := min(max(after, 0), len(c.Calls))
	if limit <= 0 || limit > maxViewed {
		limit = maxViewed
	}
	for _, req := range c.Calls[from:min(from+limit, len(c.Calls))] {
		view.Calls = append(view.Calls, journaledCall(req))
	}
	return view, nil
}

// journalOf is where the journal of an execution is, for the caller.
func (h *History) journalOf(ctx context.Context, id string) string {
	own := journal.Path(h.Folder(tool.Principal(ctx)), id)
	if h.Root == "" {
		return filepath.Join(os.DevNull, "none")
	}
	if _, err := os.Stat(own); err == nil || tool.Operator(ctx) == "" {
		return own
	}
	if all, _ := filepath.Glob(filepath.Join(h.Root, "*", filepath.Base(own))); len(all) > 0 {
		return all[0]
	}
	return own
}

func journaledCall(c journal.Call) JournaledCall {
	v := JournaledCall{Number: c.Number, Tool: c.Tool, State: string(c.State), Unasked: !c.Asked, Digest: c.Arguments, Lost: c.Lost, ArgumentsSize: len(c.Args), Arguments: start(string(c.Args)), Failed: c.Result.IsError}
	if c.Err != nil {
		v.Problem, v.Hint = start(c.Err.Message), start(c.Err.Hint)
		return v
	}
	text := resultText(c.Result)
	v.Result, v.ResultSize = start(text), len(text)
	return v
}

// resultText is a result for people: its texts, else what is structured; of bytes what they are.
func resultText(r tool.Result) string {
	text := r.Text()
	if text == "" && len(r.Structured) > 0 {
		text = string(r.Structured)
	}
	for _, c := range r.Content {
		if c.Data == nil {
			continue
		}
		if text != "" {
			text += "\n"
		}
		text += fmt.Sprintf("[%s, %d bytes]", sanitize.Line(c.MIME, 60), len(c.Data))
	}
	return text
}

// start is the beginning of a text that may be long.
func start(text string) string {
	if len(text) <= maxViewedText {
		return text
	}
	end := maxViewedText
	for end > 0 && text[end]&0xc0 == 0x80 { // in the middle of a character
		end--
	}
	return text[:end]
}
