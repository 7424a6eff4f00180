package main_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"sallyport/bench/endpoint"
	"sallyport/bench/endpoint/endpointtest"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/internal/models"
	"sallyport/internal/models/scripted"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/tlstest"
)

// TestBenchTasks: one model does a task in words and with direct calls, with what make bench-tasks uses.
func TestBenchTasks(t *testing.T) {
	testutil.Long(t)
	r := newModelRig(t)
	direct := r.endpoint(endpoint.OpenAI)
	words := &wordsPlayer{t: t, world: direct.World}
	t.Cleanup(words.stop)
	s := tlstest.NewServer(t, bothWays(direct.Config.Handler, &scripted.Model{API: models.OpenAI, Reply: words.reply}))
	stdout, stderr, code := r.run(nil, "--model", s.URL, "--name", endpointtest.Model, "--modes", "task,direct", "--price", "2,1,10")
	want := `scripted-1-2026-01-01 at localhost:32985, 2 runs of 2
MODE RIGHT TURNS INPUT CACHED STORED OUTPUT TIME PRICE
task 1/1 3 1,702 978 0 53 900ms 0.002956
direct 1/1 2 28,584 12,393 0 29 0s 0.04507
TASK KIND TASK DIRECT
opening-hours one call 1,755, 3 turns 28,613, 2 turns
Tokens, in and out, of the 1 task that were right in all modes: task 1,755, direct 28,613.
`
	if code != 0 || shapeOf(stdout) != shapeOf(want) {
		t.Errorf("status %d, printed\n%s\n%s", code, stdout, stderr)
	}
	words.wrong = true
	stdout, stderr, code = r.run(nil, "--model", s.URL, "--name", endpointtest.Model, "--modes", "task", "--price", "2,1,10", "--json", "--turns", "9")
	var line struct {
		Mode, Why, Answer, Served string
		Right                     bool
		Turns, Calls              int
		Price                     float64
		Tokens                    struct{ Input, Cached, Output int }
	}
	if err := json.Unmarshal([]byte(stdout), &line); err != nil || code != 0 || line.Mode != "task" || line.Right || line.Answer != "12:00" || line.Why != `answered "12:00", not "17:45"` ||
		line.Served != endpointtest.Model+"-2026-01-01" || line.Turns < 3 || line.Calls != 1 || line.Tokens.Input == 0 || line.Tokens.Output == 0 {
		t.Errorf("status %d, %v: %+v\n%s", code, err, line, stderr)
	}
	price := models.Price{Input: 2, Cached: 1, Output: 10}
	if wants := price.Of(models.Usage{Input: line.Tokens.Input, Cached: line.Tokens.Cached, Output: line.Tokens.Output}); line.Price < wants*0.999 || line.Price > wants*1.001 {
		t.Errorf("price %v, want %v", line.Price, wants)
	}
	testutil.NoProcesses(t, r.dir)
}

var (
	anyTime   = regexp.MustCompile(`\b\d[\d.]*m?s\b`)
	anyNumber = regexp.MustCompile(`\d[\d.,]*`)
)

// shapeOf is a text without its numbers, times and columns.
func shapeOf(text string) string {
	return strings.Join(strings.Fields(anyNumber.ReplaceAllString(anyTime.ReplaceAllString(text, "T"), "N")), " ")
}

// bothWays passes requests with tools on to direct, others to words. Both demand the same key.
func bothWays(direct http.Handler, words *scripted.Model) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools":[`)) || r.Method == http.MethodGet {
			direct.ServeHTTP(w, r)
			return
		}
		if r.Header.Get("Authorization") == "Bearer "+endpointtest.Key {
			r.Header.Set("Authorization", "Bearer "+scripted.Key)
		}
		words.ServeHTTP(w, r)
	})
}

// wordsPlayer says what the scripts of code mode do, in the blocks of a task in words: one call in each reply.
type wordsPlayer struct {
	t     *testing.T
	world func() *suite.World
	// wrong makes the answer a wrong one.
	wrong   bool
	player  *suite.Player
	calls   []tokencount.Call
	results []tokencount.Result
}

func (p *wordsPlayer) stop() {
	if p.player != nil {
		p.player.Stop()
	}
}

func (p *wordsPlayer) reply(turn scripted.Turn) string {
	if len(turn.Messages) == 1 {
		p.begin(turn.Last())
	} else {
		text := turn.Last()
		failed := strings.HasPrefix(text, "The program failed") || strings.HasPrefix(text, "The program was not run")
		if _, after, ok := strings.Cut(text, "<data-"); ok {
			_, text, _ = strings.Cut(after, ">\n")
			text = text[:max(strings.LastIndex(text, "\n</data-"), 0)]
		}
		p.results, p.calls = append(p.results, tokencount.Result{Text: text, Error: failed}), p.calls[1:]
	}
	if len(p.calls) == 0 {
		calls, answer, err := p.player.Next(p.results)
		if err != nil {
			p.t.Error(err)
			return "```answer\nit failed\n```"
		}
		if p.calls, p.results = calls, nil; len(calls) == 0 {
			if p.wrong {
				answer = "12:00"
			}
			return "```answer\n" + answer + "\n```"
		}
	}
	return p.block(p.calls[0])
}

func (p *wordsPlayer) begin(prompt string) {
	p.stop()
	world := p.world()
	for _, task := range suite.Tasks() {
		if "Task: "+world.Expand(task.Prompt) == prompt {
			p.player, p.calls, p.results = task.Play(world, suite.Code), nil, nil
			return
		}
	}
	p.t.Errorf("no task has the prompt %.200q", prompt)
}

// block writes a call of the script as a block. What a block cannot say ends the test.
func (p *wordsPlayer) block(c tokencount.Call) string {
	var args map[string]string
	if err := json.Unmarshal(c.Args, &args); err != nil {
		p.t.Errorf("%s: %v in %s", c.Tool, err, c.Args)
	}
	if c.Tool == suite.SearchTools {
		return "```search\n" + args["query"] + "\n```"
	}
	language := args["language"]
	if language == "" {
		language = "python"
	}
	return "```" + language + "\n" + args["code"] + "\n```"
}
