package embeddings_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sallyport/gateway/embeddings"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// TestParaphrase: what shares no word with a query is found by its meaning.
func TestParaphrase(t *testing.T) {
	e := newEndpoint(t)
	r := open(t, e.settings(), nil)
	if got := r.Rank(t.Context(), "cancel appointment", nil); got != nil {
		t.Errorf("of no documents: %v", got)
	}
	r.Replace(catalog(office...))
	for query, want := range map[string]string{"cancel appointment": "delete_event", "file bug": "create_issue", "dm": "send_message", "users": "list_users"} {
		if got := ready(t, r, query); got != want {
			t.Errorf("%q: %s", query, got)
		}
	}
	ids := r.Rank(t.Context(), "cancel appointment", nil)
	if len(ids) != len(office) {
		t.Errorf("%d of %d are ranked", len(ids), len(office))
	}
	if got := r.Rank(t.Context(), "cancel appointment", func(id tool.ID) bool { return id.Name == "list_users" }); len(got) != 1 {
		t.Errorf("of one only: %v", got)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(e.keys, func(key string) bool { return key != "Bearer sk-hunter2" }) {
		t.Errorf("keys: %q", e.keys)
	}
}

// TestPrefixes: a model gets the words that it was trained with before queries and before documents, and others in the settings
// make other vectors.
func TestPrefixes(t *testing.T) {
	e, dir := newEndpoint(t), t.TempDir()
	s := e.settings()
	for _, prefix := range []string{"search_document: ", "passage: "} {
		s.QueryPrefix, s.DocumentPrefix = "query of it: ", prefix
		r := open(t, s, &embeddings.Options{Dir: dir})
		r.Replace(catalog("delete event", "create issue"))
		if got := ready(t, r, " cancel  appointment"); got != "delete_event" {
			t.Errorf("%s is first", got)
		}
		if asked := e.take(); !slices.Equal(slices.Compact(asked), slices.Sorted(slices.Values([]string{prefix + "create issue", prefix + "delete event", "query of it: cancel appointment"}))) {
			t.Errorf("the endpoint got %q", asked)
		}
	}
}

// TestBase64: an endpoint may send vectors as base64 of 32-bit floats, as that of OpenAI does by request.
func TestBase64(t *testing.T) {
	e := newEndpoint(t)
	e.base64.Store(true)
	r := open(t, e.settings(), nil)
	r.Replace(catalog(office...))
	for query, want := range map[string]string{"cancel appointment": "delete_event", "file bug": "create_issue"} {
		if got := ready(t, r, query); got != want {
			t.Errorf("%q: %s", query, got)
		}
	}
}

// TestQueriesAreRemembered: the same words again are not asked for again.
func TestQueriesAreRemembered(t *testing.T) {
	e := newEndpoint(t)
	r := open(t, e.settings(), nil)
	r.Replace(catalog(office...))
	ready(t, r, "dm")
	e.take()
	for range 10 {
		ready(t, r, "dm")
		ready(t, r, "  dm ")
	}
	if asked := e.take(); len(asked) > 0 {
		t.Errorf("asked again: %q", asked)
	}
	for i := range 300 {
		ready(t, r, fmt.Sprint("query ", i))
	}
	e.take()
	ready(t, r, "dm")
	if asked := e.take(); len(asked) != 1 {
		t.Errorf("300 queries later it asks %q", asked)
	}
}

// TestKept: a restart asks for nothing, a changed tool for itself, another model for all.
func TestKept(t *testing.T) {
	e, opts := newEndpoint(t), &embeddings.Options{Dir: filepath.Join(t.TempDir(), "embeddings")}
	first := open(t, e.settings(), opts)
	first.Replace(catalog(office...))
	ready(t, first, "cancel appointment")
	if asked := e.take(); !slices.Equal(slices.DeleteFunc(asked, func(s string) bool { return s == "cancel appointment" }), slices.Sorted(slices.Values(office))) {
		t.Errorf("at first it asks %q", asked)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	first.Replace(nil)
	if got := first.Rank(t.Context(), "another", nil); got != nil {
		t.Errorf("after Close: %v", got)
	}

	again := open(t, e.settings(), opts)
	again.Replace(catalog(office...))
	if got := ready(t, again, "cancel appointment"); got != "delete_event" {
		t.Errorf("from disk: %s", got)
	}
	if asked := e.take(); !slices.Equal(asked, []string{"cancel appointment"}) {
		t.Errorf("a restart asks %q", asked)
	}
	changed := catalog(append([]string{"create issue in a project"}, office[2:]...)...)
	again.Replace(changed)
	testutil.Eventually(t, "the changed tool is asked for", 10*time.Second, func() bool { return e.requests() > 0 })
	if asked := e.take(); !slices.Equal(asked, []string{"create issue in a project"}) {
		t.Errorf("a change asks %q", asked)
	}

	other := e.settings()
	other.Model = "large"
	r := open(t, other, opts)
	r.Replace(catalog(office...))
	ready(t, r, "dm")
	if asked := e.take(); len(asked) != len(office)+1 {
		t.Errorf("another model asks %q", asked)
	}
	names, _ := filepath.Glob(filepath.Join(opts.Dir, "*"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		info, _ := os.Stat(name)
		if err != nil || info.Mode() != 0o600 || bytes.Contains(data, []byte("issue")) || bytes.Contains(data, []byte("hunter2")) {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestTwoGateways: what one has embedded the other need not.
func TestTwoGateways(t *testing.T) {
	e, opts := newEndpoint(t), &embeddings.Options{Dir: t.TempDir()}
	a, b := open(t, e.settings(), opts), open(t, e.settings(), opts)
	a.Replace(catalog(office[:3]...))
	b.Replace(catalog(office[2:]...))
	ready(t, a, "dm")
	ready(t, b, "dm")
	kept := func() bool {
		names, _ := filepath.Glob(filepath.Join(opts.Dir, "*.vectors"))
		if len(names) != 1 {
			return false
		}
		info, err := os.Stat(names[0])
		return err == nil && info.Size() >= int64(len(office)*dims)
	}
	testutil.Eventually(t, "both are kept", 10*time.Second, kept)
	e.take()
	c := open(t, e.settings(), opts)
	c.Replace(catalog(office...))
	ready(t, c, "dm")
	if asked := e.take(); !slices.Equal(asked, []string{"dm"}) {
		t.Errorf("the third asks %q", asked)
	}
}

// TestDamagedFile: what cannot be read is asked for again, and replaced.
func TestDamagedFile(t *testing.T) {
	e, opts := newEndpoint(t), &embeddings.Options{Dir: t.TempDir()}
	r := open(t, e.settings(), opts)
	r.Replace(catalog(office...))
	ready(t, r, "dm")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(opts.Dir, "*.vectors"))
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{"cut": whole[:len(whole)-1], "empty": {}, "junk": []byte("junk\njunk"), "bit": append(bytes.Clone(whole[:len(whole)-1]), whole[len(whole)-1]^1)} {
		if err := os.WriteFile(names[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
		e.take()
		r := open(t, e.settings(), opts)
		r.Replace(catalog(office...))
		ready(t, r, "dm")
		if asked := e.take(); len(asked) != len(office)+1 {
			t.Errorf("%s: asks %q", what, asked)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(names[0]); err != nil || !bytes.Equal(now, whole) {
			t.Errorf("%s: it was not written again, %v", what, err)
		}
	}
}
