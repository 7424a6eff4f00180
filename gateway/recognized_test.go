package gateway_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/recognizer/recognizertest"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

// prose is an upstream whose texts have names and addresses that only a model would know.
func prose(s *site) {
	s.tool("letter", "A letter.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{
			Content: []mcp.Content{&mcp.TextContent{Text: "😀 Dear Zoë Quarrendon, greetings from Kraków, Zoë Quarrendon’s home."},
				&mcp.TextContent{Text: "name,note\nx,\"met Zoë Quarrendon, twice\"\n"}},
			StructuredContent: map[string]any{"body": "Zoë Quarrendon, Kraków 12, zoe@corp.example", "id": "zq-1", "list": []any{`{"inner":"in Kraków again"}`}},
		}
	})
	s.tool("fail", "Fail.", "", func(json.RawMessage) *mcp.CallToolResult {
		r := text("no letter for Zoë Quarrendon")
		r.IsError = true
		return r
	})
	s.tool("plain", "One word.", "", func(json.RawMessage) *mcp.CallToolResult { return text("ok") })
	s.tool("much", "Much text.", "", func(json.RawMessage) *mcp.CallToolResult { return text(strings.Repeat("a word ", 1000)) })
	s.tool("echo", "Give back the arguments.", `"additionalProperties":true`, echo)
}

func openRecognizing(t *testing.T, change func(*config.Privacy)) (*gateway.Gateway, *recognizertest.Server, *records) {
	t.Helper()
	s := recognizertest.New(t, map[string]string{"Zoë Quarrendon": "PERSON", "Kraków": "LOCATION", "Kraków 12, zoe": "LOCATION"})
	privacy := config.Privacy{Mode: config.PrivacyTokenize, Recognizer: &config.Recognizer{
		URL: s.URL, CA: tlstest.Authority(t), Language: "en", Threshold: 0.5, Batch: true, Timeout: 10 * time.Second, MaxText: 4 * config.KiB,
		Entities: map[string]string{"PERSON": "name", "LOCATION": "address"}, OnFailure: config.FailureRefuse,
	}}
	if change != nil {
		change(&privacy)
	}
	cfg := settings(map[string]*site{"crm": newSite(t, prose)})
	cfg.Privacy = privacy
	log := &records{}
	g := open(t, cfg, &gateway.Options{Logger: slog.New(log)})
	g.Catalog.WaitConnected(t.Context())
	return g, s, log
}

// TestRecognized: names and addresses in prose become tokens, the same in all parts of a result, and values again upstream.
func TestRecognized(t *testing.T) {
	t.Parallel()
	g, s, _ := openRecognizing(t, nil)
	got := callAs(t.Context(), t, g, "crm.letter", "{}")
	wantAll(t, "letter", got, "😀 Dear [NAME_1], greetings from [ADDRESS_1], [NAME_1]’s home.", "met [NAME_1], twice", "[EMAIL_1]", "in [ADDRESS_1] again",
		"!Quarrendon", "!Kraków", "!corp.example")
	_, requests := s.Requests()
	if requests != 1 {
		t.Errorf("%d requests for one result", requests)
	}
	texts, _ := s.Requests()
	for i, a := range texts {
		for _, b := range texts[:i] {
			if a == b {
				t.Errorf("%q was sent twice", a)
			}
		}
	}
	wantAll(t, "back", callAs(t.Context(), t, g, "crm.echo", `{"to":"[NAME_1]"}`), "[NAME_1]", "!Quarrendon")
	wantAll(t, "error", callAs(t.Context(), t, g, "crm.fail", "{}"), "no letter for [NAME_1]", "!Quarrendon")
	before, _ := s.Requests()
	wantAll(t, "plain", callAs(t.Context(), t, g, "crm.plain", "{}"), "ok")
	if after, _ := s.Requests(); len(after) != len(before) {
		t.Errorf("one word was sent: %q", after[len(before):])
	}
	clean, found, err := g.Privacy.Mask(t.Context(), "Zoë Quarrendon is in Kraków")
	if err != nil || clean != "[NAME_1] is in [ADDRESS_1]" || found != "1 address, 1 name" {
		t.Errorf("%q %q %v", clean, found, err)
	}
}

// TestRecognizedLocally: the built-in model does so without anybody being asked.
func TestRecognizedLocally(t *testing.T) {
	t.Parallel()
	const said = "Please tell Patricia Hernandez that Wolfgang Schneider has moved to 12 Main Street, Springfield."
	cfg := settings(map[string]*site{"crm": newSite(t, func(s *site) {
		s.tool("note", "A note.", "", func(json.RawMessage) *mcp.CallToolResult { return text(said) })
		s.tool("echo", "Give back the arguments.", `"additionalProperties":true`, echo)
	})})
	cfg.Privacy = config.Privacy{Mode: config.PrivacyTokenize, Recognizer: &config.Recognizer{Local: true, Timeout: time.Minute, MaxText: config.MiB}}
	g := open(t, cfg, nil)
	g.Catalog.WaitConnected(t.Context())
	wantAll(t, "note", callAs(t.Context(), t, g, "crm.note", "{}"), "Please tell [NAME_1] that [NAME_2] has moved to [ADDRESS_1]")
	wantAll(t, "back", callAs(t.Context(), t, g, "crm.echo", `{"to":"[NAME_1] at [ADDRESS_1]"}`), "[NAME_1] at [ADDRESS_1]", "!Hernandez", "!Main Street")
}

// TestNotRecognized: what could not be checked is refused, result, error and text alike, and says nothing of itself.
func TestNotRecognized(t *testing.T) {
	t.Parallel()
	g, s, log := openRecognizing(t, nil)
	const why = "error: what crm.letter answered could not be checked for personal data: it answered HTTP 500"
	s.Down.Store(recognizertest.FixedResponse(http.StatusInternalServerError, `{"error":"Zoë Quarrendon"}`))
	for range 2 {
		wantAll(t, "down", callAs(t.Context(), t, g, "crm.letter", "{}"), why, "!Quarrendon", "!Kraków")
	}
	wantAll(t, "error", callAs(t.Context(), t, g, "crm.fail", "{}"), "could not be checked", "!Quarrendon")
	wantAll(t, "plain", callAs(t.Context(), t, g, "crm.plain", "{}"), "ok")
	if clean, _, err := g.Privacy.Mask(t.Context(), "Zoë Quarrendon is in Kraków"); err == nil {
		t.Errorf("sanitized to %q", clean)
	}
	if said := log.find("the recognizer of personal data fails"); len(said) != 1 || said[0]["reason"] != "it answered HTTP 500" {
		t.Errorf("logged %v", said)
	}
	s.Down.Store(recognizertest.FixedResponse(http.StatusOK, `[[{"entity_type":"PERSON","start":0,"end":9999,"score":1}]]`))
	wantAll(t, "lies", callAs(t.Context(), t, g, "crm.letter", "{}"), "could not be checked", "!Quarrendon")
	s.Down.Store(nil)
	wantAll(t, "up again", callAs(t.Context(), t, g, "crm.letter", "{}"), "Dear [NAME_1]", "!Quarrendon")
	if len(log.find("the recognizer of personal data answers again")) != 1 {
		t.Error("nobody was told that it answers again")
	}
	wantAll(t, "too much", callAs(t.Context(), t, g, "crm.much", "{}"), "it has 7000B of text, more than privacy.recognizer.max_text (4KiB)")
}

// TestRecognizerPasses: with on_failure pass results come without it, and it is not asked again at once.
func TestRecognizerPasses(t *testing.T) {
	t.Parallel()
	g, s, log := openRecognizing(t, func(p *config.Privacy) { p.Recognizer.OnFailure = config.FailurePass })
	down := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*recognizertest.FixedResponse(500, ""))(w, r) })
	s.Down.Store(&down)
	wantAll(t, "passes", callAs(t.Context(), t, g, "crm.letter", "{}"), "Dear Zoë Quarrendon", "[EMAIL_1]")
	if len(log.find("the recognizer of personal data fails")) != 1 {
		t.Error("nobody was told")
	}
	s.Down.Store(nil)
	wantAll(t, "rests", callAs(t.Context(), t, g, "crm.letter", "{}"), "Dear Zoë Quarrendon")
	if _, requests := s.Requests(); requests != 0 {
		t.Errorf("it was asked %d times while it rests", requests)
	}
}

// TestRecognizerSettings: a mode without tokens passes what is not looked through, off asks nothing, kinds and allow count,
// and a reference without a value refuses.
func TestRecognizerSettings(t *testing.T) {
	t.Parallel()
	off, s, _ := openRecognizing(t, func(p *config.Privacy) { p.Mode = config.PrivacyOff })
	wantAll(t, "off", callAs(t.Context(), t, off, "crm.letter", "{}"), "Dear Zoë Quarrendon")
	if texts, _ := s.Requests(); len(texts) > 0 {
		t.Errorf("off asked about %q", texts)
	}
	detect, s, log := openRecognizing(t, func(p *config.Privacy) { p.Mode = config.PrivacyDetect })
	wantAll(t, "detect", callAs(t.Context(), t, detect, "crm.letter", "{}"), "Dear Zoë Quarrendon")
	if said := log.find("personal data in a result"); len(said) != 1 || !strings.Contains(said[0]["found"], "name") {
		t.Errorf("logged %v", said)
	}
	s.Down.Store(recognizertest.FixedResponse(500, ""))
	wantAll(t, "detect, down", callAs(t.Context(), t, detect, "crm.letter", "{}"), "Dear Zoë Quarrendon")
	kinds, _, _ := openRecognizing(t, func(p *config.Privacy) { p.Kinds, p.Allow = []string{"name"}, []string{"zoë quarrendon"} })
	wantAll(t, "kinds and allow", callAs(t.Context(), t, kinds, "crm.letter", "{}"), "Dear Zoë Quarrendon, greetings from Kraków")
	block, _, _ := openRecognizing(t, func(p *config.Privacy) { p.Mode = config.PrivacyBlock })
	wantAll(t, "block", callAs(t.Context(), t, block, "crm.letter", "{}"), "which the settings block", "!Quarrendon")
	unset, _, _ := openRecognizing(t, func(p *config.Privacy) { p.Recognizer.Problem = "the variable KEY is not set" })
	wantAll(t, "unset", callAs(t.Context(), t, unset, "crm.letter", "{}"), "the variable KEY is not set", "!Quarrendon")
	_, err := unset.Call(t.Context(), tool.Call{Tool: tool.ID{Upstream: "crm", Name: "letter"}})
	wantError(t, err, tool.Denied, "could not be checked")
	cfg := config.Default()
	cfg.Privacy.Recognizer = &config.Recognizer{URL: "https://localhost", CA: "/nowhere.pem"}
	if err := unset.Reload(&cfg); err == nil || !strings.Contains(err.Error(), "open recognizer") {
		t.Errorf("a missing authority: %v", err)
	}
}
