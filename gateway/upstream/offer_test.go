package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/gateway/upstream"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

func connect(t testing.TB, s *upstream.Session) tool.Offer {
	t.Helper()
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.Offer()
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestOffer(t *testing.T) {
	for mode, protocol := range map[string]string{"talk": "2025-11-25", "talk,modern": "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			offer := connect(t, open(t, settings(t, mode), nil))
			if len(offer.Tools) != len(talkTools) || !strings.Contains(string(offer.Tools[0].Raw), `"_meta":{"big":9007199254740993}`) {
				t.Errorf("tools: %v", names(offer.Tools))
			}
			offer.Tools = nil
			want := tool.Offer{
				Resources: []tool.Resource{
					{URI: "mem://text", Name: "text", Title: "Text", Description: "Some words.", MIME: "text/plain", Raw: raw(`{"uri":"mem://text","name":"text","title":"Text","description":"Some words.","mimeType":"text/plain","size":9007199254740993}`)},
					{URI: "mem://odd", Raw: raw(`{"uri":"mem://odd","name":[],"mimeType":1}`)},
				},
				Templates: []tool.Template{{URI: "mem://{id}", Name: "one", Raw: raw(`{"uriTemplate":"mem://{id}","name":"one","icons":[]}`)}},
				Prompts: []tool.Prompt{
					{Name: "greet", Title: "Greet", Description: "Says hello.", Arguments: []tool.Argument{{Name: "who", Description: "Whom.", Required: true}, {Name: "how"}},
						Raw: raw(`{"name":"greet","title":"Greet","description":"Says hello.","arguments":[{"name":"who","required":true,"description":"Whom."},{"name":7},"x",{"name":"how"}]}`)},
					{Name: "plain", Raw: raw(`{"name":"plain","arguments":{}}`)},
				},
				Server: tool.Server{Name: "talker", Version: "3", Protocol: protocol, Instructions: "Be kind.", Capabilities: raw(talkCapabilities)},
			}
			if diff := cmp.Diff(want, offer); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyDeclaredListsAreAskedFor(t *testing.T) {
	s := open(t, settings(t, "talk,toolsonly"), nil)
	if offer := connect(t, s); offer.Resources != nil || offer.Prompts != nil {
		t.Errorf("offer: %+v", offer)
	}
	if got := call(t, s, "counts", "").Structured; string(got) != `{"tools/list":1}` {
		t.Errorf("lists asked for: %s", got)
	}
}

func TestHostileListsOfEachKind(t *testing.T) {
	var logged bytes.Buffer
	opts := &upstream.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	for mode, want := range map[string][4]int{
		"loops":         {len(talkTools), 2, 1, 2},
		"endless-pages": {len(talkTools), 0, 0, 0},
		"huge":          {len(talkTools) - 1, 2, 1, 1}, // the second entry of each has 10 MB
		"bad":           {len(talkTools), 0, 1, 0},
		"hang":          {len(talkTools), 0, 0, 0},
	} {
		t.Run(mode, func(t *testing.T) {
			logged.Reset()
			opts.ConnectTimeout = 10 * time.Minute // 10 MB are slow with -race
			if mode == "hang" {                    // a third of it is for lists that it can do without
				opts.ConnectTimeout = 3 * time.Second
			}
			s := open(t, settings(t, "talk,"+mode), opts)
			offer := connect(t, s)
			got := [4]int{len(offer.Tools), len(offer.Resources), len(offer.Templates), len(offer.Prompts)}
			if got != want {
				t.Errorf("%v tools, resources, templates, prompts, want %v", got, want)
			}
			call(t, s, "counts", "")
			if logged.Len() > 10_000 || !strings.Contains(logged.String(), "WARN") {
				t.Errorf("log: %.2000s", &logged)
			}
		})
	}
}

func TestKnownOfferUntilConnected(t *testing.T) {
	known := connect(t, open(t, settings(t, "talk"), nil))
	fired := make(chan tool.Offer, 5)
	opts := &upstream.Options{Known: &known, OnOffer: func(o tool.Offer) { fired <- o }}
	s := open(t, settings(t, "talk"), opts)
	if diff := cmp.Diff(known, s.Offer()); diff != "" || len(s.Tools()) != len(talkTools) || s.State().Tools != len(talkTools) {
		t.Errorf("before it is connected: %s", diff)
	}
	if s.State().Status != upstream.Idle {
		t.Error("it connected by itself")
	}
	known.Tools = known.Tools[:1] // the list is the truth
	s = open(t, settings(t, "talk"), opts)
	if n := len(s.Tools()); n != 1 {
		t.Errorf("%d tools known", n)
	}
	call(t, s, "counts", "")
	if o := <-fired; len(o.Tools) != len(talkTools) || len(o.Prompts) != 2 {
		t.Errorf("OnOffer: %+v", o)
	}
}

func TestEachKindOfListChanged(t *testing.T) {
	for _, mode := range []string{"talk", "talk,modern"} {
		for kind, lists := range map[string][]string{
			"tools": {"tools/list"}, "resources": {"resources/list", "resources/templates/list"}, "prompts": {"prompts/list"},
		} {
			t.Run(mode+" "+kind, func(t *testing.T) {
				offers := make(chan tool.Offer, 10)
				s := open(t, settings(t, mode), &upstream.Options{OnOffer: func(o tool.Offer) { offers <- o }})
				before := connect(t, s)
				<-offers
				call(t, s, "grow", fmt.Sprintf(`{"kind":%q}`, kind))
				begin := time.Now()
				after := <-offers
				if took := time.Since(begin); took > 10*time.Second {
					t.Errorf("seen after %v", took)
				}
				var counts map[string]int
				if err := json.Unmarshal(call(t, s, "counts", "").Structured, &counts); err != nil {
					t.Fatal(err)
				}
				for _, list := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
					want := 1
					if slices.Contains(lists, list) {
						want = 2
					}
					if counts[list] != want {
						t.Errorf("%s was asked for %d times, want %d", list, counts[list], want)
					}
				}
				more := len(after.Tools) - len(before.Tools) + len(after.Resources) - len(before.Resources) + len(after.Templates) - len(before.Templates) + len(after.Prompts) - len(before.Prompts)
				if more != len(lists) {
					t.Errorf("%d entries more, want %d", more, len(lists))
				}
			})
		}
	}
}

func TestBrokenSubscriptionIsOpenedAgain(t *testing.T) {
	offers := make(chan tool.Offer, 10)
	s := open(t, settings(t, "talk,modern"), &upstream.Options{OnOffer: func(o tool.Offer) { offers <- o }})
	connect(t, s)
	<-offers
	call(t, s, "bye", "")
	testutil.Eventually(t, "it listens again", soon, func() bool {
		return strings.Contains(string(call(t, s, "counts", "").Structured), `"listen":2`)
	})
	call(t, s, "grow", `{"kind":"prompts"}`)
	if o := <-offers; len(o.Prompts) != 3 {
		t.Errorf("prompts: %+v", o.Prompts)
	}
}

func TestNames(t *testing.T) {
	var logged bytes.Buffer
	cfg := settings(t, "talk,names")
	cfg.Include = []string{"[a-c]*", "secret_*", "日*", "log"}
	cfg.Exclude = []string{"*_write", "counts"}
	cfg.Rename = map[string]string{
		"ask": "question", "asks": "question", // they clash: both keep their own
		"bye": "class", // the identifier of another
		"log": "a-z", "日本語": "nihongo",
	}
	s := open(t, cfg, &upstream.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	var got []string
	for _, one := range connect(t, s).Tools {
		got = append(got, one.ID.Name+"="+one.Wire)
	}
	want := []string{"a_b=a_b", "a_b_" + digestOfName() + "=a-b", "a_z=log", "answered=answered", "ask=ask", "asks=asks", "busy=busy", "bye=bye", "class_=class", "nihongo=日本語", "secret_read=secret_read"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"ask", "asks", "bye"} {
		if !strings.Contains(logged.String(), "new one is taken\" tool="+name+" ") {
			t.Errorf("the log does not name %s:\n%s", name, &logged)
		}
	}
	if text := call(t, s, "a_z", `{"say":"x"}`).Text(); text != "logged" {
		t.Errorf("a renamed tool: %s", text)
	}
}

func digestOfName() string {
	id := tool.Identifiers([]string{"a-b", "a_b"})[0]
	return id[len("a_b_"):]
}
