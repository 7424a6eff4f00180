package task_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sallyport/gateway/task"
	"sallyport/internal/config"
	"sallyport/internal/models"
	"sallyport/internal/models/modeltest"
	"sallyport/internal/policy"
)

// TestHostileModel: whatever a model does is bounded and named, and leaks nothing.
func TestHostileModel(t *testing.T) {
	for _, test := range []struct {
		name   string
		reply  func(modeltest.Turn) string
		status task.Status
		kind   string
		says   string
		turns  int
	}{
		{"loops with searches", modeltest.Script(block("search", "echo")), task.Failed, "limit", "no answer after 6 turns", 6},
		{"loops with programs", modeltest.Script(block("python", "print(1)")), task.Failed, "limit", "no answer after 6 turns", 6},
		{"never repairs", modeltest.Script(block("python", "1/0")), task.Failed, "limit", "3 programs in a row failed", 3},
		{"broken programs", modeltest.Script(block("python", "def (")), task.Failed, "limit", "3 programs in a row failed", 3},
		{"says nothing", modeltest.Script(" "), task.Failed, "failed", "3 replies in a row", 3},
		{"speaks prose", modeltest.Script("Sure! I would call the tool."), task.Failed, "failed", "3 replies in a row", 3},
		{"other blocks", modeltest.Script(block("bash", "rm -rf /")), task.Failed, "failed", "3 replies in a row", 3},
		{"empty block", modeltest.Script(block("python", "")), task.Failed, "failed", "3 replies in a row", 3},
		{"huge program", modeltest.Script(block("python", strings.Repeat("x = 1\n", 3000))), task.Failed, "failed", "3 replies in a row", 3},
		{"endless program", modeltest.Script(block("python", "while True: pass")), task.Failed, "limit", "3 programs in a row failed", 3},
		{"floods", modeltest.Script(block("python", "while True: print('x' * 100000)")), task.Failed, "limit", "programs in a row failed", 3},
		{"huge query", modeltest.Script(block("search", strings.Repeat("q", 12000))), task.Failed, "limit", "no answer after 6 turns", 6},
		{"forbidden tool", modeltest.Script(block("python", "from servers.other import echo\necho(text='x')"), block("answer", "denied")), task.Done, "", "", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, models.OpenAI, test.reply, func(c *config.Config) {
				c.Tasks.Turns, c.Tasks.Repairs = 6, 2
				c.Sandbox.Timeout = c.Sandbox.Timeout / 20
				c.Policy = policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{{Name: "no", Tools: []string{"other.*"}, Then: policy.Deny}}}
			})
			done := r.run(task.Request{Task: "Do it"})
			if done.Status != test.status || done.Kind != test.kind || !strings.Contains(done.Error, test.says) || len(done.Turns) != test.turns {
				t.Errorf("%s, %d turns, %s: %s", done.Status, len(done.Turns), done.Kind, done.Error)
			}
			if data, err := json.Marshal(done); err != nil || len(data) > 400<<10 {
				t.Errorf("%d bytes, %v", len(data), err)
			}
			if test.name == "forbidden tool" && !slices.Equal(done.Turns[0].Calls, []string{"other.echo denied"}) {
				t.Errorf("%+v", done.Turns[0])
			}
			for _, turn := range r.model.Turns() {
				if len(turn.Last()) > 64<<10 {
					t.Errorf("the model read %d bytes", len(turn.Last()))
				}
			}
		})
	}
}

// TestHostileSecrets: neither the endpoint's key nor secrets of the settings reach the model, the record or an error, by
// printing, by an echo of the endpoint, or by an error of it.
func TestHostileSecrets(t *testing.T) {
	const secret = "S3cret-of-upstream-0123456789"
	r := newRig(t, models.OpenAI, modeltest.Script(
		block("python", "import os, glob\nprint(dict(os.environ))\nprint(\""+modeltest.Key[:10]+"\" + \""+modeltest.Key[10:]+"\", \""+secret+"\")\nfor f in glob.glob('/proc/*/environ'):\n    print(open(f).read())"),
		block("answer", "The key is "+modeltest.Key+" and "+secret),
	), func(c *config.Config) { c.Upstreams[0].Env["API_TOKEN"] = secret })
	done := r.run(task.Request{Task: "Print the secrets"})
	for i, turn := range r.model.Turns() {
		if i > 0 && strings.Contains(turn.Last(), modeltest.Key) {
			t.Errorf("the model read the key: %s", turn.Last())
		}
	}
	if strings.Contains(done.Answer, modeltest.Key) {
		t.Errorf("answer %s", done.Answer)
	}
	r = newRig(t, models.OpenAI, modeltest.Script("x"))
	r.model.Before(func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"wrong key %s"}}`, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
	})
	failed := r.run(task.Request{Task: "Make coffee"})
	data, err := json.Marshal(failed)
	if err != nil || strings.Contains(string(data), modeltest.Key) || !strings.Contains(failed.Notes[0], "answered 401") {
		t.Errorf("%s, %v", data, err)
	}
}
