package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/bench/agent"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/bench/tokens/report"
	"sallyport/internal/filelock"
	"sallyport/internal/tokens"
)

// bench is one run of the benchmark.
type bench struct {
	*options
	world    *suite.World
	cache    string
	more     []agent.Catalogue
	counters map[string]*tokencount.Memo
	shown    map[string]shownTools
	costs    map[string]cost
	lines    []report.Line
	// plays were made, done of all counts are there.
	plays, done, of int
}

// encodings are the vocabularies, the page's first.
func encodings() []string { return []string{report.Encoding, "cl100k_base"} }

// measureAll plays every task in every mode at every size. Two runs wait for each other: they have one folder.
func measureAll(ctx context.Context, o *options) (*report.Results, error) {
	start := time.Now()
	if _, err := os.Stat(o.upstreams); err != nil {
		return nil, fmt.Errorf("find the npm servers (make upstreams installs them): %w", err)
	}
	if err := os.MkdirAll(o.folder, 0o700); err != nil {
		return nil, err
	}
	unlock, err := filelock.Dir(o.folder, 0)
	if err != nil {
		return nil, fmt.Errorf("use folder %s: %w", o.folder, err)
	}
	defer unlock()
	b := newBench(o)
	defer b.clear()
	digests, err := b.open()
	if err != nil {
		return nil, err
	}
	sizes := o.chooseSizes(len(b.more))
	head, err := b.head(ctx, sizes, digests)
	if err != nil {
		return nil, err
	}
	if err := b.tasks(ctx, sizes); err != nil {
		return nil, err
	}
	head.Took, head.Plays = time.Since(start).Round(time.Second).String(), b.plays
	return report.New(*head, b.lines), nil
}

func newBench(o *options) *bench {
	return &bench{options: o, cache: filepath.Join(o.folder, "cache"), counters: map[string]*tokencount.Memo{}, shown: map[string]shownTools{}, costs: map[string]cost{}}
}

// open makes world and counters, reads the catalogues, and returns their digests.
func (b *bench) open() (digests map[string]string, err error) {
	if b.world, err = suite.NewWorld(b.worldDir(), b.upstreams); err != nil {
		return nil, err
	}
	for name, load := range map[string]func() (*tokens.Counter, error){encodings()[0]: tokens.O200k, encodings()[1]: tokens.Cl100k} {
		counter, err := load()
		if err != nil {
			return nil, err
		}
		b.counters[name] = tokencount.NewMemo(counter)
	}
	b.more, digests, err = catalogues(b.options, b.world)
	return digests, errors.Join(err, b.world.Reset(), os.MkdirAll(b.cache, 0o700))
}

func (b *bench) worldDir() string { return filepath.Join(b.folder, "world") }

// clear leaves an empty folder, which is what is locked.
func (b *bench) clear() {
	_ = os.RemoveAll(b.worldDir())
	_ = os.RemoveAll(b.cache)
}

// tasks plays all that are chosen.
func (b *bench) tasks(ctx context.Context, sizes []int) error {
	var chosen []*suite.Task
	for _, task := range suite.Tasks() {
		n := len(sizesOf(task, sizes))
		if n > 0 && (b.only == nil || b.only.MatchString(task.Name)) {
			chosen = append(chosen, task)
			b.of += n * len(suite.Modes())
		}
	}
	if len(chosen) == 0 {
		return errors.New("no task with such a name is asked at these sizes")
	}
	for _, task := range chosen {
		if err := b.task(ctx, task, sizesOf(task, sizes)); err != nil {
			return fmt.Errorf("play %s: %w", task.Name, err)
		}
	}
	return nil
}

// sizesOf leaves one server out where a task needs more.
func sizesOf(task *suite.Task, sizes []int) []int {
	if len(task.Upstreams) > 1 && sizes[0] == 1 {
		return sizes[1:]
	}
	return sizes
}

// task plays one task. What direct calls give does not depend on what else is shown, so they are
// made once, and counted at each size; searches and code are played again.
func (b *bench) task(ctx context.Context, task *suite.Task, sizes []int) error {
	direct, err := b.play(ctx, task, suite.Direct, agent.Setup{World: b.world, Upstreams: task.Upstreams})
	if err != nil {
		return err
	}
	for _, size := range sizes {
		s, err := b.shownAt(ctx, task, size)
		if err != nil {
			return err
		}
		direct.transcript.Definitions = s.definitions
		searched, err := b.search(ctx, task, size)
		if err != nil {
			return err
		}
		coded, err := b.play(ctx, task, suite.Code, b.setup(task, size))
		if err != nil {
			return err
		}
		for _, p := range []*playResult{direct, searched, coded} {
			if err := b.note(task, p, size, len(s.definitions)); err != nil {
				return err
			}
		}
	}
	return nil
}

// playResult is a completed task. failed is the error of the script or its answer.
type playResult struct {
	transcript *tokencount.Transcript
	failed     error
	// finds is how many tools a search showed, in [suite.Search].
	finds int
}

// search plays a task with a tool search that shows three tools and with one that shows five, as those that can be had
// do, and returns the better one: that with the right answer, or else the cheaper one.
func (b *bench) search(ctx context.Context, task *suite.Task, size int) (best *playResult, err error) {
	least := 0
	for _, finds := range []int{3, 5} {
		setup := b.setup(task, size)
		setup.Finds = finds
		p, err := b.play(ctx, task, suite.Search, setup)
		if err != nil {
			return nil, err
		}
		c, err := p.transcript.Count(b.counters[report.Encoding])
		if err != nil {
			return nil, err
		}
		if best == nil || p.better(best, c.Total(), least) {
			best, least = p, c.Total()
		}
	}
	return best, nil
}

// better reports whether a play is to be preferred to another one, at these costs.
func (p *playResult) better(than *playResult, cost, least int) bool {
	if (p.failed == nil) != (than.failed == nil) {
		return p.failed == nil
	}
	return cost < least
}

// play plays a task once, in a world and with servers of its own. What servers ask clients to show next to their tools is
// counted for ours only: clients differ in whether they do, and here one of five servers has any.
func (b *bench) play(ctx context.Context, task *suite.Task, mode suite.Mode, setup agent.Setup) (p *playResult, err error) {
	b.plays++
	if err := b.world.Reset(); err != nil {
		return nil, err
	}
	tools, err := agent.OpenTools(ctx, mode, setup)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tools.Close(), ctx.Err()) }()
	p = &playResult{transcript: &tokencount.Transcript{Task: task.Name, Mode: string(mode), Prompt: b.world.Expand(task.Prompt)}, finds: setup.Finds}
	script := agent.NewScript(task, b.world, mode)
	defer script.Close()
	p.failed, err = work(ctx, script, tools, p.transcript, agent.Limits{Turns: 200, Time: 5 * time.Minute})
	if p.failed == nil && err == nil {
		p.failed = agent.Check(task, b.world, p.transcript)
	}
	if mode != suite.Code {
		p.transcript.Instructions = nil
	}
	return p, err
}

// work has a model work on a task. That it gives up or needs too long is its failure, which counts; any other error is
// one of the machinery, after which nothing is worth counting.
func work(ctx context.Context, m agent.Model, tools agent.Tools, t *tokencount.Transcript, limits agent.Limits) (failed, err error) {
	w := &watchedModel{Model: m}
	_, err = agent.Run(ctx, w, tools, t, limits)
	if w.gaveUp || errors.Is(err, agent.ErrLimit) {
		return err, nil
	}
	return nil, err
}

// watchedModel records whether a model gave up.
type watchedModel struct {
	agent.Model
	gaveUp bool
}

// Next implements [agent.Model].
func (w *watchedModel) Next(ctx context.Context, t *tokencount.Transcript) (agent.Move, error) {
	move, err := w.Model.Next(ctx, t)
	w.gaveUp = err != nil
	return move, err
}

// note counts what was said, and says so.
func (b *bench) note(task *suite.Task, p *playResult, size, tools int) error {
	b.done++
	t := p.transcript
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	line := report.Line{
		Task: task.Name, Kind: string(task.Kind), Mode: t.Mode, Servers: size, Tools: tools, Tries: tries(t), Finds: p.finds,
		Answer: cut(t.Answer, 300), Correct: p.failed == nil, Transcript: hex.EncodeToString(sum[:8]),
	}
	if p.failed != nil {
		line.Error = cut(p.failed.Error(), 300)
	}
	for _, name := range encodings() {
		if line.Counts, err = t.Count(b.counters[name]); err != nil {
			return err
		}
		line.Encoding = name
		b.lines = append(b.lines, line)
	}
	b.say(b.lines[len(b.lines)-len(encodings())])
	return b.writeDown(t, size)
}

func (b *bench) say(l report.Line) {
	fmt.Fprintf(b.progress, "[%d/%d] %s, %s, %d servers: %d tokens in %d turns, %s\n", b.done, b.of, l.Task, l.Mode, l.Servers, l.Total(), len(l.Turns), cmp.Or(l.Error, "right"))
}

func (b *bench) writeDown(t *tokencount.Transcript, size int) error {
	if b.transcripts == "" {
		return nil
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%d.json", t.Task, t.Mode, size)
	return errors.Join(os.MkdirAll(b.transcripts, 0o755), os.WriteFile(filepath.Join(b.transcripts, name), data, 0o644))
}

// tries are the turns that did nothing but search.
func tries(t *tokencount.Transcript) (n int) {
	for _, turn := range t.Turns {
		searches := len(turn.Calls) > 0
		for _, call := range turn.Calls {
			searches = searches && (call.Tool == suite.SearchTool || call.Tool == suite.SearchTools)
		}
		if searches {
			n++
		}
	}
	return n
}

// cut keeps a text in one line, and short.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
