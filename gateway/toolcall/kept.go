package toolcall

import (
	"encoding/json"

	"sallyport/internal/tool"
)

// KeptCall is a call that succeeded with a result in JSON.
type KeptCall struct {
	Tool tool.ID
	// Args are the arguments, Value is what the program got.
	Args, Value json.RawMessage
}

// Bounds of the calls that are kept.
const (
	maxKept      = 200
	maxKeptBytes = 1 << 20
)

// kept has the calls of a program until it has ended, to compare the program with its results.
type kept struct {
	calls []KeptCall
	bytes int
	// left has the tools with a result that was not kept, since there were too many or they were too large.
	left map[tool.ID]bool
}

// Keep keeps a call that has succeeded.
func (l *List) Keep(c tool.Call, result tool.Result, err error) {
	if err != nil || result.IsError {
		return
	}
	value := result.Value()
	size := len(value.JSON) + len(c.Args)
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.kept
	if value.JSON == nil || len(k.calls) == maxKept || k.bytes+size > maxKeptBytes {
		if k.left == nil {
			k.left = map[tool.ID]bool{}
		}
		k.left[c.Tool] = true
		return
	}
	k.bytes += size
	k.calls = append(k.calls, KeptCall{c.Tool, c.Args, value.JSON})
}

// Kept returns and releases the calls that were kept, in order, except those of tools of which some were not.
func (l *List) Kept() (calls []KeptCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.kept.calls {
		if !l.kept.left[c.Tool] {
			calls = append(calls, c)
		}
	}
	l.kept = kept{}
	return calls
}
