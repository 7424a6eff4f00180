package workers

import (
	"bufio"
	"errors"
	"io"
	"testing"
	"time"

	"sallyport/internal/testutil"
	"sallyport/internal/testutil/natscluster"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// TestChooseServer: a service is on a worker that has it and takes programs, on each in turn.
func TestChooseServer(t *testing.T) {
	t.Parallel()
	p := &Pool{members: map[string]*member{}, troubles: map[string]trouble{}, served: map[string]time.Time{}}
	for name, beat := range map[string]Beat{
		"a": {Services: []string{"x"}, Speaks: remote.Here()}, "b": {Services: []string{"y", "x"}, Speaks: remote.Here()},
		"none": {Speaks: remote.Here()}, "old": {Services: []string{"x"}, Speaks: remote.Compat{Oldest: 2, Newest: 3}},
		"draining": {Services: []string{"x"}, Speaks: remote.Here(), Draining: true},
	} {
		beat.Seats = 4
		p.members[name] = &member{Worker: Worker{Name: name, Instance: name, Seen: time.Now(), Beat: beat}}
	}
	got := ""
	for range 4 {
		m, err := p.chooseServer("x")
		if err != nil {
			t.Fatal(err)
		}
		got += m.Name
		time.Sleep(time.Millisecond) // clocks may be coarse
	}
	if got != "abab" && got != "baba" {
		t.Errorf("services are on %s", got)
	}
	p.opts.Placement = func() []string { return []string{"zone=far"} }
	for _, name := range []string{"x", "z"} {
		if m, err := p.chooseServer(name); !errors.Is(err, remote.ErrNoService) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// TestServe has a service over the servers, on the one of two workers that has it. It ends with its worker.
func TestServe(t *testing.T) {
	testutil.Long(t)
	t.Parallel()
	c := natscluster.Start(t, 1)
	join(t, c, "w1", 2)
	p := newPool(t, c, sandbox.Pool{})
	if _, err := p.Serve(t.Context(), "eval"); !errors.Is(err, remote.ErrNoService) {
		t.Errorf("without a worker that has it: %v", err)
	}
	two := joinWith(t, c, "w2", 2, map[string]sandbox.Service{"eval": {
		Interpreter: sandbox.Python, Args: []string{"-I", "-S", "/work/main.py"}, Dir: "/work", Memory: 200 << 20, Processes: 16, OpenFiles: 64,
		Files: map[string][]byte{"main.py": []byte("import os, sys\nfor line in sys.stdin: print(eval(line), flush=True)")},
	}})
	var s io.ReadWriteCloser
	testutil.Eventually(t, "the service starts", eventually, func() (ok bool) {
		var err error
		s, err = p.Serve(t.Context(), "eval")
		return err == nil
	})
	if _, err := io.WriteString(s, "6*7, os.path.exists('/servers/test/echo.py')\n"); err != nil {
		t.Error(err)
	}
	answers := bufio.NewReader(s)
	if line, err := answers.ReadString('\n'); line != "(42, True)\n" {
		t.Errorf("%q, %v", line, err)
	}
	two.stop()
	if line, err := answers.ReadString('\n'); err == nil {
		t.Errorf("a service says %q after the end of its worker", line)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "the worker has left", eventually, func() bool {
		_, err := p.Serve(t.Context(), "eval")
		return errors.Is(err, remote.ErrNoService)
	})
}
