package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// secretPerson has a value of each kind that a program could want.
var secretPerson = map[string]string{
	"email": "ottilie.q@corp.example", "phone": "+14155552671", "card": "4111 1111 1111 1111", "iban": "DE44500105175407324931", "ssn": "536-22-1234",
	"ip": "198.51.100.77", "mac": "00:1a:2b:3c:4d:5e", "url": "https://ann:hunter22@db.example/x", "password": "Tr0ub4dor&3", "dob": "1987-03-09",
	"street_address": "12 Main Street, Springfield", "first_name": "Ottilie", "last_name": "Quarrendon",
}

func backwards(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// forms are what an upstream makes of the text that it gets.
var forms = map[string]func(string) any{
	"plain":    func(s string) any { return s },
	"upper":    func(s string) any { return strings.ToUpper(s) },
	"reversed": func(s string) any { return backwards(s) },
	"url":      func(s string) any { return url.QueryEscape(s) },
	"html":     func(s string) any { return html.EscapeString(strings.ReplaceAll(s, "a", "&#97;")) },
	"json":     func(s string) any { j, _ := json.Marshal(map[string]string{"in": s}); return "log: " + string(j) },
	"base64":   func(s string) any { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64_1": func(s string) any { return "id" + base64.URLEncoding.EncodeToString([]byte("x"+s)) },
	"hex":      func(s string) any { return hex.EncodeToString([]byte(s)) },
	"twice":    func(s string) any { return base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(s))) },
	"spaced":   func(s string) any { return strings.Join(strings.Split(s, ""), "-") },
	"halves":   func(s string) any { return map[string]string{"a": s[:len(s)/2], "b": s[len(s)/2:]} },
	"signs":    func(s string) any { return strings.Split(s, "") },
	"cut":      func(s string) any { return s[2 : len(s)-2] },
}

// mill is an upstream that gives what it gets back in forms of its own.
func mill(s *site) {
	kept := ""
	s.tool("person", "Get a person.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: secretPerson}
	})
	s.tool("short", "Get a short name.", "", func(json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"first_name": "Rose", "last_name": "Li"}}
	})
	take := func(raw json.RawMessage) (form, text string) {
		var in struct{ Form, Text string }
		_ = json.Unmarshal(raw, &in)
		return in.Form, in.Text
	}
	open := `"additionalProperties":true`
	s.tool("mill", "Say it in another form.", open, func(raw json.RawMessage) *mcp.CallToolResult {
		form, said := take(raw)
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"out": forms[form](said)}}
	})
	s.tool("fail", "Fail with it.", open, func(raw json.RawMessage) *mcp.CallToolResult {
		_, said := take(raw)
		r := text("no such thing: " + said)
		r.IsError = true
		return r
	})
	s.tool("keep", "Keep it.", open, func(raw json.RawMessage) *mcp.CallToolResult {
		_, kept = take(raw)
		return text("kept")
	})
	s.tool("kept", "Get what was kept.", open, func(raw json.RawMessage) *mcp.CallToolResult {
		form, _ := take(raw)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is: "}}, StructuredContent: map[string]any{"out": forms[form](kept)}}
	})
	s.tool("say", "Say what is asked for.", open, func(raw json.RawMessage) *mcp.CallToolResult {
		_, said := take(raw)
		return text(backwards(said))
	})
}

func openMill(t *testing.T, mode config.PrivacyMode) func(id string, args map[string]any) string {
	t.Helper()
	cfg := settings(map[string]*site{"crm": newSite(t, mill), "web": newSite(t, mill)})
	cfg.Privacy = config.Privacy{Mode: config.PrivacyTokenize, RestoreTo: []string{"*"}}
	for i := range cfg.Upstreams {
		if cfg.Upstreams[i].ID == "web" {
			cfg.Upstreams[i].Privacy = mode
		}
	}
	g := open(t, cfg, nil)
	g.Catalog.WaitConnected(t.Context())
	ctx := tool.WithSession(tool.WithPrincipal(t.Context(), "ann"), "1")
	return func(id string, args map[string]any) string { return millCall(ctx, t, g, id, args) }
}

func millCall(ctx context.Context, t *testing.T, g *gateway.Gateway, id string, args map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tool.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	result, err := g.Call(ctx, tool.Call{Tool: parsed, Args: raw})
	if err != nil {
		return "error: " + err.Error()
	}
	return result.Text() + string(result.Structured) + string(result.Raw)
}

// decodings is what somebody who wants the value can read in a text.
func decodings(said string) []string {
	plain := regexp.MustCompile(`[^A-Za-z0-9]`)
	all := []string{said, html.UnescapeString(said)}
	if u, err := url.QueryUnescape(said); err == nil {
		all = append(all, u)
	}
	for _, run := range regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`).FindAllString(said, -1) {
		run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
		for shift := range 4 {
			if b, _ := base64.RawStdEncoding.DecodeString(run[shift:]); len(b) > 0 {
				u, _ := url.QueryUnescape(string(b))
				all = append(all, string(b), u)
			}
		}
		if b, _ := hex.DecodeString(run); len(b) > 0 {
			all = append(all, string(b))
		}
	}
	for _, one := range all {
		all = append(all, plain.ReplaceAllString(one, ""), backwards(one))
	}
	return all
}

// A value that an upstream was given does not come back to the program, whatever stands beside it and whatever the upstream makes of it,
// in this call or in a later one.
func TestGluedTokens(t *testing.T) {
	t.Parallel()
	for _, mode := range []config.PrivacyMode{config.PrivacyTokenize, config.PrivacyOff} {
		call := openMill(t, mode)
		var tokens map[string]string
		said := call("crm.person", nil)
		if err := json.NewDecoder(strings.NewReader(said)).Decode(&tokens); err != nil {
			t.Fatalf("%v in %s", err, said)
		}
		plain := regexp.MustCompile(`[^a-z0-9]`)
		for kind, token := range tokens {
			value := secretPerson[kind]
			if !strings.HasPrefix(token, "[") {
				t.Errorf("%s has no token: %s", kind, token)
				continue
			}
			check := func(what, said string) {
				for _, read := range decodings(said) {
					read = strings.ToLower(read)
					if low := strings.ToLower(value); strings.Contains(read, low) || strings.Contains(plain.ReplaceAllString(read, ""), plain.ReplaceAllString(low, "")) {
						t.Errorf("%s, web is %s: %s says %s", what, mode, kind, said)
						return
					}
				}
			}
			call("web.keep", map[string]any{"text": "a" + token + "b"})
			for form := range forms {
				if len(value) < 8 && (form == "spaced" || form == "signs") {
					continue // the border: docs/how-to/privacy.md
				}
				check(form, call("web.mill", map[string]any{"form": form, "text": "a" + token + "b"}))
				if form != "halves" && form != "signs" && form != "cut" {
					check("kept "+form, call("web.kept", map[string]any{"form": form}))
				}
			}
			check("error", call("web.fail", map[string]any{"text": "7" + token + "7"}))
		}
		both := call("web.mill", map[string]any{"form": "plain", "text": tokens["first_name"] + tokens["last_name"]})
		wantAll(t, "two names", both, "!Ottilie", "!Quarrendon", "![TEXT")
	}
}

// The other side of the border: what is short, or a part of something else, or the program's own, stays.
func TestNotMasked(t *testing.T) {
	t.Parallel()
	call := openMill(t, config.PrivacyTokenize)
	call("crm.person", nil)
	wantAll(t, "short names", call("crm.short", nil), "[NAME_", "!Rose", "!Li")
	say := func(args map[string]any) string {
		args["form"] = "plain"
		return call("web.mill", args)
	}
	for _, own := range []string{"Ottilies Roses and Listings", "the date 19870309", "Liam rose", "4111", "see corp.example for 995362212345", "Springfield", "Main Street"} {
		wantAll(t, "never sent", say(map[string]any{"text": own}), own)
	}
	wantAll(t, "a domain", say(map[string]any{"text": "[EMAIL_1]", "x": "corp.example"}), "[EMAIL_1]")
	names := regexp.MustCompile(`\[NAME_\d+\]`).FindAllString(call("crm.short", nil), -1) // first_name, last_name
	for glue, refused := range map[string]bool{"a@": true, "@b": true, "@7": true, "@" + names[0]: true, "@ and Li's Listing, Prose, primrose": false, "(@)": false, "Dear @,": false, "x-@_y": false} {
		got := say(map[string]any{"text": strings.ReplaceAll(glue, "@", names[0])})
		if refused {
			wantAll(t, glue, got, "error: "+names[0]+": a short value must not touch", "!Rose")
		} else {
			wantAll(t, glue, got, strings.ReplaceAll(glue, "@", names[0]), "!error")
		}
	}
}

// A token that the session does not know is an error, unless it is written as a text.
func TestUnknownTokens(t *testing.T) {
	t.Parallel()
	call := openMill(t, config.PrivacyTokenize)
	call("crm.person", nil)
	say := func(text string) string {
		return call("web.mill", map[string]any{"form": "plain", "text": text})
	}
	for _, unknown := range []string{"to [EMAIL_77]", "%5BEMAIL_77%5D", `{"a":"[NAME_77_2]"}`, "[TEXT_9]"} {
		wantAll(t, unknown, say(unknown), "error: unknown token [", "[[EMAIL_1]]")
	}
	for _, text := range []string{"[email_77]", "[RFC_1]", "[EMAIL_]", "EMAIL_77", "[EMAIL_01]", "array[1]", "[[1,2],[3]]", "[text_1]: https://x"} {
		wantAll(t, text, say(text), "!error")
	}
	wantAll(t, "a text", say("[[EMAIL_77]]"), "[TEXT_", "!error")
	wantAll(t, "what it is", call("web.say", map[string]any{"text": "[[EMAIL_77]]"}), "]77_LIAME[", "!]]")
}
