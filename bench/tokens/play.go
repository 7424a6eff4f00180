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
	"sallyport/bench/ledger"
	"sallyport/bench/suite"
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
	counters map[string]*ledger.Memo
	shown    map[string]shown
	lines    []report.Line
	done, of int
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
	b, digests, err := open(o)
	if err != nil {
		return nil, err
	}
	defer b.clear()
	sizes := o.chosen(len(b.more))
	head, err := b.head(ctx, sizes, digests)
	if err != nil {
		return nil, err
	}
	if err := b.tasks(ctx, sizes); err != nil {
		return nil, err
	}
	head.Took = time.Since(start).Round(time.Second).String()
	return report.New(*head, b.lines), nil
}

func open(o *options) (*bench, map[string]string, error) {
	b := &bench{options: o, cache: filepath.Join(o.folder, "cache"), counters: map[string]*ledger.Memo{}, shown: map[string]shown{}}
	var err error
	if b.world, err = suite.NewWorld(filepath.Join(o.folder, "world"), o.upstreams); err != nil {
		return nil, nil, err
	}
	for name, load := range map[string]func() (*tokens.Counter, error){encodings()[0]: tokens.O200k, encodings()[1]: tokens.Cl100k} {
		counter, err := load()
		if err != nil {
			return nil, nil, err
		}
		b.counters[name] = ledger.NewMemo(counter)
	}
	more, digests, err := catalogues(o, b.world)
	b.more = more
	return b, digests, errors.Join(err, b.world.Reset(), os.MkdirAll(b.cache, 0o700))
}

// clear leaves an empty folder, which is what is locked.
func (b *bench) clear() {
	_ = os.RemoveAll(b.world.Dir)
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
// made once, and counted at each size; searches and code are played anew.
func (b *bench) task(ctx context.Context, task *suite.Task, sizes []int) error {
	direct, failed, err := b.play(ctx, task, suite.Direct, agent.Setup{World: b.world, Upstreams: task.Upstreams})
	if err != nil {
		return err
	}
	for _, size := range sizes {
		s, err := b.sized(ctx, task, size)
		if err != nil {
			return err
		}
		direct.Definitions, direct.Instructions = s.definitions, s.instructions
		if err := b.note(task, direct, size, len(s.definitions), failed); err != nil {
			return err
		}
		for _, mode := range []suite.Mode{suite.Search, suite.Code} {
			t, failed, err := b.play(ctx, task, mode, b.setup(task, size))
			if err != nil {
				return err
			}
			if err := b.note(task, t, size, len(s.definitions), failed); err != nil {
				return err
			}
		}
	}
	return nil
}

// play plays a task once, in a world and with servers of its own. failed is what a script or its answer did wrong.
func (b *bench) play(ctx context.Context, task *suite.Task, mode suite.Mode, setup agent.Setup) (t *ledger.Transcript, failed, err error) {
	if err := b.world.Reset(); err != nil {
		return nil, nil, err
	}
	tools, err := agent.OpenTools(ctx, mode, setup)
	if err != nil {
		return nil, nil, err
	}
	t = &ledger.Transcript{Task: task.Name, Mode: string(mode), Prompt: b.world.Expand(task.Prompt)}
	model := agent.Scripted(task, b.world, mode)
	defer model.Close()
	_, failed = agent.Run(ctx, model, tools, t, agent.Limits{Turns: 200, Time: 5 * time.Minute})
	if failed == nil {
		failed = agent.Check(task, b.world, t)
	}
	return t, failed, errors.Join(tools.Close(), ctx.Err())
}

// note counts what was said, and says so.
func (b *bench) note(task *suite.Task, t *ledger.Transcript, size, tools int, failed error) error {
	b.done++
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	line := report.Line{
		Task: task.Name, Kind: string(task.Kind), Mode: t.Mode, Servers: size, Tools: tools, Tries: tries(t),
		Answer: cut(t.Answer, 300), Correct: failed == nil, Transcript: hex.EncodeToString(sum[:8]),
	}
	if failed != nil {
		line.Error = cut(failed.Error(), 300)
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

func (b *bench) writeDown(t *ledger.Transcript, size int) error {
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
func tries(t *ledger.Transcript) (n int) {
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
