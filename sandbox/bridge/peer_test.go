package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/tool"
)

// recordProgress runs during with a peer that listens, and returns what was sent and when.
func recordProgress(during func(p *peer)) (got []progress, at []time.Duration) {
	start := time.Now()
	p := &peer{wake: make(chan struct{}, 1)}
	p.send = func(told progress) { got, at = append(got, told), append(at, time.Since(start)) }
	_, _ = p.callWithProgress(func() (tool.Result, error) {
		during(p)
		return tool.Result{}, nil
	})
	return got, at
}

func TestProgressIsCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100_000
		got, at := recordProgress(func(p *peer) {
			for i := range n {
				p.Notify("notifications/progress", fmt.Appendf(nil, `{"progress":%d}`, i+1))
				time.Sleep(10 * time.Microsecond) // one second in all
			}
		})
		if len(got) < 10 || len(got) > 12 {
			t.Errorf("%d frames in a second", len(got))
		}
		for i := 1; i < len(at)-1; i++ { // the last one comes with the end of the call
			if at[i]-at[i-1] < progressInterval {
				t.Errorf("frames after %v and %v", at[i-1], at[i])
			}
		}
		if last := got[len(got)-1]; last.Progress != n {
			t.Errorf("the last one says %v", last.Progress)
		}
	})
}

// TestSpacedProgress: each progress is sent if they are more than the interval apart.
func TestSpacedProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		got, _ := recordProgress(func(p *peer) {
			for i := range n {
				p.Notify("notifications/progress", fmt.Appendf(nil, `{"progress":%d,"message":"step %d"}`, i+1, i+1))
				time.Sleep(progressInterval + time.Millisecond)
			}
		})
		for i, told := range got {
			if want := fmt.Sprint("step ", i+1); told.Progress != float64(i+1) || told.Message != want {
				t.Errorf("%+v, want %s", told, want)
			}
		}
		if len(got) != n {
			t.Errorf("%d frames, want %d", len(got), n)
		}
	})
}

func TestProgressThatStopsIsHeardWithoutTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, at := recordProgress(func(p *peer) {
			p.Notify("notifications/progress", []byte(`{"progress":1}`))
			p.Notify("notifications/progress", []byte(`{"progress":2}`))
			time.Sleep(time.Hour)
		})
		if at[len(at)-1] > progressInterval {
			t.Errorf("heard after %v", at)
		}
	})
}

func TestOddNotifications(t *testing.T) {
	whole := new(1e300)
	for params, want := range map[string][]progress{
		`{"progress":0.5,"total":1e300,"message":"\u0007é"}`:           {{0.5, whole, "\aé"}},
		`{"progress":1,"message":"` + strings.Repeat("é", 2000) + `"}`: {{1, nil, strings.Repeat("é", 512)}},
		`{"progress":1e999}`: nil, `{"progress":"1"}`: nil, `[]`: nil, `{`: nil, ``: nil, `null`: {{}},
		`{"progress":1,"x":"` + strings.Repeat("x", maxNotification) + `"}`: nil,
	} {
		got, _ := recordProgress(func(p *peer) {
			p.Notify("notifications/message", json.RawMessage(`{"progress":9}`))
			p.Notify("notifications/progress", json.RawMessage(params))
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.100s (-want +got):\n%s", params, diff)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	p := &peer{send: func(progress) { t.Error("progress was sent") }}
	_, _ = p.callWithProgress(func() (tool.Result, error) {
		p.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
		return tool.Result{}, nil
	})
	if p.latest != nil {
		t.Error("progress is kept for nobody")
	}
}

func TestQuestionsAreRefused(t *testing.T) {
	for method, want := range map[string]string{
		"elicitation/create": "a person's answer", "sampling/createMessage": "a model's answer", "roots/list": "the client's folders", "\x1b[31m": "something",
	} {
		p := &peer{}
		if err := p.explain(&tool.Error{Message: "m"}); err.Error() != "m" {
			t.Errorf("nothing was asked: %v", err)
		}
		if _, err := p.Ask(t.Context(), method, nil); tool.AsError(err).Kind != tool.Denied || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", method, err)
		}
		original := &tool.Error{Kind: tool.Failed, Message: "m"}
		if e := tool.AsError(p.explain(original)); e.Kind != tool.Failed || e.Message != "m" || !strings.Contains(e.Hint, want) || original.Hint != "" {
			t.Errorf("%q: %v, %v", method, e, original)
		}
		if e := tool.AsError(p.explain(&tool.Error{Message: "m", Hint: "h"})); e.Hint != "h" {
			t.Errorf("a hint was replaced: %v", e)
		}
	}
}

func TestValuesOfMethods(t *testing.T) {
	text := tool.Content{Type: "resource", URI: "a:b", Text: `{"a":1}`}
	blob := tool.Content{Type: "resource", URI: "a:b", Data: []byte("x"), MIME: "image/png"}
	for _, test := range []struct {
		method string
		result tool.Result
		want   string
	}{
		{tool.ReadResource, tool.Result{Content: []tool.Content{text}}, `{"json":"{\"a\":1}"}`},
		{tool.ReadResource, tool.Result{Content: []tool.Content{blob}}, `{"blob":{"data":"eA==","mime":"image/png","uri":"a:b"}}`},
		{tool.ReadResource, tool.Result{Content: []tool.Content{text, blob}}, `{"parts":[{"json":"{\"a\":1}"},{"blob":{"data":"eA==","mime":"image/png","uri":"a:b"}}]}`},
		{tool.ReadResource, tool.Result{}, `{"parts":[]}`},
		{tool.ListResources, tool.Result{Structured: []byte(`{"resources":[{"uri":"a"}],"nextCursor":"x"}`)}, `{"json":[{"uri":"a"}]}`},
		{tool.ListTemplates, tool.Result{Raw: []byte(`{"resourceTemplates":[]}`)}, `{"json":[]}`},
		{tool.ListPrompts, tool.Result{}, `{"json":[]}`},
		{tool.ListPrompts, tool.Result{Raw: []byte(`[1]`)}, `{"json":[]}`},
		{tool.GetPrompt, tool.Result{Raw: []byte(`{"messages":[]}`)}, `{"json":{"messages":[]}}`},
		{tool.GetPrompt, tool.Result{}, `{"json":null}`},
		{"echo", tool.Result{Content: []tool.Content{{Type: "text", Text: "{}"}}}, `{"json":{}}`},
	} {
		got, err := appendValue(nil, valueOf(tool.ID{Upstream: "u", Name: test.method}, test.result))
		if err != nil || string(got) != test.want {
			t.Errorf("%s of %+v: %s, %v; want %s", test.method, test.result, got, err, test.want)
		}
	}
}

func TestMethodsForPrograms(t *testing.T) {
	for method, allowed := range map[string]bool{
		"read_graph": true, tool.ListResources: true, tool.ListTemplates: true, tool.ReadResource: true, tool.ListPrompts: true, tool.GetPrompt: true,
		tool.Complete: false, tool.Subscribe: false, tool.Unsubscribe: false, tool.SetLogLevel: false,
	} {
		if err := checkMethod(tool.ID{Upstream: "u", Name: method}); (err == nil) != allowed {
			t.Errorf("%s: %v", method, err)
		}
	}
}
