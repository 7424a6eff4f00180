package toolcall

import "sallyport/internal/tool"

// Outcome says in a word how a call went: "ok", or the kind of the error.
func Outcome(result tool.Result, err error) string {
	switch {
	case err != nil:
		return string(tool.AsError(err).Kind)
	case result.IsError:
		return string(tool.Failed)
	}
	return "ok"
}

// TextSize is how much of a result a client without programs would have put into a model's context.
func TextSize(r tool.Result) int64 {
	if n := TextBytes(r); n > 0 {
		return n
	}
	return int64(len(r.Structured))
}

// TextBytes is the size of its texts.
func TextBytes(r tool.Result) (n int64) {
	for _, c := range r.Content {
		n += int64(len(c.Text))
	}
	return n
}
