package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sallyport/bench/procs"
	"sallyport/bench/stats"
	"sallyport/bench/table"
)

const (
	barProgram = 3   // milliseconds that a worker may add to a program
	barCall    = 500 // microseconds that it may add to a call
	barLarge   = 2   // times the local time of a result of 10 MB

	// rounds is how many programs of each side measure calls and results.
	rounds = 6
	// The names of the gateways, one that runs its programs itself and one that has workers.
	here, there = "here", "there"
)

// compare measures a program, calls and large results on a worker and, by turns, on a gateway that runs programs itself.
func compare(ctx context.Context, b *bench) error {
	return b.withSite(ctx, func(s *site) error {
		if err := s.serve(ctx, here, "parallel: 4"); err != nil {
			return err
		}
		if err := s.join(ctx, "w1"); err != nil {
			return err
		}
		if err := s.serve(ctx, there, "remote: workers, parallel: 4"); err != nil {
			return err
		}
		if err := s.comparePrograms(ctx); err != nil {
			return err
		}
		return s.compareFigures(ctx)
	})
}

// comparePrograms measures programs of one line, each while everything rests and sandboxes wait.
func (s *site) comparePrograms(ctx context.Context) error {
	took := map[string][]float64{}
	for range s.b.n {
		for _, name := range []string{here, there} {
			if err := procs.WaitQuiet(ctx, s.processes, 2); err != nil {
				return err
			}
			begin := time.Now()
			if _, err := s.execute(ctx, name, python(lineProgram)); err != nil {
				return err
			}
			took[name] = append(took[name], milliseconds(time.Since(begin)))
		}
	}
	r := table.Row{Case: "program on a worker", Language: "python", Unit: "ms", Compared: stats.Compare(took[there], took[here]),
		Note: "one line, POST /execute; a sandbox waits on either side; bare: on a gateway of the same cluster that runs its programs itself, by turns"}
	r.Bars = []table.Bar{table.AtMost("added p50 ms", barProgram, r.P50-r.Bare.P50)}
	s.b.add(r)
	return nil
}

// compareFigures measures calls and large results in programs.
func (s *site) compareFigures(ctx context.Context) error {
	for _, kind := range []struct{ tool, name, note string }{
		{"echo", "tool call on a worker", "of a tool that changes nothing"}, {"change", "recorded tool call on a worker", "of a tool that may change something, which has a record on the disk of the servers before it is made"},
	} {
		took, err := s.byTurns(ctx, fmt.Sprintf(callsProgram, kind.tool))
		if err != nil {
			return err
		}
		r := table.Row{Case: kind.name, Language: "python", Unit: "us", Compared: stats.Compare(took[there], took[here]),
			Note: kind.note + ", answered at once, timed in the program; bare: the same in a sandbox of the gateway's machine"}
		r.Bars = []table.Bar{table.AtMost("added p50 us", barCall, r.P50-r.Bare.P50)}
		s.b.add(r)
	}
	large, err := s.byTurns(ctx, largeProgram)
	if err != nil {
		return err
	}
	r := table.Row{Case: "10 MB result on a worker", Language: "python", Unit: "ms", Compared: stats.Compare(large[there], large[here]),
		Note: "one text, timed in the program until it is a value there; bare: the same in a sandbox of the gateway's machine"}
	r.Bars = []table.Bar{table.AtMost("ratio", barLarge, r.Ratio)}
	s.b.add(r)
	return nil
}

// byTurns runs a program that measures on both sides, and returns its figures.
func (s *site) byTurns(ctx context.Context, code string) (map[string][]float64, error) {
	figures := map[string][]float64{}
	for range rounds {
		for _, name := range []string{here, there} {
			if err := procs.WaitQuiet(ctx, s.processes, 2); err != nil {
				return nil, err
			}
			result, err := s.execute(ctx, name, python(code))
			if err != nil {
				return nil, err
			}
			var more []float64
			if err := json.Unmarshal(result, &more); err != nil {
				return nil, fmt.Errorf("read figures %.100q: %w", result, err)
			}
			figures[name] = append(figures[name], more...)
		}
	}
	return figures, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
