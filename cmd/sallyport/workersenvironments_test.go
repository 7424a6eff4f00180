package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/testutil"
)

// TestWorkersEnvironments has a gateway and two workers, of which one has an environment. Programs in it run there; before that worker has
// joined and after it is gone, the error says which workers lack it.
func TestWorkersEnvironments(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	s := newWorkersSite(t)
	path := filepath.Join(s.dir, "upstreams.yaml")
	s.appendTo(t, path, "environments: {data: {description: with mine}}\n")
	file := filepath.Join(s.dir, "worker.yaml")
	s.appendTo(t, file, "upstreams: {}\nenvironments:\n  data: {python: {base: "+venv(t)+"}}\n")
	s.join(t, "w1")
	s.serve(t)
	testutil.Eventually(t, "the first has joined", workersPatience, func() bool { return len(s.workers(t)) == 1 })
	program := map[string]any{"language": "python", "code": "import mine\nmine.NAME", "environment": "data"}
	const missing = `no worker that takes programs has the environment`
	if answer := <-s.send(t, program); !strings.Contains(answer.raw, missing) || !strings.Contains(answer.raw, "w1 lack it") || !strings.Contains(answer.raw, "sallyport worker --environments FILE") {
		t.Errorf("without a worker that has it: %s", answer.raw)
	}
	s.joinWith(t, "w2", "--creds", filepath.Join(s.keys, "w2.creds"), "--environments", file)
	testutil.Eventually(t, "the second has joined", workersPatience, func() bool {
		found := s.workers(t)
		return len(found) == 2 && len(found[1].Environments) == 1 && len(found[1].Environments["data"]) == 12
	})
	for range 4 { // on either worker, if it were by chance
		if answer := <-s.send(t, program); answer.Status != "ok" || string(answer.Result) != `"of the worker"` {
			t.Errorf("%s", answer.raw)
		}
	}
	if answer := <-s.execute(t, "6*7"); string(answer.Result) != "42" {
		t.Errorf("without an environment: %s", answer.raw)
	}
	if out, _ := s.command("doctor").CombinedOutput(); !strings.Contains(string(out), "ok    environment data: Python 3.") { // other checks may fail
		t.Errorf("%s", out)
	}
	unknown := map[string]any{"language": "python", "code": "1", "environment": "dato"}
	if answer := <-s.send(t, unknown); !strings.Contains(answer.raw, "did you mean data?") {
		t.Errorf("an environment that is not in the settings: %s", answer.raw)
	}
	if err := s.processes["w2"].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "the worker is missed", workersPatience, func() bool { return strings.Contains((<-s.send(t, program)).raw, missing) })
	if err := stop(s.cmd); err != nil {
		t.Error(err)
	}
	s.refusesFiles(t)
}

// refusesFiles wants that a worker does not start with a file that it cannot use.
func (s *workersSite) refusesFiles(t *testing.T) {
	t.Helper()
	for text, want := range map[string]string{
		"upstreams: {toy: {command: toyserver}}\n":                               "a worker has no upstreams",
		"upstreams: {}\nenvironments: {data: {python: {base: /nonexistent}}}\n":  "make environment data: ",
		"upstreams: {}\nenvironments: {data: {image: \"registry.example/x:1\"}}": "pinned by its digest",
	} {
		file := filepath.Join(t.TempDir(), "worker.yaml")
		s.appendTo(t, file, text)
		out, err := s.command("worker", "--join", s.servers, "--creds", filepath.Join(s.keys, "w1.creds"), "--runsc", testutil.Runsc(t), "--environments", file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
}

// appendTo appends text to a file, which it makes if there is none.
func (s *workersSite) appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// venv makes a virtual environment with one module, in a folder outside of /tmp.
func venv(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-venv-") //nolint:usetesting // below /tmp no folder can be mapped
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	base := filepath.Join(dir, "base")
	if out, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-m", "venv", "--without-pip", base).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(base, "lib", "python3*", "site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err := os.WriteFile(filepath.Join(found[0], "mine.py"), []byte("NAME = 'of the worker'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return base
}
