package gateway_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway"
	"sallyport/internal/config"
)

// TestSecretsStay puts a secret wherever an operator may put one for an upstream, has the
// upstream say it in every way, and seeks it in all that leaves.
func TestSecretsStay(t *testing.T) {
	const bearer, key, cookie = "s3cr3t/Bearer+T0ken-9", "K3y-in-the-URL-77", "c00kie<&>val\"ue"
	var said []string
	for _, s := range []string{bearer, key, cookie} {
		said = append(said, s, "x"+s+"y", url.QueryEscape(s), hex.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte(s)),
			base64.StdEncoding.EncodeToString([]byte("user:"+s)), base64.URLEncoding.EncodeToString([]byte("ab"+s+"cd")))
	}
	leak := newSite(t, func(s *site) {
		s.tool("leak", "Use it with "+bearer+" in the header.", `"properties":{"a":{"type":"string","description":"not `+key+`"}}`, func(json.RawMessage) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Join(said, "\n")}}, StructuredContent: map[string]any{"said": said, key: 1234567, "path": "/tmp/data", "kind": "application/json"}}
		})
		s.tool("fail", "Fail.", "", func(json.RawMessage) *mcp.CallToolResult {
			r := text("refused " + bearer)
			r.IsError = true
			return r
		})
	})
	cfg := config.Default()
	up := upstreamOf("leak", leak.web.URL+"?api_key="+key)
	up.Headers = config.Secrets{"Authorization": "Bearer " + bearer, "X-Session-Cookie": cookie, "Accept-Language": "application/json"}
	cfg.Upstreams = []config.Upstream{up}
	log := &records{}
	g := open(t, &cfg, &gateway.Options{Logger: slog.New(log), CacheDir: t.TempDir()})
	g.Catalog.WaitConnected(t.Context())

	var b strings.Builder
	b.WriteString(callAs(t.Context(), t, g, "leak.leak", "{}") + callAs(t.Context(), t, g, "leak.fail", "{}") + callAs(t.Context(), t, g, "leak.leak", `{"b":1}`))
	for path, file := range g.Catalog.Tree() {
		b.WriteString(path + string(file))
	}
	for _, tool := range g.Catalog.Tools() {
		b.WriteString(tool.Description + string(tool.Input))
	}
	for _, r := range log.list {
		r.Attrs(func(a slog.Attr) bool { b.WriteString(a.String()); return true })
	}
	all := b.String()
	for _, s := range []string{bearer, key, cookie} {
		for _, form := range []string{s, s[2 : len(s)-2], url.QueryEscape(s), hex.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte(s))[:16], base64.StdEncoding.EncodeToString([]byte("user:" + s))[8:20]} {
			if at := strings.Index(all, form); at >= 0 {
				t.Errorf("%q is in …%s", form, all[max(0, at-60):min(len(all), at+40)])
			}
		}
	}
	for _, stays := range []string{"/tmp/data", "application/json", "[hidden]", "1234567"} {
		if !strings.Contains(all, stays) {
			t.Errorf("%q is gone", stays)
		}
	}
}
