package toolcall

import (
	"errors"

	"sallyport/internal/tool"
)

// Held is the outcome of a call that waits for approval after its program was suspended.
const Held = "held"

// Outcome returns the outcome of a call: "ok", [Held], or the kind of the error.
func Outcome(result tool.Result, err error) string {
	switch {
	case errors.Is(err, ErrSuspended):
		return Held
	case err != nil:
		return string(tool.AsError(err).Kind)
	case result.IsError:
		return string(tool.Failed)
	}
	return "ok"
}

// TextSize returns the size of a result in a model's context, in bytes, if the model had called the tool itself.
func TextSize(r tool.Result) int64 {
	if n := TextBytes(r); n > 0 {
		return n
	}
	return int64(len(r.Structured))
}

// TextBytes returns the size of a result's texts in bytes.
func TextBytes(r tool.Result) (n int64) {
	for _, c := range r.Content {
		n += int64(len(c.Text))
	}
	return n
}
