package sandboxtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// outputRecorder records a program's live output, and is a caller that waits for its beginning.
type outputRecorder struct {
	mu   sync.Mutex
	text map[sandbox.Stream]string
	want string
}

func (h *outputRecorder) record(s sandbox.Stream, p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text[s] += string(p)
}

func (h *outputRecorder) output() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text[sandbox.Stdout] + "|" + h.text[sandbox.Stderr]
}

// Call implements [bridge.Caller]: it answers only after the output that precedes the call has been received.
func (h *outputRecorder) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	for end := time.Now().Add(time.Minute); h.output() != h.want && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if got := h.output(); got != h.want {
		return tool.Result{}, fmt.Errorf("heard %q before the call, want %q", got, h.want)
	}
	return Echo{}.Call(ctx, call)
}

// LiveOutput checks that output is received while programs run.
func LiveOutput(t *testing.T, runner Runner) {
	for _, job := range []sandbox.Job{
		Job(sandbox.Python, "import sys, os\nfrom servers.test.echo import echo\nprint('before'); print('aside', file=sys.stderr); os.write(1, b'\\xe2\\x82')\necho(1)\nos.write(1, b'\\xac')\nprint(' after')"),
		Job(sandbox.Node, ""+nodeImports+"import fs from 'node:fs'; console.log('before'); console.error('aside'); fs.writeSync(1, new Uint8Array([0xe2, 0x82]));\n"+
			"await call('test.echo', {x: 1}); fs.writeSync(1, new Uint8Array([0xac])); console.log(' after');"),
	} {
		h := &outputRecorder{text: map[sandbox.Stream]string{}, want: "before\n\xe2\x82|aside\n"}
		job.OnOutput = h.record
		outcome, err := runner.Run(t.Context(), job, h)
		if err != nil || outcome.Status != sandbox.OK {
			t.Errorf("%s: %v, %s", job.Interpreter, err, show(outcome))
		}
		if got, want := h.output(), "before\n€ after\n|aside\n"; got != want || outcome.Stdout.Text+"|"+outcome.Stderr.Text != want {
			t.Errorf("%s: heard %q; it printed %s", job.Interpreter, got, show(outcome))
		}
	}
}
