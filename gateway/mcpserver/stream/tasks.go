package stream

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"
)

// The SDK sends only notifications that it knows. The status of a task is sent as progress with a mark as its first member, and gets its
// name when it is written. The mark is random, and no client sees it: an upstream cannot forge it in what it sends.
const (
	carrier    = "notifications/progress"
	taskStatus = "notifications/tasks"
)

var (
	mark   = `{"sallyport/task/` + rand.Text() + `":true,`
	marked = []byte(`"method":"` + carrier + `","params":` + mark)
	named  = []byte(`"method":"` + taskStatus + `","params":{`)
)

// MarkTask returns params of progress that are written as the status of a task. The state must have members.
func MarkTask(state json.RawMessage) json.RawMessage {
	return append([]byte(mark), bytes.TrimSpace(state)[1:]...)
}

// RenameTask returns the method and the params of a notification as they are written.
func RenameTask(method string, params json.RawMessage) (string, json.RawMessage) {
	if rest, ok := bytes.CutPrefix(params, []byte(mark)); ok && method == carrier {
		return taskStatus, append([]byte("{"), rest...)
	}
	return method, params
}

// Tasks renames in an HTTP response. The SDK writes each event at once. A quote in a text is escaped, so only members match.
type Tasks struct{ http.ResponseWriter }

// Write implements [http.ResponseWriter].
func (t *Tasks) Write(p []byte) (int, error) {
	if _, err := t.ResponseWriter.Write(bytes.ReplaceAll(p, marked, named)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush implements [http.Flusher].
func (t *Tasks) Flush() { _ = http.NewResponseController(t.ResponseWriter).Flush() }

// Unwrap is for [http.ResponseController].
func (t *Tasks) Unwrap() http.ResponseWriter { return t.ResponseWriter }

const (
	defaultPoll = time.Second
	minPoll     = 500 * time.Millisecond
	maxPoll     = time.Minute
)

// NextPoll returns the time until the next poll of a task with that state; ok is false if it has ended.
func NextPoll(state json.RawMessage) (wait time.Duration, ok bool) {
	var t struct {
		Status string   `json:"status"`
		Poll   *float64 `json:"pollIntervalMs"`
	}
	if json.Unmarshal(state, &t) != nil || t.Status == "completed" || t.Status == "failed" || t.Status == "cancelled" {
		return 0, false
	}
	if t.Poll == nil {
		return defaultPoll, true
	}
	return time.Duration(min(max(*t.Poll, float64(minPoll.Milliseconds())), float64(maxPoll.Milliseconds()))) * time.Millisecond, true
}
