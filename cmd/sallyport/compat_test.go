package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/testutil"
)

// compatFacts are the ids, tokens and the head of testdata/compat.
type compatFacts struct {
	Token, OK, Failed, Held, Greet, Ask, Pause, Head string
	Made                                             time.Time
}

// oldHome is a copy of what an earlier version left: settings, data, caches.
type oldHome struct {
	dir   string
	facts compatFacts
	env   []string
}

func newOldHome(t *testing.T) *oldHome {
	t.Helper()
	runsc := testutil.Runsc(t)
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node for the upstream")
	}
	h := &oldHome{dir: testutil.ShortDir(t), facts: readJSON[compatFacts](t, "facts.json")}
	unpackHome(t, h.dir)
	age := time.Since(h.facts.Made).Truncate(24 * time.Hour)
	redate(t, h.dir, age)
	redateCaches(t, h.dir, age)
	for _, name := range []string{"bin", "run"} {
		if err := os.Mkdir(filepath.Join(h.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ledger, err := os.ReadFile(filepath.Join(compatDir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	testutil.WriteProgram(t, filepath.Join(h.dir, "bin", "ledger"), string(ledger))
	h.env = append(os.Environ(), "PATH="+filepath.Join(h.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+h.dir, "TMPDIR="+filepath.Join(h.dir, "tmp"), "RUNSC="+runsc,
		"XDG_CONFIG_HOME="+filepath.Join(h.dir, "config"), "XDG_DATA_HOME="+filepath.Join(h.dir, "data"), "XDG_CACHE_HOME="+filepath.Join(h.dir, "cache"), "XDG_RUNTIME_DIR="+filepath.Join(h.dir, "run"),
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere/bus", "GORACE=atexit_sleep_ms=0")
	h.forgetCalls(t)
	return h
}

func (h *oldHome) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sallyport", args...)
	cmd.Dir, cmd.Env = filepath.Join(h.dir, "config"), h.env
	return cmd
}

// warnings returns the lines of a log that warn of anything but what the data is about.
func warnings(log string) (found []string) {
	for line := range strings.Lines(log) {
		if regexp.MustCompile(`level=(WARN|ERROR)|deprecated`).MatchString(line) && !regexp.MustCompile(`tool is held for review|token refused`).MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// run runs a command line, which must succeed without a warning.
func (h *oldHome) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := h.command(t, append(slices.Clip(args), "--log-level", "warn")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || warnings(stderr.String()) != nil {
		t.Errorf("%v: %v\n%s\n%s", args, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// wants checks that the output of a command line has some texts.
func (h *oldHome) wants(t *testing.T, texts []string, args ...string) {
	t.Helper()
	got := h.run(t, args...)
	for _, text := range texts {
		if !strings.Contains(got, text) {
			t.Errorf("%v: no %q in\n%s", args, text, got)
		}
	}
}

func (h *oldHome) callLog() string { return filepath.Join(h.dir, "tmp", "calls.log") }

func (h *oldHome) forgetCalls(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(h.callLog(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// calls returns what the upstream got since the last forgetCalls: a line for each start and each call.
func (h *oldHome) calls(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(h.callLog())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (h *oldHome) lock(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, "config", "sallyport.lock"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestOldSettings: settings with every key are read without a complaint.
func TestOldSettings(t *testing.T) {
	h := newOldHome(t)
	h.wants(t, []string{"1 test passed"}, "policy", "test")
	h.wants(t, []string{"1 test passed"}, "policy", "test", "--config", "all.yaml")
	h.wants(t, []string{"ledger", "drafts"}, "upstreams", "list")
	h.wants(t, []string{"ok    upstream ledger", "ok    audit"}, "doctor")
}

// TestOldUpgrade: upgrade --check says that nothing changes, and changes nothing.
func TestOldUpgrade(t *testing.T) {
	h := newOldHome(t)
	h.wants(t, []string{"settings: ", "upstreams.yaml: nothing changes\n", "data: ", "sallyport: nothing changes\n"}, "upgrade", "--check")
	h.wants(t, []string{"no errors, 3 upstreams"}, "config", "check")
	h.wants(t, []string{"all.yaml: nothing to change"}, "config", "migrate", "all.yaml")
	if data, err := os.ReadFile(filepath.Join(h.dir, "config", "upstreams.yaml")); err != nil || !bytes.Equal(data, readCompat(t, "files/upstreams.yaml")) {
		t.Errorf("the settings were changed: %v\n%s", err, data)
	}
}

// TestOldCommands: each command has the flags that it had, and prints the JSON that it printed, from the files of the
// old version. No upstream is started for it, and no tool has to be reviewed again.
func TestOldCommands(t *testing.T) {
	h := newOldHome(t)
	lock := h.lock(t)
	h.run(t, "man", filepath.Join(h.dir, "man"))
	for page, flags := range readJSON[map[string][]string](t, "man.json") {
		text, err := os.ReadFile(filepath.Join(h.dir, "man", page))
		if err != nil {
			t.Error(err)
		}
		has := regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(strings.ReplaceAll(string(text), `\-`, "-"), -1)
		for _, flag := range flags {
			if !slices.Contains(has, flag) {
				t.Errorf("%s has no %s", page, flag)
			}
		}
	}
	for _, each := range readJSON[[]struct {
		Args []string
		JSON any
	}](t, "commands.json") {
		args := slices.Clone(each.Args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "HOME", h.dir)
		}
		var got any
		if err := json.NewDecoder(strings.NewReader(h.relative(h.run(t, args...)))).Decode(&got); err != nil {
			t.Errorf("%v: %v", args, err)
		}
		for _, text := range missing(each.JSON, got, "") {
			t.Errorf("%v: %s", args, text)
		}
	}
	if calls := h.calls(t); calls != "" || h.lock(t) != lock {
		t.Errorf("upstreams started:\n%s\nsallyport.lock before and now:\n%s\n%s", calls, lock, h.lock(t))
	}
}

// relative replaces the path of the home in a text, the current one and that of when it was made.
func (h *oldHome) relative(text string) string {
	return strings.NewReplacer(h.dir, "HOME", "/tmp/sallyport-compat", "HOME").Replace(text)
}

// TestOldRecords: people find what they had.
func TestOldRecords(t *testing.T) {
	h := newOldHome(t)
	h.wants(t, []string{"ok: records 1 to ", "head: "}, "log", "verify", "--head", h.facts.Head)
	h.wants(t, []string{h.facts.Held, h.facts.Failed, " held ", " failed "}, "executions")
	h.wants(t, []string{"good and once", "ledger.enter"}, "executions", "show", h.facts.Failed)
	h.wants(t, []string{"ledger.post"}, "explain", h.facts.Held)
	h.wants(t, []string{"ci ", "reader ", "600/m"}, "token", "list")
	h.wants(t, []string{h.facts.Greet, h.facts.Ask, "ask waits for a form", h.facts.Pause}, "workflow", "runs")
	h.wants(t, []string{"ledger.enter", "waits for a form"}, "workflow", "log", h.facts.Ask)
	h.wants(t, []string{"0 3 1 1 *"}, "workflow", "list")
	h.wants(t, []string{"def say_twice"}, "skills", "show", "say-twice")
	h.wants(t, []string{"whisper"}, "skills", "review")
	h.wants(t, []string{"observed "}, "search", "who is on duty")
	program := filepath.Join(h.dir, "use.py")
	if err := os.WriteFile(program, []byte("from skills.say_twice import say_twice\nsay_twice('it works')"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.wants(t, []string{"echo: it works echo: it works"}, "exec", program)
	h.wants(t, []string{"ok: records 1 to "}, "log", "verify", "--head", h.facts.Head)
	restored := filepath.Join(h.dir, "restored")
	h.run(t, "restore", "--data", restored, "backup.tar.gz")
	h.wants(t, []string{"say-twice 1 (python): Says something twice."}, "skills", "list", "--data", restored)
	if data, err := os.ReadFile(filepath.Join(h.dir, "config", "upstreams.yaml")); err != nil || !bytes.Equal(data, readCompat(t, "files/upstreams.yaml")) {
		t.Errorf("the settings were changed: %v\n%s", err, data)
	}
}

func readCompat(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(compatDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// oldCall is a request that was made of an earlier version, and its answer.
type oldCall struct {
	Method, Route, As string
	Body              json.RawMessage
	Status            int
	JSON              any
	Text              json.RawMessage // of bodies that are not JSON; of metrics a list of their names
}

// TestOldAPI makes all requests in their order: answers have what they had. Among them are a held program and a failed
// one that continue, a form that is answered, a run that continues after an approval.
func TestOldAPI(t *testing.T) {
	h := newOldHome(t)
	cmd := h.command(t, "serve", "--http", "127.0.0.1:0")
	url, log := startListening(t, cmd)
	url = strings.TrimSuffix(url, "/mcp")
	all := readJSON[[]oldCall](t, "api.json")
	ready := slices.IndexFunc(all, func(c oldCall) bool { return c.Route == "/readyz" })
	testutil.Eventually(t, "all upstreams were tried", time.Minute, func() bool {
		status, _ := h.send(t, url, all[ready])
		return status == all[ready].Status
	})
	for _, each := range all {
		if strings.Contains(string(each.Body), `"resume":"`+h.facts.Failed) {
			if err := os.WriteFile(filepath.Join(h.dir, "tmp", "repaired"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.repeat(t, url, each)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	text := <-log
	if err := cmd.Wait(); err != nil || warnings(text) != nil {
		t.Errorf("serve ended with %v:\n%s", err, text)
	}
	calls := h.calls(t)
	for _, once := range []string{"good and once", "before the post", "before the question", "the first of fails"} {
		if strings.Contains(calls, once) {
			t.Errorf("%q was called again:\n%s", once, calls)
		}
	}
	for _, made := range []string{"enter bad at first", "post to the outside", "enter answered", "post from a workflow", "enter bad second of fails"} {
		if strings.Count(calls, made+"\n") != 1 {
			t.Errorf("%q was not called once:\n%s", made, calls)
		}
	}
	h.wants(t, []string{"ok: records 1 to "}, "log", "verify", "--head", h.facts.Head)
}

// repeat makes a request again and compares the answers.
func (h *oldHome) repeat(t *testing.T, url string, each oldCall) {
	t.Helper()
	status, data := h.send(t, url, each)
	if status != each.Status {
		t.Errorf("%s %s: status %d became %d: %s", each.Method, each.Route, each.Status, status, data)
		return
	}
	if each.JSON == nil {
		compareText(t, each, data)
		return
	}
	var got any
	if err := json.Unmarshal([]byte(h.relative(string(data))), &got); err != nil {
		t.Errorf("%s %s: %v", each.Method, each.Route, err)
	}
	if strings.HasPrefix(each.Route, "/openapi.json") {
		got = outline(t, data)
	}
	for _, text := range missing(each.JSON, got, "") {
		t.Errorf("%s %s: %s", each.Method, each.Route, text)
	}
}

func (h *oldHome) send(t *testing.T, url string, each oldCall) (status int, data []byte) {
	t.Helper()
	body, media := []byte(each.Body), "application/json"
	if text := ""; json.Unmarshal(body, &text) == nil {
		body, media = []byte(text), "application/octet-stream"
	}
	request, err := http.NewRequestWithContext(t.Context(), each.Method, url+each.Route, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+each.As)
	if len(body) > 0 {
		request.Header.Set("Content-Type", media)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	data, err = io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, data
}

// compareText compares a body that is not JSON; of metrics the new ones need to have the old names and types.
func compareText(t *testing.T, each oldCall, data []byte) {
	t.Helper()
	var text string
	if json.Unmarshal(each.Text, &text) == nil {
		if string(data) != text {
			t.Errorf("%s %s: %q became %q", each.Method, each.Route, text, data)
		}
		return
	}
	var names []string
	if err := json.Unmarshal(each.Text, &names); err != nil || len(names) == 0 {
		t.Fatalf("%s: %v", each.Route, err)
	}
	for _, name := range names {
		if !bytes.Contains(data, []byte("# TYPE "+name+"\n")) {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// outline is what has to stay of an OpenAPI document, as generate.mjs takes it.
func outline(t *testing.T, data []byte) any {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct{ Name string }
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	operations, schemas := map[string]any{}, map[string]any{}
	for route, methods := range document.Paths {
		for method, operation := range methods {
			names := map[string]any{}
			for _, parameter := range operation.Parameters {
				names[parameter.Name] = true
			}
			operations[fmt.Sprintf("%s %s %s", method, route, operation.OperationID)] = names
		}
	}
	for name, schema := range document.Components.Schemas {
		schemas[name] = schema.Properties
	}
	return map[string]any{"operations": operations, "schemas": schemas}
}
