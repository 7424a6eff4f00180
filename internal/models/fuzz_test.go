package models_test

import (
	"fmt"
	"net/http"
	"testing"

	"sallyport/internal/models"
	"sallyport/internal/models/modeltest"
	"sallyport/internal/testutil/tlstest"
)

// FuzzAnswer: no bytes of an endpoint, streamed or not, do more than fail.
func FuzzAnswer(f *testing.F) {
	f.Add(true, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Add(true, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\"}}\n\n")
	f.Add(false, `{"choices":[{"message":{"content":[{"text":"x"}]}}]}`)
	f.Add(false, `{"type":"message","content":[null,{"type":"text"}],"usage":{"input_tokens":-1}}`)
	var body string
	var streamed bool
	s := tlstest.NewServer(f, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if streamed {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		fmt.Fprint(w, body)
	}))
	defer s.Close()
	var all []*models.Endpoint
	for _, api := range apis {
		e, err := models.Open(models.Settings{API: api, URL: s.URL, Model: modeltest.Model, Deployment: "d", Backoff: 1})
		if err != nil {
			f.Fatal(err)
		}
		defer e.Close()
		all = append(all, e)
	}
	f.Fuzz(func(t *testing.T, stream bool, text string) {
		streamed, body = stream, text
		for _, e := range all {
			a, err := e.Ask(t.Context(), ask("x"))
			if err == nil && (a.Usage.Input < 0 || a.Usage.Output < 0 || a.Usage.Cached < 0 || a.Usage.Cached > a.Usage.Input) {
				t.Errorf("usage %+v", a.Usage)
			}
		}
	})
}
