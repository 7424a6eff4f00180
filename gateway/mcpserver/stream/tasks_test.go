package stream_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"sallyport/gateway/mcpserver/stream"
)

// TestMark: only what the gateway has marked is written as the status of a task, not what an upstream sends in the same form.
func TestMark(t *testing.T) {
	const progress = "notifications/progress"
	for params, want := range map[string]string{
		string(stream.MarkTask(json.RawMessage(`{"taskId":"7"}`))): "notifications/tasks {\"taskId\":\"7\"}",
		`{"sallyport/task":true,"taskId":"7"}`:                     progress + ` {"sallyport/task":true,"taskId":"7"}`,
		`{"sallyport/task/":true,"taskId":"7"}`:                    progress + ` {"sallyport/task/":true,"taskId":"7"}`,
		`{"progress":1}`:                                           progress + ` {"progress":1}`,
	} {
		method, renamed := stream.RenameTask(progress, json.RawMessage(params))
		if got := method + " " + string(renamed); got != want {
			t.Errorf("%s is sent as %s, want %s", params, got, want)
		}
		w := httptest.NewRecorder()
		if _, err := (&stream.Tasks{ResponseWriter: w}).Write([]byte(`{"method":"` + progress + `","params":` + params + "}")); err != nil {
			t.Fatal(err)
		}
		if got, want := w.Body.String(), `{"method":"`+method+`","params":`+string(renamed)+"}"; got != want {
			t.Errorf("%s over HTTP is %s, want %s", params, got, want)
		}
	}
}
