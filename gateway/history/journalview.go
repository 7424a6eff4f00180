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
	// maxPeek is the maximum size of a journal that is shown, in bytes, maxViewed the maximum number of calls per page.
	maxPeek, maxViewed = 64 << 20, 200
	// maxViewedText is the maximum length of a call's arguments, and of its result, in bytes.
	maxViewedText = 16 << 10
)

// JournaledCalls are calls of an execution, from its journal.
type JournaledCalls struct {
	// Calls are a page of them, in order of their start; Total is the number of all.
	Calls []JournaledCall `json:"calls"`
	Total int             `json:"total"`
	// Fault is the message of the fault that ended the program, "" for none.
	Fault string `json:"fault,omitempty"`
	// Resumed is the execution that resumed this one, "" for none.
	Resumed string `json:"resumed,omitempty"`
}

// JournaledCall is a call as the program made it, with tokens in place of personal data.
type JournaledCall struct {
	// Number is the number of the call, from 1.
	Number int     `json:"number"`
	Tool   tool.ID `json:"tool"`
	// State is begun, ended or refused.
	State string `json:"state"`
	// Unasked says that the resumed execution made it, and this one has not made it again so far.
	Unasked bool `json:"unasked,omitempty"`
	// Digest is as [toolcall.RecordedCall].Arguments. Arguments are in compact JSON, truncated, "" if they are not kept; ArgumentsSize is their full length, in bytes.
	Digest        string `json:"arguments_sha256,omitempty"`
	Arguments     string `json:"arguments,omitempty"`
	ArgumentsSize int    `json:"arguments_size,omitempty"`
	// Result is its text, or the structured content as JSON, truncated; ResultSize is its full length, in bytes.
	Result     string `json:"result,omitempty"`
	ResultSize int    `json:"result_size,omitempty"`
	// Failed says that the tool reports a failure; Problem and Hint are the error of a call that failed otherwise.
	Failed  bool   `json:"failed,omitempty"`
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Lost says that the result is not kept.
	Lost bool `json:"lost,omitempty"`
}

// JournalCalls returns calls from the journal of an execution of the caller, or of any principal for an operator: at most limit, without
// the first after. The execution may still run. Errors are *tool.Error; NotFound also if the journal has expired.
func (h *History) JournalCalls(ctx context.Context, id string, after, limit int) (JournaledCalls, error) {
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
		view.Calls = append(view.Calls, newJournaledCall(req))
	}
	return view, nil
}

// journalOf returns the path of an execution's journal, for the caller.
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

func newJournaledCall(c journal.Call) JournaledCall {
	v := JournaledCall{Number: c.Number, Tool: c.Tool, State: string(c.State), Unasked: !c.Asked, Digest: c.Arguments, Lost: c.Lost, ArgumentsSize: len(c.Args), Arguments: truncate(string(c.Args)), Failed: c.Result.IsError}
	if c.Err != nil {
		v.Problem, v.Hint = truncate(c.Err.Message), truncate(c.Err.Hint)
		return v
	}
	text := resultText(c.Result)
	v.Result, v.ResultSize = truncate(text), len(text)
	return v
}

// resultText returns a result for people: its texts, or else the structured content, and the types and sizes of binary content.
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

// truncate truncates a text to maxViewedText bytes.
func truncate(text string) string {
	if len(text) <= maxViewedText {
		return text
	}
	end := maxViewedText
	for end > 0 && text[end]&0xc0 == 0x80 { // in the middle of a character
		end--
	}
	return text[:end]
}
