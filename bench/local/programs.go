package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/execution"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// language is one that programs are written in.
type language struct {
	name, title string
	eval        string // the interpreter's flag for a program
	line        string // a program of one line, which prints 42
}

func languages() []language {
	return []language{
		{"python", "Python", "-c", "print(6 * 7)"},
		{"typescript", "TypeScript", "-e", "console.log(6 * 7)"},
	}
}

// CanRun says why no program can be run here, "" if they can. It runs one, which may have to make a snapshot.
func (b *Bench) CanRun(ctx context.Context) string {
	if _, err := run(ctx, b.gateway, "python", languages()[0].line); err != nil {
		return sanitize.Line(tool.AsError(err).Message, 200)
	}
	return ""
}

// programs runs a line in either language, by turns with the bare interpreter.
func (b *Bench) programs(ctx context.Context, s Setup, l *Latency) (err error) {
	if s.Programs != "" {
		l.miss("programs: %s", s.Programs)
		return nil
	}
	cold, err := s.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cold.Close()) }()
	b.gateway.Executor.Warm(ctx)
	for _, lang := range languages() {
		if err := l.recordFailure(ctx, "programs in "+lang.title, b.lines(ctx, s, l, lang, cold)); err != nil {
			return err
		}
	}
	return nil
}

// lines runs it where a sandbox waits for it, and where one has to be started for it, which is what a program finds that
// comes alone, or comes after many others.
func (b *Bench) lines(ctx context.Context, s Setup, l *Latency, lang language, cold *gateway.Gateway) error {
	line := func(g *gateway.Gateway) func() error {
		return func() error { _, err := run(ctx, g, lang.name, lang.line); return err }
	}
	// The first ones may have to make a snapshot, and are not counted.
	if err := errors.Join(line(b.gateway)(), line(cold)()); err != nil {
		return err
	}
	t := lineTimes{lang: lang, runs: s.Runs, noPool: s.NoPool}
	waits := !s.NoPool
	for range s.Runs {
		if waits = waits && b.await(ctx, lang); waits {
			if err := appendTime(ctx, &t.waiting, line(b.gateway)); err != nil {
				return err
			}
			waits = b.await(ctx, lang) // one that is being made would be in the times of the others
		}
		if err := appendTime(ctx, &t.bare, func() error { return alone(ctx, s.Interpreters[lang.name], lang) }); err != nil {
			t.fault = err
		}
		if err := appendTime(ctx, &t.started, line(cold)); err != nil {
			return err
		}
	}
	t.rows(l)
	return nil
}

// appendTime calls do once and appends its duration.
func appendTime(ctx context.Context, to *[]float64, do func() error) error {
	took, err := timeRuns(ctx, 1, do)
	*to = append(*to, took...)
	return err
}

// lineTimes are the times of one line.
type lineTimes struct {
	lang                   language
	runs                   int
	noPool                 bool
	waiting, started, bare []float64
	fault                  error // the bare interpreter's
}

func (t *lineTimes) rows(l *Latency) {
	if t.fault != nil {
		t.bare = nil
		l.miss("the bare interpreter of %s: %s", t.lang.title, sanitize.Line(t.fault.Error(), 200))
	}
	what, beside := "program of one line, "+t.lang.title, "the bare interpreter, started for it"
	if len(t.waiting) > 0 {
		l.add(what+", in a sandbox that waits", beside, t.waiting, t.bare)
	}
	if n := len(t.waiting); t.noPool {
		l.miss("%s, in a sandbox that waits: none does by these settings (sandbox.pool)", what)
	} else if n < t.runs {
		l.miss("%s, in a sandbox that waits, more than %d times: then none had come to wait within %s (sandbox.pool)", what, n, awaitTime)
	}
	l.add(what+", in one started for it", beside, t.started, t.bare)
}

// awaitTime is how long a sandbox is waited for that waits for a program, on a machine that may have much else to do.
const awaitTime = 20 * time.Second

// await reports whether one waits.
func (b *Bench) await(ctx context.Context, lang language) bool {
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if b.gateway.Executor.Warmed(lang.name) {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// alone runs the line in the interpreter of this machine.
func alone(ctx context.Context, interpreter string, lang language) error {
	if interpreter == "" {
		return errors.New("this machine has no interpreter that sandboxes use")
	}
	out, err := exec.CommandContext(ctx, interpreter, lang.eval, lang.line).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err == nil && string(bytes.TrimSpace(out)) != "42" {
		err = fmt.Errorf("it printed %.40q", out)
	}
	return err
}

// run runs a program that has to end well, and returns its value or else what it printed.
func run(ctx context.Context, g *gateway.Gateway, lang, code string) (string, error) {
	e, err := g.Executor.Execute(ctx, execution.Program{Code: code, Language: lang})
	switch {
	case err != nil:
		return "", err
	case ctx.Err() != nil:
		return "", ctx.Err()
	case e.Status != sandbox.OK:
		return "", fmt.Errorf("the program ended with %s: %s", e.Status, sanitize.Line(e.Text(), 200))
	case e.Value != nil:
		return e.Value.Text, nil
	}
	return e.Stdout.Text, nil
}
