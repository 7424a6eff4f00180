package upstream_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/upstream"
	"sallyport/internal/tool"
)

func TestListIsLossless(t *testing.T) {
	cfg := settings(t, "good")
	s := open(t, cfg, nil)
	if got := s.State(); got.Status != upstream.Idle || got.PID != 0 {
		t.Errorf("state before: %+v", got)
	}
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := s.Tools()
	if !slices.IsSorted(names(tools)) || len(tools) != len(definitions) {
		t.Errorf("tools are %v", names(tools))
	}
	yes := true
	want := tool.Tool{
		ID: tool.ID{Upstream: "mem", Name: "echo"}, Wire: "echo", Title: "Echo", Description: "Echoes.",
		Input:       json.RawMessage(`{"type":"object","properties":{"zeta":{"type":"string"},"alpha":{"type":"integer"}}}`),
		Annotations: tool.Annotations{ReadOnly: &yes},
		Raw:         json.RawMessage(definitions[0]),
	}
	i := slices.Index(names(tools), "echo")
	if diff := cmp.Diff(want, tools[i]); diff != "" {
		t.Error(diff)
	}
	hello := tools[slices.Index(names(tools), "say_hello")]
	if hello.Wire != "say-hello" || string(hello.Output) != `{"type":"object","properties":{"z":{},"a":{}}}` {
		t.Errorf("say_hello is %+v", hello)
	}
	state := s.State()
	if state.Status != upstream.Ready || state.ServerName != "raw" || state.ServerVersion != "1.2" || state.Protocol != "2025-11-25" {
		t.Errorf("state: %+v", state)
	}
	if state.PID != starts(t, cfg)[0] || state.Stderr != "raw server starts" {
		t.Errorf("state: %+v", state)
	}
}

func TestJunkOnStdoutIsSkipped(t *testing.T) {
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	s := open(t, settings(t, "junk"), &upstream.Options{Logger: log})
	if got := call(t, s, "echo", `{"a":1}`); string(got.Structured) != `{"a":1}` {
		t.Errorf("result %s", got.Structured)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(logged.String(), "skip line"); n != 10 {
		t.Errorf("%d lines of junk in the log, want 10:\n%s", n, &logged)
	}
	if logged.Len() > 8000 || bytes.ContainsRune(logged.Bytes(), 0x1b) {
		t.Errorf("log is %d bytes long, or holds an escape", logged.Len())
	}
}

func TestResultsAreLossless(t *testing.T) {
	s := open(t, settings(t, "good"), nil)
	got := call(t, s, "odd", "")
	want := tool.Result{
		Structured: json.RawMessage(`{"n":9007199254740993,"z":1,"a":1.0}`),
		Content: []tool.Content{
			{Type: "text", Text: "plain"},
			{Type: "hologram", Raw: json.RawMessage(`{"type":"hologram","depth":9007199254740993,"b":1,"a":2}`)},
			{Type: "image", Data: []byte("hello"), MIME: "image/png"},
			{Type: "image", MIME: "image/png", Raw: json.RawMessage(`{"type":"image","data":"!!!","mimeType":"image/png"}`)},
			{Type: "resource", URI: "file:///a", MIME: "text/plain", Text: "inside"},
			{Type: "resource", URI: "file:///b", Data: []byte{0, 1}},
			{Type: "resource_link", URI: "file:///c", Name: "c", Raw: json.RawMessage(`{"type":"resource_link","uri":"file:///c","name":"c"}`)},
			{Raw: json.RawMessage(`7`)},
		},
	}
	if want.Raw = got.Raw; !strings.HasPrefix(string(got.Raw), `{"structuredContent":{"n":9007199254740993,"z":1,"a":1.0},"content":[{"type":"text"`) {
		t.Errorf("raw result %s", got.Raw)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	big := call(t, s, "echo", `{"n": 9007199254740993, "tag": "<b>&"}`)
	if string(big.Structured) != `{"n":9007199254740993,"tag":"<b>&"}` {
		t.Errorf("arguments became %s", big.Structured)
	}
	if failed := call(t, s, "fail", "{}"); !failed.IsError || failed.Text() != "no such row" {
		t.Errorf("fail: %+v", failed)
	}
	if text := call(t, s, "big", "null").Text(); len(text) != 20<<20 {
		t.Errorf("big: %d bytes", len(text))
	}
}

func TestUpstreamAsks(t *testing.T) {
	s := open(t, settings(t, "good"), nil)
	if got := call(t, s, "ping", "").Text(); got != "pong" {
		t.Errorf("ping: %s", got)
	}
	_, err := callContext(t.Context(), s, "pings", "")
	wantError(t, err, tool.Upstream, "sends requests without reading the answers")
	call(t, s, "ping", "")
}

func TestCallErrors(t *testing.T) {
	s := open(t, settings(t, "good"), nil)
	tests := []struct {
		name, args string
		kind       tool.Kind
		says       string
	}{
		{"eco", "{}", tool.NotFound, "did you mean echo?"},
		{"say-hello", "{}", tool.NotFound, "did you mean say_hello?"},
		{"echo", "[1]", tool.Invalid, "must be a JSON object, not [1]"},
		{"echo", `{"a":`, tool.Invalid, "must be a JSON object"},
		{"refuse", "{}", tool.Invalid, "mem.refuse: city is required"},
		{"nonsense", "{}", tool.Upstream, "not a JSON object"},
	}
	for _, test := range tests {
		_, err := callContext(t.Context(), s, test.name, test.args)
		wantError(t, err, test.kind, test.says)
	}
}

func TestHostileLists(t *testing.T) {
	for mode, want := range map[string]int{"cursor": len(definitions), "endless": 0, "many": 10_000, "paged": len(definitions)} {
		t.Run(mode, func(t *testing.T) {
			s := open(t, settings(t, mode), nil)
			if err := s.Connect(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(s.Tools()); n != want {
				t.Errorf("%d tools, want %d", n, want)
			}
		})
	}
}

func TestStrangeDefinitions(t *testing.T) {
	var logged bytes.Buffer
	s := open(t, settings(t, "strange"), &upstream.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	tools := s.Tools()
	if len(tools) != len(definitions)+7 {
		t.Errorf("tools are %v", names(tools))
	}
	seen := map[tool.ID]bool{}
	for _, one := range tools {
		if seen[one.ID] || !json.Valid(one.Input) || one.Input[0] != '{' {
			t.Errorf("%s: taken or without a schema", one.ID)
		}
		seen[one.ID] = true
		if one.Wire == "wrong" && (one.Title != "" || one.Description != "" || one.Annotations.ReadOnly != nil || *one.Annotations.Destructive) {
			t.Errorf("wrong: %+v", one)
		}
		if one.Wire == "true-schema" && one.Output != nil {
			t.Errorf("output schema %s", one.Output)
		}
	}
	if n := strings.Count(logged.String(), "skip tool"); n != 6 || !strings.Contains(logged.String(), "tool=echo") {
		t.Errorf("%d tools skipped in the log, want 6, by name:\n%s", n, &logged)
	}
}

func TestListChanged(t *testing.T) {
	lists := make(chan int, 100)
	s := open(t, settings(t, "good"), &upstream.Options{OnOffer: func(offer tool.Offer) { lists <- len(offer.Tools) }})
	call(t, s, "touch", "{}")
	call(t, s, "grow", "{}")
	want := []int{len(definitions), len(definitions) + 1}
	for _, n := range want {
		select {
		case got := <-lists:
			if got != n {
				t.Errorf("%d tools, want %d", got, n)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no list of %d tools", n)
		}
	}
	call(t, s, "extra0", "{}")
}
