//go:build linux

package sandbox_test

import (
	"testing"
	"time"

	"sallyport/sandbox"
	"sallyport/sandbox/sandboxtest"
)

// openShared opens a host whose programs share sandboxes: no unused one ever waits.
func openShared(t *testing.T, interpreters ...sandbox.Interpreter) *sandbox.Host {
	t.Helper()
	host, _ := openPooled(t, func(o *sandbox.Options) { o.Pool, o.Reuse = sandbox.Pool{Min: 0, Max: 1}, true })
	for _, i := range interpreters {
		if err := sandbox.AwaitReuse(t.Context(), host, sandboxtest.Job(i, "")); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

func TestReuse(t *testing.T) {
	host := openShared(t, sandbox.Python, sandbox.Node)
	sandboxNodeFirst := sandbox.Node
	_ = sandboxNodeFirst
	for interpreter, code := range map[sandbox.Interpreter]string{
		//sandbox.Python: "import os, sys\nprint('out'); print('err', file=sys.stderr)\nfrom servers.test import echo\n(echo(6 * 7), sorted(os.listdir('/tmp')), os.listdir('/workspace'), open('/workspace/x', 'w').write('1'), open('/tmp/x', 'w').write('1'))",
		sandbox.Node:   "import fs from 'node:fs'; console.log('out'); console.error('err'); const seen = [fs.readdirSync('/workspace')]; fs.writeFileSync('/workspace/x', '1'); export default seen",
	} {
		for n := range 20 {
			job := sandboxtest.Job(interpreter, code); job.Limits.Timeout = 3*time.Second
			job.Owner = "alice"
			began := time.Now()
			outcome, err := host.Run(t.Context(), job, sandboxtest.Echo{})
			t.Log(n, time.Since(began))
			want := map[sandbox.Interpreter]string{sandbox.Python: `[42,[],[],1,1]`, sandbox.Node: `[[]]`}[interpreter]
			if err != nil || outcome.Value == nil || outcome.Value.Text != want || outcome.Stdout.Text != "out\n" || outcome.Stderr.Text != "err\n" {
				t.Fatalf("%s: %+v, %v; want %s", interpreter, outcome, err, want)
			}
		}
	}
}
