package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/bench/endpoint"
	"sallyport/bench/endpoint/endpointtest"
	"sallyport/bench/suite"
	"sallyport/internal/testutil"
)

// modelRig is our binary that has a scripted endpoint's model work on tasks, with real servers.
type modelRig struct {
	t                    *testing.T
	binary, dir, modules string
}

func newModelRig(t *testing.T) *modelRig {
	t.Helper()
	r := &modelRig{t: t, dir: testutil.ShortDir(t), modules: testutil.Upstreams(t)}
	r.binary = filepath.Join(r.dir, "sallyport")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The binary starts itself by its path, and is this one by its name; TestMain looks at that.
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	testutil.WriteProgram(t, r.binary, string(data))
	return r
}

// endpoint answers as the scripts of the tasks do, with the paths of the world that is there now.
func (r *modelRig) endpoint(api endpoint.API) *endpointtest.Server {
	r.t.Helper()
	return endpointtest.New(r.t, api, func() *suite.World {
		dirs, err := filepath.Glob(filepath.Join(r.dir, "sallyport-bench-*", "world"))
		if err != nil || len(dirs) != 1 {
			r.t.Errorf("worlds %v, %v", dirs, err)
			dirs = append(dirs, r.dir)
		}
		w, err := suite.NewWorld(dirs[0], r.modules)
		if err != nil {
			r.t.Error(err)
		}
		return w
	})
}

// run returns what is on stdout and stderr, and the exit status. Of the world nothing may be left, and the key be nowhere.
// The process is interrupted when hung is closed.
func (r *modelRig) run(hung <-chan struct{}, args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), r.binary, append([]string{"bench", "--servers", r.modules, "--tasks", "^opening-hours$"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+r.dir, "XDG_RUNTIME_DIR="+r.dir, "XDG_CACHE_HOME="+filepath.Join(r.dir, "cache"), "GORACE=atexit_sleep_ms=0",
		"PATH="+filepath.Dir(testutil.Runsc(r.t))+":"+os.Getenv("PATH"), "OPENAI_API_KEY="+endpointtest.Key, "OTHER_KEY="+endpointtest.Key)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	interrupted := make(chan struct{})
	go func() {
		defer close(interrupted)
		select {
		case <-hung:
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		case <-ended:
		}
	}()
	err := cmd.Wait()
	close(ended)
	<-interrupted
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		r.t.Fatal(err)
	}
	if strings.Contains(out.String()+errs.String(), endpointtest.Key) {
		r.t.Errorf("the key is shown:\n%s%s", &out, &errs)
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, "*-bench-*")); err != nil || len(left) > 0 {
		r.t.Errorf("left: %v, %v", left, err)
	}
	return out.String(), errs.String(), code
}

func TestBenchModel(t *testing.T) {
	testutil.Long(t)
	r := newModelRig(t)
	t.Run("interrupted", r.interrupted)
	t.Run("refused", r.refused)
	t.Run("silent", r.silent)
	testutil.NoProcesses(t, r.dir)
}

// changing is what differs between runs: addresses, times, tokens.
var changing = regexp.MustCompile(`localhost:\d+|\d+(\.\d+)? ?m?s\b|\d[\d,]*\d`)

// After an interrupt, the results so far are printed.
func (r *modelRig) interrupted(t *testing.T) {
	s := r.endpoint(endpoint.OpenAI)
	hung := make(chan struct{})
	before := make([]http.HandlerFunc, 7)
	before[0] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	before[6] = func(_ http.ResponseWriter, req *http.Request) { // after one, three of search, two of code and one more
		_, _ = io.Copy(io.Discard, req.Body)
		close(hung)
		<-req.Context().Done()
	}
	s.Before(before...)
	stdout, stderr, code := r.run(hung, "--model", s.URL+"/v1", "--modes", "search,code")
	want := `scripted-1-N-N-N at N, 1 run of 2

MODE    RIGHT  TURNS  INPUT  CACHED  STORED  OUTPUT  TIME
search  1/1    3      N  N   0       N      N

TASK           KIND      SEARCH          CODE
opening-hours  one call  N, 3 turns  -
`
	got := strings.TrimSuffix(changing.ReplaceAllString(stdout, "N"), "\nN more were spent waiting, for rate limits and retries.\n") // on a slow machine
	if code != 130 || got != want {
		t.Errorf("status %d, printed\n%s", code, got)
	}
	for _, want := range []string{"1 task x 2 modes x 1 run: 2 conversations", "[1/2] opening-hours, search: right (3 turns"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
}

func (r *modelRig) refused(t *testing.T) {
	s := r.endpoint(endpoint.Anthropic)
	s.Before(nil, nil, nil, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no credit \u001b[31m for `+endpointtest.Key+`"}}`, http.StatusForbidden)
	})
	stdout, stderr, code := r.run(nil, "--model", s.URL, "--api", "anthropic", "--key-env", "OTHER_KEY", "--modes", "code,direct", "--json")
	if code != 1 || !strings.Contains(stderr, "/v1/messages answered 403: no credit for [key]\nhint: the key comes from the environment") {
		t.Errorf("status %d:\n%s", code, stderr)
	}
	type line struct {
		Endpoint, API, Model, Served, Task, Mode, Why, Answer string
		Right                                                 bool
		Run, Turns, Calls                                     int
		Upstreams                                             []string
		Tokens                                                struct{ Input, Stored, Output int }
		Versions                                              struct {
			Runsc   string
			Servers map[string]string
		}
	}
	var lines [2]line
	dec := json.NewDecoder(strings.NewReader(stdout))
	if err := errors.Join(dec.Decode(&lines[0]), dec.Decode(&lines[1])); err != nil || dec.More() {
		t.Fatalf("%v\n%s", err, stdout)
	}
	first, second := lines[0], lines[1]
	if !first.Right || first.Answer != "17:45" || first.Mode != "code" || first.Turns != 3 || first.Calls != 2 || first.Tokens.Stored == 0 || first.Run != 1 {
		t.Errorf("first line %+v", first)
	}
	if first.Endpoint != strings.TrimPrefix(s.URL, "https://") || first.API != "anthropic" || first.Model != endpointtest.Model || first.Versions.Runsc == "" || len(first.Versions.Servers) != 5 || len(first.Upstreams) != 5 {
		t.Errorf("first line %+v", first)
	}
	if second.Right || second.Mode != "direct" || second.Turns != 0 || !strings.Contains(second.Why, "answered 403") {
		t.Errorf("second line %+v", second)
	}
}

// What hangs is given up after three times, and that is a failure. Only the server that the task needs is started, whose
// tools are all that the endpoint sees; what the model says of itself has one line, and no key.
func (r *modelRig) silent(t *testing.T) {
	s := r.endpoint(endpoint.OpenAI)
	hang := func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		<-req.Context().Done()
	}
	says := func(how, what string) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if err != nil || !bytes.Contains(body, []byte("filesystem__read_text_file")) || bytes.Contains(body, []byte("memory__")) {
				t.Errorf("%v: asked %.300s", err, body)
			}
			_, _ = io.WriteString(w, `{"model":"a\nb","choices":[{"finish_reason":"`+how+`","message":{"content":"`+what+`"}}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`)
		}
	}
	s.Before(says("stop", "it is "+endpointtest.Key), says("length", "it is"), hang, hang, hang)
	stdout, stderr, code := r.run(nil, "--model", s.URL, "--modes", "direct", "--upstreams", "needed", "--runs", "6", "--time", "500ms")
	if code != 124 || s.TurnCount() != 5 || !strings.Contains(stderr, "sallyport: no answer from "+strings.TrimPrefix(s.URL, "https://")+" within 500ms\nhint: --time gives a task longer") {
		t.Errorf("status %d after %d requests:\n%s", code, s.TurnCount(), stderr)
	}
	for _, want := range []string{`failed, answered "it is [key]", not "17:45" (1 turn, 10 tokens in`, "(finish_reason length) (1 turn, 10 tokens in, 2 out"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in\n%s", want, stderr)
		}
	}
	if !strings.HasPrefix(stdout, "a b at localhost:") || !strings.Contains(stdout, ", 5 runs of 6, each with the servers of its task alone\n") {
		t.Errorf("printed\n%s", stdout)
	}
	s = r.endpoint(endpoint.OpenAI)
	s.Before(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no tools here", http.StatusBadRequest) })
	if _, stderr, code := r.run(nil, "--model", s.URL, "--modes", "direct", "--upstreams", "needed"); code != 2 || !strings.Contains(stderr, "the model must be able to call tools") {
		t.Errorf("status %d where nothing was answered:\n%s", code, stderr)
	}
}
