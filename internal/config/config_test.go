package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sallyport/internal/access"
	"sallyport/internal/secretstore"
	"sallyport/internal/yamlstrict"
)

func TestParse(t *testing.T) {
	c, err := Parse("/etc/sallyport/upstreams.yaml", []byte(`
sandbox: {timeout: 1m30s, memory: 1 GiB, processes: 128, open_files: 32, workspace: 1MiB, output: 65536B,
          calls: 1, concurrency: 2, runsc: ../bin/runsc, python: python3.13, node: "${HOME}/node", typecheck: false, pyright: ../p, tsc: ../t/tsc,
          cpu: 10s, file_size: 4KiB, inodes: 16, traffic: 1MiB, parallel: 8, queue: 0, queue_wait: 5s, pool: {min: 0, max: 2, memory: 64MiB}, reuse: never, session_idle: 1h, masked: [/usr/share/doc, /usr/local/bin/x]}
environments:
  default: {python: {requirements: ["pandas==2.2.3", "six", "requests[socks] >=2, <3"], index: "http://127.0.0.1:8080/simple", source: true}}
  data:
    description: tables
    python: {base: venvs/data}
    typescript: {interpreter: ../node, packages: [zod@3.25.0, "@scope/a@^1.2.3"], registry: "https://npm.example/x"}
    install: true
  img: {image: "registry.example:5000/python:3.13@sha256:0123456789012345678901234567890123456789012345678901234567890123", python: {interpreter: /usr/bin/python3}}
  dir: {root: rootfs}
upstreams:
  z-last:
    description: "what it is"
    command: ./server
    args: [a, "8080", "${SECRET}", '']
    env: {TOKEN: "${SECRET}", MODE: "no"}
    cwd: ../work
    timeout: 90s
    disabled: true
  a:
    url: https://example.com/mcp
    headers: {Authorization: "Bearer ${SECRET}"}
  class: {command: x, cwd: /tmp/}
workflows: {path: ../flows, secrets: {builds: "${SECRET}-x", later: "${NOT_SET}"}, keep: 7d, runs: 2, limits: {items: 5, steps: 6, bytes: 7MiB, time: 8h}}
`), env)
	if err != nil {
		t.Fatal(err)
	}
	with := func(u Upstream) Upstream {
		u.Transport, u.Auth.Store, u.Trust, u.Concurrency, u.MaxMessage, u.Instances, u.Idle = "auto", "auto", TrustPin, 32, 64*MiB, "each", 10*time.Minute
		return u
	}
	want := &Config{
		Path: "/etc/sallyport/upstreams.yaml", Dir: "/etc/sallyport",
		Mode: ModeCode, Trust: TrustPin, Observe: true, Search: Search{Learn: true}, Registry: "https://registry.modelcontextprotocol.io", Skills: Skills{Review: true}, HTTP: HTTP{Body: 8 * MiB, Grace: 20 * time.Second, Limits: HTTPLimits{Requests: access.Rate{Count: 6000, Per: time.Minute}, Executions: access.Rate{Count: 600, Per: time.Minute}}}, Approval: Approval{Wait: 30 * time.Second, Expire: time.Hour}, Journal: Journal{Keep: 24 * time.Hour, Size: 256 * MiB, Successes: true, Sync: true}, Records: Records{Output: 64 * KiB, Keep: 30 * 24 * time.Hour}, Store: Store{Replicas: 1, Prefix: "sallyport"}, SecretManagers: secretstore.DefaultManagers(), Audit: Audit{Code: AuditDigest, Keep: 90 * 24 * time.Hour, Size: GiB},
		Tasks:     defaultTasks(),
		Workflows: Workflows{Path: "/etc/flows", Secrets: Secrets{"builds": secret + "-x"}, Keep: 7 * 24 * time.Hour, Runs: 2, Limits: RunLimits{Items: 5, Steps: 6, Bytes: 7 * MiB, Time: 8 * time.Hour}, Problem: "the variable NOT_SET is not set"},
		Upstreams: []Upstream{
			with(Upstream{Name: "z-last", ID: "z_last", Description: "what it is", Command: "./server", Args: []string{"a", "8080", secret, ""},
				Env: Secrets{"TOKEN": secret, "MODE": "no"}, Dir: "/etc/work", Timeout: 90 * time.Second, Disabled: true}),
			with(Upstream{Name: "a", ID: "a", URL: "https://example.com/mcp", Headers: Secrets{"Authorization": "Bearer " + secret}, Timeout: time.Minute}),
			with(Upstream{Name: "class", ID: "class_", Command: "x", Dir: "/tmp", Timeout: time.Minute}),
		},
		Sandbox: Sandbox{Timeout: 90 * time.Second, Memory: GiB, Processes: 128, OpenFiles: 32, Workspace: MiB, Output: 64 * KiB,
			Calls: 1, Concurrency: 2, Runsc: "/etc/bin/runsc", Python: "python3.13", Node: "/home/me/node", Pyright: "/etc/p", Tsc: "/etc/t/tsc",
			CPU: 10 * time.Second, FileSize: 4 * KiB, Inodes: 16, Traffic: MiB, Pool: Pool{Max: 2, Memory: 64 * MiB}, Reuse: ReuseNever, SessionIdle: time.Hour,
			Parallel: 8, QueueWait: 5 * time.Second,
			Masked: []string{"/usr/share/doc", "/usr/local/bin/x"}},
		Environments: map[string]Environment{
			"default": {Python: PythonPackages{Requirements: []string{"pandas==2.2.3", "six", "requests[socks] >=2, <3"}, Index: "http://127.0.0.1:8080/simple", Source: true}},
			"data": {Description: "tables", Python: PythonPackages{Base: "/etc/sallyport/venvs/data"}, Install: true,
				TypeScript: NodePackages{Interpreter: "/etc/node", Packages: []string{"zod@3.25.0", "@scope/a@^1.2.3"}, Registry: "https://npm.example/x"}},
			"img": {Image: "registry.example:5000/python:3.13@sha256:0123456789012345678901234567890123456789012345678901234567890123", Python: PythonPackages{Interpreter: "/usr/bin/python3"}},
			"dir": {Root: "/etc/sallyport/rootfs"},
		},
		References: map[string]Secrets{"": {"HOME": "/home/me", "SECRET": secret}, "a": {"SECRET": secret}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Parse("upstreams.yaml", []byte("\ufeffupstreams: {}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	here, _ := os.Getwd()
	want := Default()
	want.Path, want.Dir, want.Workflows.Path = "upstreams.yaml", here, filepath.Join(here, "workflows")
	if diff := cmp.Diff(&want, c); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want.Sandbox.Memory.String() != "512MiB" || want.Sandbox.Output.String() != "16KiB" {
		t.Errorf("sizes print as %v, %v", want.Sandbox.Memory, want.Sandbox.Output)
	}
}

func TestExpand(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"plain", "plain"},
		{"${SECRET}", secret},
		{"a${SECRET}b${HOME}c", "a" + secret + "b/home/mec"},
		{"$SECRET $ $", "$SECRET $ $"},
		{"$$ $${SECRET} $$$${", "$ ${SECRET} $${"},
		{"$$${SECRET}", "$" + secret},
		{"${EMPTY}", ""},
		{"${EMPTY:-x}", "x"},
		{"${UNSET:-}", ""},
		{"${UNSET:-a b:-c$$d$}", "a b:-c$d$"},
		{"${UNSET:-two\nlines}", "two\nlines"},
		{"${SECRET:-x}", secret},
		{"${REF}", "${SECRET} $$ $SECRET"}, // not expanded again
		{"${YAML}", "x, y]\ncommand: \"evil"},
		{"}{$", "}{$"},
		{"日本${HOME}語", "日本/home/me語"},
	} {
		arg, err := json.Marshal(test.in) // a JSON string is a YAML string
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse("f", fmt.Appendf(nil, "upstreams: {a: {command: x, args: [%s, end]}}", arg), env)
		if err != nil {
			t.Errorf("%q: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff([]string{test.want, "end"}, c.Upstreams[0].Args); diff != "" {
			t.Errorf("%q: -want +got:\n%s", test.in, diff)
		}
	}
}

// What a variable holds stays one value even where the file does not quote the reference.
func TestExpansionInjectsNothing(t *testing.T) {
	c, err := Parse("f", []byte("upstreams:\n  a:\n    command: ${YAML}\n    args: [ ${YAML:-} ]\n"), env)
	if err == nil {
		t.Fatalf("a flow list with a bare { is not YAML, but %v", c)
	}
	c, err = Parse("f", []byte("upstreams:\n  a:\n    command: ${YAML}\n    description: ${EMPTY:-[x, y]}\n"), env)
	if err != nil {
		t.Fatal(err)
	}
	yaml, _ := env("YAML")
	if u := c.Upstreams[0]; u.Command != yaml || len(u.Args) > 0 || u.Description != "[x, y]" {
		t.Errorf("got %q %q %q", u.Command, u.Args, u.Description)
	}
}

func TestDisabledMayLackVariables(t *testing.T) {
	c, err := Parse("f", []byte("upstreams: {a: {url: '${UNSET}/mcp', headers: {A: '${UNSET}'}, disabled: true}}"), env)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Upstreams[0].Disabled || c.Upstreams[0].Headers["A"] != "${UNSET}" {
		t.Errorf("got %q", c.Upstreams[0].Headers["A"])
	}
	if _, err := Parse("f", []byte("upstreams: {a: {url: '${UNSET', disabled: true}}"), env); err == nil {
		t.Error("a malformed reference passed")
	}
}

func TestReferencesToFilesAndKeyring(t *testing.T) {
	c, err := sources.Parse("/etc/s/upstreams.yaml", []byte(`
upstreams:
  a: {command: x, args: ["${file:token}", "<${file:../token}>", "${file:/run/token}${file:token}", "${file:refs}", "$${file:token}"], env: {A: "b ${keyring:token}"}}
  off: {command: x, args: ["${file:nothing}", "${keyring:nothing}", "${keyring:token}"], disabled: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	u, off := c.Upstreams[0], c.Upstreams[1]
	if diff := cmp.Diff([]string{secret, "<" + secret + ">", secret + secret, "${SECRET} $$", "${file:token}"}, u.Args); diff != "" {
		t.Error(diff)
	}
	if u.Env["A"] != "b "+secret {
		t.Errorf("env is %q", u.Env["A"])
	}
	if diff := cmp.Diff([]string{"${file:nothing}", "${keyring:nothing}", "${keyring:token}"}, off.Args); diff != "" {
		t.Errorf("a disabled upstream looked: %s", diff)
	}
	if diff := cmp.Diff([]string{"/etc/s/token", "/etc/token", "/run/token", "/etc/s/refs"}, c.Files); diff != "" {
		t.Error(diff)
	}
}

// Load itself reads real files.
func TestLoadReadsSecretFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), secret+"\n")
	file := filepath.Join(dir, "upstreams.yaml")
	write(t, file, "upstreams: {a: {command: x, args: ['${file:token}']}}")
	c, err := Load(file, nil)
	if err != nil || c.Upstreams[0].Args[0] != secret {
		t.Fatalf("got %v, %v", c, err)
	}
	if err := os.Remove(filepath.Join(dir, "token")); err != nil {
		t.Fatal(err)
	}
	c, err = Load(file, nil)
	if err != nil || c.Upstreams[0].Problem != `the file "token" cannot be used: no such file or directory` {
		t.Errorf("without the file: %v, %v", c, err)
	}
}

func TestErrorIsMachineReadable(t *testing.T) {
	_, err := Parse("up.yaml", []byte("upstreams:\n  a: {comand: x}\n"), env)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%T is no *Error", err)
	}
	want := &Error{File: "up.yaml", Line: 2, Column: 7, Message: `unknown key "comand"; did you mean "command"?`,
		Snippet: "  2 |   a: {comand: x}\n            ^"}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNothingShowsSecrets(t *testing.T) {
	c, err := Parse("f", []byte(`upstreams:
  a: {command: "x${SECRET}", args: ["--token=${SECRET}"], env: {TOKEN: "${SECRET}"}, description: "${SECRET}"}
  b: {url: "https://me:${SECRET}@example.com?key=${SECRET}", headers: {Authorization: "${SECRET}"}, disabled: true}
  c: {url: "https://example.com", socket: "/${SECRET}", include: ["${SECRET}"], rename: {a: "hunter2"}, auth: {type: client_credentials, client_id: "${SECRET}", client_secret: "${SECRET}", scopes: ["${SECRET}"]}}
search: {embeddings: {url: "https://me:${SECRET}@example.com/v1?key=${SECRET}", model: "${SECRET}", headers: {Authorization: "${SECRET}"}}}
privacy: {recognizer: {url: "https://me:${SECRET}@example.com/?key=${SECRET}", headers: {Authorization: "${SECRET}"}}}
http: {tokens: {ci: "${SECRET}-${SECRET}"}}`), env)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	values := []any{c, *c, c.Upstreams, c.Upstreams[0], &c.Upstreams[1], c.Upstreams[0].Env, c.Upstreams[1].Headers, c.Upstreams[2].Auth, c.Upstreams[2].Auth.ClientSecret, c.HTTP, c.Search, c.Search.Embeddings, *c.Search.Embeddings, c.Privacy, c.Privacy.Recognizer, *c.Privacy.Recognizer, struct{ C Config }{*c}}
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "value", value)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "value", value)
	}
	if strings.Contains(out.String(), secret) || strings.Contains(out.String(), fmt.Sprintf("%x", secret)) {
		t.Errorf("a secret shows:\n%s", out.String())
	}
	want := `upstream "a" (stdio, 1 args, env [TOKEN]) upstream "b" (http, headers [Authorization], disabled) upstream "c" (http, headers [], auth client_credentials)`
	if got := fmt.Sprint(c.Upstreams[0], c.Upstreams[1], c.Upstreams[2]); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A reference without a value stops the endpoint and nothing else.
func TestSearch(t *testing.T) {
	c, err := Parse("f", []byte(`{upstreams: {}, search: {learn: false, embeddings: {url: "http://127.0.0.1:11434/v1", model: m, headers: {A: "${SECRET}"}}}}`), env)
	if err != nil {
		t.Fatal(err)
	}
	want := Search{Embeddings: &Embeddings{URL: "http://127.0.0.1:11434/v1", Model: "m", Headers: Secrets{"A": secret}, Timeout: 300 * time.Millisecond}}
	if diff := cmp.Diff(want, c.Search); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c, err = Parse("f", []byte(`{upstreams: {}, search: {embeddings: {url: "${UNSET}", model: m, headers: {A: "${UNSET}"}}}}`), env)
	if err != nil || !c.Search.Learn || c.Search.Embeddings.Problem != "the variable UNSET is not set" {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := Parse("f", []byte(`{upstreams: {}, search: {learn: "${UNSET}", embeddings: {url: "${UNSET", model: m}}}`), env); err == nil {
		t.Error("a malformed reference passed")
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{"0B": 0, "1B": 1, "16KiB": 16 << 10, "512MiB": 512 << 20, "3 GiB": 3 << 30, "8388607TiB": 8388607 << 40, "-2KiB": -2048} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
		if back, err := ParseSize(got.String()); err != nil || back != got {
			t.Errorf("%q prints as %q, which reads as %d, %v", text, got, back, err)
		}
	}
	for _, text := range []string{"", "MiB", "1", "1.5MiB", "0x1B", "+1B", "1_0B", "1  KiB", "1kb", "1Mi", "1 mib", "1QiB", "8388608TiB", "9223372036854775808B", "1B "} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestValidate(t *testing.T) {
	valid := func() *Config {
		c := Default()
		u := defaultUpstream("/")
		u.Name, u.ID, u.Command, u.Trust = "a-b", "a_b", "x", TrustPin
		c.Upstreams = []Upstream{u}
		return &c
	}
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		`upstreams.a-b: the ID of upstream "a-b" must be a_b`:              func(c *Config) { c.Upstreams[0].ID = "" },
		`upstreams.a-b: upstream "a-b" needs a "command"`:                  func(c *Config) { c.Upstreams[0].Command = "" },
		`upstreams.a-b.timeout: "timeout" must be from 10ms to 24h`:        func(c *Config) { c.Upstreams[0].Timeout = 0 },
		`upstreams.a-b.cwd: the directory must be absolute`:                func(c *Config) { c.Upstreams[0].Dir = "x" },
		`upstreams.a-b.headers: "headers" belongs to`:                      func(c *Config) { c.Upstreams[0].Headers = Secrets{"A": "b"} },
		`upstreams.a-b.args[0]: "args[0]" has a NUL byte`:                  func(c *Config) { c.Upstreams[0].Args = []string{"\x00"} },
		`upstreams.a_b: upstreams "a-b" and "a_b" would both be imported`:  func(c *Config) { u := c.Upstreams[0]; u.Name = "a_b"; c.Upstreams = append(c.Upstreams, u) },
		`upstreams.a-b.trust: "trust" must be one of pin, review, allow`:   func(c *Config) { c.Upstreams[0].Trust = "" },
		`upstreams.a-b.concurrency: "concurrency" must be from 1 to 1024`:  func(c *Config) { c.Upstreams[0].Concurrency = 0 },
		`upstreams.a-b.socket: "socket" belongs to an upstream with a`:     func(c *Config) { c.Upstreams[0].Socket = "/s" },
		`upstreams.a-b.rename.x: "y-z" cannot be a name in a program`:      func(c *Config) { c.Upstreams[0].Rename = map[string]string{"x": "y-z"} },
		`trust: "trust" must be one of pin, review, allow`:                 func(c *Config) { c.Trust = "some" },
		`http.tokens.ci: token "ci" is shorter than 16 characters`:         func(c *Config) { c.HTTP.Tokens = Secrets{"ci": "short"} },
		`http.oauth: "oauth" needs "issuer"`:                               func(c *Config) { c.HTTP.OAuth = &ResourceServer{Audience: "https://a/mcp"} },
		`sandbox.memory: "memory" must be from 32MiB to 1TiB`:              func(c *Config) { c.Sandbox.Memory = 0 },
		`sandbox.concurrency: "concurrency" must be from 1 to 1024`:        func(c *Config) { c.Sandbox.Concurrency = 5000 },
		`sandbox.open_files: "open_files" must be from 32 to 1048576`:      func(c *Config) { c.Sandbox.OpenFiles = 3 },
		`sandbox.pool.min: "min" must not be more than "max"`:              func(c *Config) { c.Sandbox.Pool.Max = 0 },
		`sandbox.placement: "gpu=" is not a label`:                         func(c *Config) { c.Sandbox.Placement = []string{"gpu"} },
		`sandbox.placement: "placement" chooses among workers`:             func(c *Config) { c.Sandbox.Placement = []string{"gpu=true"} },
		`sandbox.masked[0]: a masked path is absolute, below /usr`:         func(c *Config) { c.Sandbox.Masked = []string{"/usr/../etc"} },
		`environments.e.root: the directory must be absolute`:              func(c *Config) { c.Environments = map[string]Environment{"e": {Root: "x"}} },
		`environments.-: "-" cannot name an environment`:                   func(c *Config) { c.Environments = map[string]Environment{"-": {}} },
		`sandbox.timeout: "timeout" must be from 100ms to 24h` + "\nsandb": func(c *Config) { c.Sandbox.Timeout, c.Sandbox.Output = 0, 0 },
	} {
		c := valid()
		change(c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml"), env); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Load(dir, env); err == nil || !strings.HasPrefix(err.Error(), "load config: read ") {
		t.Errorf("a directory: %v", err)
	}
	big := filepath.Join(dir, "big.yaml")
	write(t, big, "upstreams: {}\n"+strings.Repeat("#", yamlstrict.MaxFile))
	if _, err := Load(big, env); err == nil || err.Error() != big+": is larger than 1 MiB" {
		t.Errorf("a large file: %v", err)
	}
	write(t, big, ("upstreams: {}\n" + strings.Repeat("#", yamlstrict.MaxFile))[:yamlstrict.MaxFile])
	if c, err := Load(big, env); err != nil || c.Dir != dir || c.Path != big {
		t.Errorf("the largest file: %v, %v", c, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestShipped loads the file at the root: three upstreams, and the way to all keys.
func TestShipped(t *testing.T) {
	const path = "../../upstreams.yaml"
	c, err := Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	root, _ := filepath.Abs("../..")
	for i, want := range []string{"everything", "filesystem", "memory"} {
		u := c.Upstreams[i]
		entry, err := filepath.Rel(u.Dir, filepath.Join(u.Dir, u.Args[0]))
		if u.Name != want || u.Dir != filepath.Join(root, "tools/upstreams") || err != nil || !strings.Contains(entry, "/server-"+want+"/") {
			t.Errorf("%v in %s runs %s", u, u.Dir, entry)
		}
	}
	if len(c.Upstreams) != 3 || len(c.Warnings) > 0 {
		t.Errorf("%v, %v", c.Upstreams, c.Warnings)
	}
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), "docs/reference/settings.md") || !strings.Contains(string(data), "$schema=docs/upstreams.schema.json\n") {
		t.Errorf("the file does not name the reference and the schema: %v", err)
	}
}

// TestPoolEnds: naming one end of the pool is enough.
func TestPoolEnds(t *testing.T) {
	for text, want := range map[string]Pool{
		"{}":               {1, 4, 512 * MiB},
		"{max: 0}":         {0, 0, 512 * MiB},
		"{max: 9}":         {1, 9, 512 * MiB},
		"{min: 7}":         {7, 7, 512 * MiB},
		"{min: 0}":         {0, 4, 512 * MiB},
		"{min: 2, max: 2}": {2, 2, 512 * MiB},
	} {
		c, err := Parse("f", []byte("upstreams: {}\nsandbox: {pool: "+text+"}"), nil)
		if err != nil || c.Sandbox.Pool != want {
			t.Errorf("%s: %+v, %v; want %+v", text, c.Sandbox.Pool, err, want)
		}
	}
}
