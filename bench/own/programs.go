package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"sallyport/gateway"
	"sallyport/internal/plain"
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
	if _, err := b.run(ctx, "python", languages()[0].line); err != nil {
		return plain.Line(tool.AsError(err).Message, 200)
	}
	return ""
}

// programs runs a line in either language, by turns with the bare interpreter.
func (b *Bench) programs(ctx context.Context, s Setup, l *Latency) error {
	if s.Programs != "" {
		l.miss("programs: %s", s.Programs)
		return nil
	}
	b.gateway.Warm(ctx)
	for _, lang := range languages() {
		if err := b.lines(ctx, s, l, lang); err != nil {
			return fmt.Errorf("measure %s: %w", lang.title, err)
		}
	}
	return nil
}

func (b *Bench) lines(ctx context.Context, s Setup, l *Latency, lang language) error {
	// The first one may have to make a snapshot, and is not counted.
	if _, err := b.run(ctx, lang.name, lang.line); err != nil {
		return err
	}
	var ours, bare []float64
	for range s.Runs {
		b.await(ctx, lang)
		took, err := timed(ctx, 1, func() error { _, err := b.run(ctx, lang.name, lang.line); return err })
		if err != nil {
			return err
		}
		ours = append(ours, took...)
		b.await(ctx, lang)
		if took, err = timed(ctx, 1, func() error { return alone(ctx, s.Interpreters[lang.name], lang) }); err == nil {
			bare = append(bare, took...)
		}
	}
	if len(bare) < s.Runs {
		bare = nil
		l.miss("the bare interpreter of %s is not on this machine", lang.title)
	}
	l.add("program of one line, "+lang.title, "the bare interpreter", ours, bare)
	return ctx.Err()
}

// awaitTime is how long a sandbox is waited for that waits for a program; without one the program starts its own.
const awaitTime = 3 * time.Second

func (b *Bench) await(ctx context.Context, lang language) {
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if b.gateway.Warmed(lang.name) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// alone runs the line in the interpreter of this machine.
func alone(ctx context.Context, interpreter string, lang language) error {
	if interpreter == "" {
		return errors.New("there is none")
	}
	out, err := exec.CommandContext(ctx, interpreter, lang.eval, lang.line).Output()
	if err == nil && string(bytes.TrimSpace(out)) != "42" {
		err = fmt.Errorf("it printed %.40q", out)
	}
	return err
}

// run runs a program that has to end well, and returns its value or else what it printed.
func (b *Bench) run(ctx context.Context, lang, code string) (string, error) {
	e, err := b.gateway.Execute(ctx, gateway.Program{Code: code, Language: lang})
	switch {
	case err != nil:
		return "", err
	case ctx.Err() != nil:
		return "", ctx.Err()
	case e.Status != sandbox.OK:
		return "", fmt.Errorf("the program ended with %s: %s", e.Status, plain.Line(e.Text(), 200))
	case e.Value != nil:
		return e.Value.Text, nil
	}
	return e.Stdout.Text, nil
}

// toolCalls has a program call a tool again and again, by turns with calls through the same door without a program.
func (b *Bench) toolCalls(ctx context.Context, s Setup, l *Latency) error {
	switch {
	case s.Programs != "":
		return nil // said already
	case s.Call == nil:
		l.miss("calls from programs: no tool was called that could be called again")
		return nil
	}
	for _, lang := range languages() {
		bare, err := timed(ctx, s.Runs, func() error { return b.again(ctx, *s.Call) })
		if err != nil {
			return fmt.Errorf("call %s again: %w", s.Call, err)
		}
		text, err := b.run(ctx, lang.name, callsOf(lang, *s.Call, s.Runs))
		var ours []float64
		if err == nil {
			err = json.Unmarshal([]byte(text), &ours)
		}
		if err != nil {
			return fmt.Errorf("call %s from %s: %w", s.Call, lang.title, err)
		}
		l.add(fmt.Sprintf("call of %s from %s", s.Call, lang.title), "the same call without a program", ours, bare)
	}
	return nil
}

func (b *Bench) again(ctx context.Context, id tool.ID) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	result, err := b.gateway.Call(ctx, tool.Call{Tool: id, Args: json.RawMessage("{}")})
	if err == nil && result.IsError {
		err = errors.New(plain.Line(result.Text(), 200))
	}
	return err
}

// callsOf is a program that calls a tool n times and returns how long each took, in milliseconds.
func callsOf(lang language, id tool.ID, n int) string {
	if lang.name == "typescript" {
		return fmt.Sprintf(`import { %[2]s } from "servers/%[1]s";
const took: number[] = [];
for (let i = 0; i < %[3]d; i++) {
  const begin = performance.now();
  await %[2]s();
  took.push(performance.now() - begin);
}
took`, id.Upstream, id.Name, n)
	}
	return fmt.Sprintf(`import time
from servers.%[1]s import %[2]s
def one():
    begin = time.perf_counter()
    %[2]s()
    return (time.perf_counter() - begin) * 1e3
[one() for _ in range(%[3]d)]`, id.Upstream, id.Name, n)
}
