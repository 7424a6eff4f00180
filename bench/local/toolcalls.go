package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// MaxAgain is how often one series of calls calls a tool at most: the tool is a user's. There are [Series] of them.
const MaxAgain = 50

// Series is one of calls from programs for each language, and one without programs for each.
const Series = 4

// toolCalls measures repeated calls of a tool from programs, after as many calls through the same gateway without a
// program.
func (b *Bench) toolCalls(ctx context.Context, s Setup, l *Latency) error {
	switch {
	case s.Programs != "":
		return nil // said already
	case s.Call == nil:
		l.miss("calls from programs: no tool was called that could be called again")
		return nil
	}
	for _, lang := range languages() {
		what := fmt.Sprintf("call of %s from %s", s.Call, lang.title)
		if err := l.recordFailure(ctx, what, b.callTimes(ctx, s, l, lang, what)); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bench) callTimes(ctx context.Context, s Setup, l *Latency, lang language, what string) error {
	n := min(s.Runs, MaxAgain)
	bare, err := timeRuns(ctx, n, func() error { return b.callTool(ctx, *s.Call) })
	if err != nil {
		return err
	}
	var ours []float64
	for len(ours) < n {
		part := n - len(ours)
		if s.CallsEach > 0 {
			part = min(part, s.CallsEach)
		}
		took, err := b.callsFrom(ctx, lang, *s.Call, part)
		if err != nil {
			return err
		}
		ours = append(ours, took...)
	}
	l.add(what, "the same call without a program", ours, bare)
	return nil
}

func (b *Bench) callTool(ctx context.Context, id tool.ID) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	result, err := b.gateway.Call(ctx, tool.Call{Tool: id, Args: json.RawMessage("{}")})
	if err == nil && result.IsError {
		err = errors.New("the tool failed: " + sanitize.Line(result.Text(), 200))
	}
	return err
}

// callsFrom has one program call a tool n times.
func (b *Bench) callsFrom(ctx context.Context, lang language, id tool.ID, n int) (took []float64, err error) {
	text, err := run(ctx, b.gateway, lang.name, callsOf(lang, id, n))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &took); err != nil {
		return nil, fmt.Errorf("read times of the program: %w", err)
	}
	if len(took) != n {
		return nil, fmt.Errorf("read times of the program: %d of %d calls", len(took), n)
	}
	return took, nil
}

// callsOf is a program that calls a tool n times and returns how long each took, in milliseconds with three digits: an answer
// has little room by some settings. The tool gets a name of ours, since its own may be any that the program needs.
func callsOf(lang language, id tool.ID, n int) string {
	if lang.name == "typescript" {
		return fmt.Sprintf(`import { %[2]s as _tool } from "servers/%[1]s";
const _took: number[] = [];
for (let i = 0; i < %[3]d; i++) {
  const begin = performance.now();
  await _tool();
  _took.push(Math.round((performance.now() - begin) * 1e3) / 1e3);
}
_took`, id.Upstream, id.Name, n)
	}
	return fmt.Sprintf(`import time
from servers.%[1]s import %[2]s as _tool
def _one():
    begin = time.perf_counter()
    _tool()
    return round((time.perf_counter() - begin) * 1e3, 3)
[_one() for _ in range(%[3]d)]`, id.Upstream, id.Name, n)
}
