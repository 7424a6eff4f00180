package addition_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway/addition"
	"sallyport/gateway/settingsedit"
	"sallyport/internal/access"
	"sallyport/internal/audit"
	"sallyport/internal/candidate"
	"sallyport/internal/registry/registrytest"
	"sallyport/internal/testutil/tlstest"
	"sallyport/internal/tool"
)

func TestMain(m *testing.M) { os.Exit(tlstest.M{Tests: m}.Run()) }

// office is a desk over a settings file of a test.
type office struct {
	addition.Adder
	path    string
	audited []audit.Event
	refuse  error
	tested  chan string
}

func openOffice(t *testing.T) *office {
	t.Helper()
	servers, packages := registrytest.Weather(t)
	o := &office{path: filepath.Join(t.TempDir(), "upstreams.yaml"), tested: make(chan string, 9)}
	writeFile(t, o.path, "# mine\nregistry: "+servers.URL+"\nenv_file: secrets.env\nupstreams:\n  notes: {url: https://notes.example.com/mcp} # good\n")
	writeFile(t, filepath.Join(filepath.Dir(o.path), "secrets.env"), "OLD=1\n")
	env := func(name string) (string, bool) { return packages.URL, name == "npm_config_registry" }
	o.Adder = addition.Adder{Finder: addition.Finder{Env: env}, Settings: settingsedit.New(settingsedit.Options{
		Path: func() string { return o.path }, Getenv: env, Reload: func() string { return "" },
		Record: func(_ context.Context, e audit.Event) error { o.audited = append(o.audited, e); return o.refuse },
	}), Test: func(_ context.Context, id string) error {
		o.tested <- id
		if len(o.tested) < 2 {
			return errors.New("npm:@acme/weather is being installed; try again in a minute")
		}
		return errors.New("it does not start")
	}}
	return o
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (o *office) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(o.path), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func admin(t *testing.T) context.Context {
	t.Helper()
	return access.Caller{Principal: "oauth:ann"}.WithRole(access.Admin).NewContext(t.Context())
}

// weather are the values of the server in the registry.
func weather() candidate.Values {
	return candidate.Values{"WEATHER_KEY": {"hunter2-hunter2"}, "place": {"here"}}
}

// TestAdder: a server is found, shown with what it may reach, and added: comments are kept, secrets are in the env_file, the edit is
// on record, and the connection is tried until the packages are installed.
func TestAdder(t *testing.T) {
	o := openOffice(t)
	results, more, err := o.Search(admin(t), "weather")
	if err != nil || len(results) == 0 || results[0].Server.Name != "io.github.acme/weather" || more {
		t.Fatalf("%+v, %v", results, err)
	}
	p, err := o.Find(admin(t), "io.github.acme/weather", candidate.Choice{})
	if err != nil || p.Name != "weather" {
		t.Fatalf("%+v, %v", p, err)
	}
	shown := ""
	for _, fact := range p.Access {
		shown += fact.Label + ": " + fact.Text + "\n"
	}
	if !strings.Contains(shown, "runs: npx ") || !strings.Contains(shown, "isolated: yes\nhosts: none\n") {
		t.Error(shown)
	}
	added, err := o.Add(admin(t), p.Candidate, addition.Options{Name: "weather", Values: weather(), Hosts: []string{"api.example"}})
	if err != nil || added != (addition.Added{Name: "weather"}) {
		t.Fatalf("%+v, %v", added, err)
	}
	text := o.read(t, "upstreams.yaml")
	if !strings.HasPrefix(text, "# mine\n") || !strings.Contains(text, " # good\n") || !strings.Contains(text, "WEATHER_KEY: ${WEATHER_KEY}") || !strings.Contains(text, "api.example") || strings.Contains(text, "hunter2") {
		t.Error(text)
	}
	if secrets := o.read(t, "secrets.env"); secrets != "OLD=1\nexport WEATHER_KEY='hunter2-hunter2'\n" {
		t.Errorf("%q", secrets)
	}
	if len(o.audited) != 1 || o.audited[0].Kind != audit.SettingsChanged || o.audited[0].Note != "added upstreams.weather" {
		t.Errorf("on record: %+v", o.audited)
	}
	for range 2 {
		if id := <-o.tested; id != "weather" {
			t.Errorf("%s was tested", id)
		}
	}
	again, err := o.Add(admin(t), p.Candidate, addition.Options{Name: "other", Values: weather(), Hosts: []string{"api.example"}})
	if err != nil || again != (addition.Added{Name: "weather", Existing: true}) || o.read(t, "upstreams.yaml") != text {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestAdderRefuses: nothing is written, stored or tried of what the settings cannot have, or callers may not do.
func TestAdderRefuses(t *testing.T) {
	o := openOffice(t)
	p, err := o.Find(admin(t), "io.github.acme/weather", candidate.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	before, user, values := o.read(t, "upstreams.yaml"), access.Caller{Principal: "token:ci", Operator: "token:ci"}.NewContext(t.Context()), weather()
	for says, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // the caller of a case
		opts addition.Options
	}{
		"only an administrator":       {user, addition.Options{Values: values}},
		"the settings would not load": {admin(t), addition.Options{Name: "notes", Values: values}},
		"would not load":              {admin(t), addition.Options{Values: values, Hosts: []string{"a b"}}},
		"there is no value":           {admin(t), addition.Options{Values: candidate.Values{"none": {"x"}}}},
		"these values are required":   {admin(t), addition.Options{}},
	} {
		_, err := o.Add(c.ctx, p.Candidate, c.opts)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, says)
		}
	}
	for _, lookup := range []func() error{
		func() error { _, err := o.Find(user, "github", candidate.Choice{}); return err },
		func() error { _, _, err := o.Search(user, "weather"); return err },
	} {
		if err := lookup(); tool.AsError(err).Kind != tool.Denied {
			t.Errorf("a token looks a server up: %v", err)
		}
	}
	if _, err := o.Find(admin(t), "npm:@acme/none", candidate.Choice{}); tool.AsError(err).Kind != tool.NotFound {
		t.Errorf("%v", err)
	}
	o.refuse = errors.New("no room")
	if _, err := o.Add(admin(t), p.Candidate, addition.Options{Values: candidate.Values{"place": {"here"}}}); !errors.Is(err, o.refuse) {
		t.Errorf("%v", err)
	}
	if o.read(t, "upstreams.yaml") != before || o.read(t, "secrets.env") != "OLD=1\n" || len(o.tested) > 0 {
		t.Error("something was written or tried")
	}
}
