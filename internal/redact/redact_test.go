package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func maskOf(secrets ...string) *Mask { return (&Book{}).For("", secrets...) }

func jsonOf(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

// TestHide has each secret in each form in which it may come back.
func TestHide(t *testing.T) {
	for _, s := range []string{"s3cr3t/Bearer+T0ken-9", `c00kie<&>val"ue`, "päss wörd\t☃𝄞", "zebra:"} {
		m := maskOf(s)
		forms := map[string]string{
			"plain": s, "joined": "x" + s + "y", "json": jsonOf(s), "json twice": jsonOf(jsonOf(s)), "json three times": jsonOf(jsonOf(jsonOf(s))),
			"query": url.QueryEscape(s), "path": url.PathEscape(s), "small": smallEscapes(url.QueryEscape(s)), "html": html.EscapeString(s), "python": `"` + inASCII(s) + `"`,
			"hex": hex.EncodeToString([]byte(s)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(s))),
			"slashes": strings.ReplaceAll(jsonOf(s), "/", `\/`),
		}
		for shift := range 3 {
			forms["base64"+strings.Repeat("+", shift)] = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", shift) + s + "tail"))
			forms["base64url"+strings.Repeat("+", shift)] = base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("u", shift) + s))
		}
		for name, form := range forms {
			text := "before " + form + " after"
			got := m.Text(text)
			if !strings.Contains(got, Hidden) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || len(s) > 6 && strings.Contains(got, form) {
				if strings.HasPrefix(name, "base64") && len(s) == 6 && got == text {
					continue // what is certain of six bytes behind others is shorter than six digits
				}
				t.Errorf("%q as %s: %q becomes %q", s, name, text, got)
			}
		}
	}
}

func TestHideLeaves(t *testing.T) {
	m := maskOf("123456789", "12345", "-1.5e+10", "tooth-fairy-7")
	for _, text := range []string{`{"n":123456789}`, "12345", `{"n":-1.5e+10}`, "tooth-fairy-8", "tooth-fairy", "", "[hidden]"} {
		data := []byte(text)
		if got := m.Hide(data); !bytes.Equal(got, data) || len(data) > 0 && &got[0] != &data[0] {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := maskOf("abcdefgh", "efghijkl", "abcdefghij").Text("xabcdefghijklx efghijkl"); got != "x[hidden]x [hidden]" {
		t.Errorf("what overlaps is one: %q", got)
	}
	var none *Mask
	if got := none.Text("x"); got != "x" {
		t.Error(got)
	}
}

// TestBook: own secrets whatever they are, those of others unless they look like words.
func TestBook(t *testing.T) {
	var b Book
	b.Set(map[string][]string{"a": {"postgres", "a-T0ken-of-a"}, "": {"gateways-own-1"}})
	a, other := b.For("a"), b.For("b", "more-of-b")
	b.Learn("a", "access-tok3n")
	const text = "postgres a-T0ken-of-a gateways-own-1 access-tok3n more-of-b"
	if got := a.Text(text); got != "[hidden] [hidden] [hidden] [hidden] more-of-b" {
		t.Error("owner:", got)
	}
	if got := other.Text(text); got != "postgres [hidden] [hidden] [hidden] [hidden]" {
		t.Error("another:", got)
	}
	b.Set(nil)
	if got := a.Text(text); got != "postgres a-T0ken-of-a gateways-own-1 [hidden] more-of-b" {
		t.Error("after others were set:", got)
	}
	for i := range 20 {
		b.Learn("a", "rotated-"+strings.Repeat("x", i))
	}
	if got := a.Text("access-tok3n, rotated-xxxxxxxxxxxxxxxxxxx."); got != "access-tok3n, [hidden]." {
		t.Error("after many tokens:", got)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"GITHUB_TOKEN", "hunter22", []string{"hunter22"}},
		{"Authorization", "Bearer abcdef", []string{"Bearer abcdef", "abcdef"}},
		{"Authorization", "Basic dXNlcjpwYXNzd29yZA==", []string{"Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA==", "user:password", "password"}},
		{"DATABASE_URL", "postgres://me:pa55w@db/x?sslmode=off", []string{"pa55w"}},
		{"URL", "https://aB3dE5fG7hI9jK1lM3nO@host/x?api_key=kkk", []string{"aB3dE5fG7hI9jK1lM3nO", "kkk"}},
		{"KEY_FILE", "/run/key", nil},
		{"MODE", "production", nil},
		{"X", "aB3dE5fG7hI9jK1lM3nO", []string{"aB3dE5fG7hI9jK1lM3nO"}},
		{"HOME", "/home/me", nil},
	} {
		if got := Value(c.name, c.value); !slices.Equal(got, c.want) {
			t.Errorf("%s=%s: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	got := Args([]string{"--token=one", "--api-key", "two", "--header", "Authorization: Bearer three", "--header=X-Api-Key: four", "--verbose", "/tmp"})
	for _, want := range []string{"one", "two", "three", "four"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if slices.Contains(got, "/tmp") || slices.Contains(got, "--verbose") {
		t.Errorf("%q", got)
	}
}

func TestHandler(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(maskOf("s3cret-1").Handler(slog.NewTextHandler(&out, nil)))
	log.With("a", "s3cret-1").WithGroup("g").Info("s3cret-1", "b", "x s3cret-1", "e", &url.Error{Op: "Get", URL: "http://s3cret-1/", Err: http404{}}, slog.Group("in", "c", "s3cret-1"), "n", 5)
	if text := out.String(); strings.Contains(text, "s3cret-1") || strings.Count(text, Hidden) != 5 || !strings.Contains(text, "g.n=5") {
		t.Error(text)
	}
}

type http404 struct{}

func (http404) Error() string { return "404" }

// FuzzHide: what was hidden is gone, and what is not hidden is all there.
func FuzzHide(f *testing.F) {
	f.Add("first-secret", "second/secret", "say first-secret and c2Vjb25kL3NlY3JldA==")
	f.Add("aaaaaaab", "baaaaaaa", strings.Repeat("a", 100))
	f.Fuzz(func(t *testing.T, one, two, text string) {
		m := maskOf(one, two)
		found := m.finder().find([]byte(text))
		got := m.Text(text)
		end := 0
		for _, s := range found {
			if s.start < end || s.end <= s.start || s.end > len(text) {
				t.Fatalf("spans %v of %d bytes", found, len(text))
			}
			end = s.end
		}
		for _, form := range m.finder().forms {
			for at := 0; ; at++ {
				i := strings.Index(text[at:], string(form))
				if i < 0 {
					break
				}
				at += i
				if !slices.ContainsFunc(found, func(s span) bool { return s.start <= at && at+len(form) <= s.end }) {
					t.Errorf("%q at %d of %q is not found", form, at, text)
				}
			}
		}
		if len(found) == 0 && got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}

// BenchmarkHide is what a message costs with 20 secrets.
func BenchmarkHide(b *testing.B) {
	var secrets []string
	for i := range 20 {
		secrets = append(secrets, "tok_"+strings.Repeat(string(rune('a'+i)), 3)+"0123456789abcdef"+string(rune('A'+i)))
	}
	m := maskOf(secrets...)
	row := `{"id":4711,"title":"some words about an issue that was closed","updated_at":"2026-01-02T03:04:05Z","url":"https://example.com/issues/4711"},`
	for _, size := range []struct {
		name string
		n    int
	}{{"1KB", 1 << 10}, {"100KB", 100 << 10}, {"10MB", 10 << 20}} {
		data := []byte(strings.Repeat(row, size.n/len(row)+1)[:size.n])
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				m.Hide(data)
			}
		})
	}
}

// FuzzStream: a text in pieces becomes what it becomes as a whole.
func FuzzStream(f *testing.F) {
	f.Add("abcdefgh", "efghijkl", "xabcdefghijklx efghijkl abcdefg", 3)
	f.Add("s3cret\nkey-in-lines-1", "s3cret", "say s3cret\nkey-in-lines-1 and czNjcmV0 s3cre", 1)
	f.Fuzz(func(t *testing.T, one, two, text string, size int) {
		m := maskOf(one, two)
		size = 1 + size&15
		s, got := m.Stream(), ""
		for i := 0; i < len(text); i += size {
			got += string(s.Next([]byte(text[i:min(i+size, len(text))])))
			if len(s.buffered) > maxBuffered {
				t.Fatalf("%d bytes are kept back", len(s.buffered))
			}
		}
		if got += string(s.End()); got != m.Text(text) && len(text) < maxBuffered {
			t.Errorf("%q in pieces of %d becomes %q, and %q as a whole", text, size, got, m.Text(text))
		}
	})
}

// BenchmarkStream is what a short piece costs with 20 secrets.
func BenchmarkStream(b *testing.B) {
	var secrets []string
	for i := range 20 {
		secrets = append(secrets, "tok_"+strings.Repeat(string(rune('a'+i)), 3)+"0123456789abcdef"+string(rune('A'+i)))
	}
	s := maskOf(secrets...).Stream()
	piece := []byte("some line of a program that tells what it does, number 17\n")
	for b.Loop() {
		s.Next(piece)
	}
}
