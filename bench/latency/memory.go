package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/bench/procs"
	"sallyport/bench/stats"
)

const (
	few, many = 1, 7
	barMemory = 60 // MB a waiting sandbox
	megabyte  = 1 << 20
)

// memorySnapshot is the memory of a serve with its waiting sandboxes.
type memorySnapshot struct {
	count     int
	sandboxes use // without serve itself
	parts     map[string]use
	available float64
}

// memory is what a waiting sandbox takes, from the difference between a pool of few and one of many of each language.
func memory(ctx context.Context, b *bench) error {
	if b.poolless {
		return nil
	}
	var stands [2]memorySnapshot
	for i, count := range []int{few, many} {
		var err error
		if stands[i], err = b.measureIdle(ctx, count); err != nil {
			return err
		}
	}
	less, more := stands[0], stands[1]
	if more.count <= less.count {
		return errors.New("the pool does not grow")
	}
	each := func(figure func(s memorySnapshot) float64) float64 {
		return (figure(more) - figure(less)) / float64(more.count-less.count) / megabyte
	}
	pss := each(func(s memorySnapshot) float64 { return s.sandboxes.proportional })
	machine := -each(func(s memorySnapshot) float64 { return s.available })
	alone, err := idle(ctx, many)
	if err != nil {
		return fmt.Errorf("bare interpreters: %w", err)
	}
	of := func(sum float64) float64 { return sum / float64(more.count) / megabyte }
	note := fmt.Sprintf("half Python, half node, the difference between %d and %d; each of %d: RSS summed %.1f, PSS %.1f, USS %.1f MB%s; bare: as many of the interpreters alone, which wait for input",
		less.count, more.count, more.count, of(more.sandboxes.resident), of(more.sandboxes.proportional), of(more.sandboxes.unique), more.partition())
	b.add(one("waiting sandbox, PSS", "MB", pss, []float64{alone}, []bar{atMost("MB", barMemory, pss)}, note))
	b.add(one("waiting sandbox, MemAvailable", "MB", machine, nil, []bar{atMost("MB", barMemory, machine)}, "what the machine has less of, page tables and the kernel's share included; other processes disturb it"))
	b.add(one("waiting sandboxes in 1 GiB", "", float64(int(1024/max(pss, machine))), []float64{float64(int(1024 / alone))}, nil, "by the larger of the two; bare: by PSS"))
	return nil
}

// idle is the PSS of an interpreter that waits for input, in MB: the mean over so many of either language.
func idle(ctx context.Context, count int) (mean float64, err error) {
	var all use
	var ends []func() error
	defer func() {
		for _, end := range ends {
			err = errors.Join(err, end())
		}
	}()
	var pids []int
	for _, l := range languages() {
		for range count {
			pid, end, err := l.wait(ctx)
			if err != nil {
				return 0, err
			}
			pids, ends = append(pids, pid), append(ends, end)
		}
	}
	for _, pid := range pids { // when all of them are there: they share pages
		if err := all.add(pid); err != nil {
			return 0, err
		}
	}
	return all.proportional / float64(len(pids)) / megabyte, nil
}

// measureIdle measures a serve with count waiting sandboxes of each language.
func (b *bench) measureIdle(ctx context.Context, count int) (s memorySnapshot, err error) {
	settings := setup{pool: fmt.Sprintf("{min: %d, max: %d, memory: 4GiB}", count, count)}
	g, err := b.start(ctx, settings)
	if err != nil {
		return memorySnapshot{}, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	for _, l := range languages() {
		if _, err := g.line(ctx, l); err != nil {
			return memorySnapshot{}, err
		}
	}
	if err := g.waitQuiet(ctx, 2*count); err != nil {
		return memorySnapshot{}, err
	}
	return g.memorySnapshot()
}

func one(name, unit string, figure float64, bare []float64, bars []bar, note string) row {
	return row{Case: name, Unit: unit, Compared: stats.Compare([]float64{figure}, bare), Bars: bars, Note: note}
}

// memorySnapshot measures all processes of serve except its upstream.
func (g *instance) memorySnapshot() (memorySnapshot, error) {
	all := g.processes()
	s := memorySnapshot{count: procs.Sandboxes(all), parts: map[string]use{}}
	for pid, p := range all {
		if pid == g.command.Process.Pid || !within(all, p) {
			continue
		}
		part := s.parts[p.Name]
		if err := errors.Join(s.sandboxes.add(pid), part.add(pid)); err != nil {
			return memorySnapshot{}, err
		}
		s.parts[p.Name] = part
	}
	var err error
	s.available, err = available()
	return s, err
}

// within reports whether a process is a part of gVisor's, or descends from one: the sentry's stubs.
func within(all map[int]procs.Process, p procs.Process) bool {
	for ok := true; ok; p, ok = all[p.Parent] {
		if strings.HasPrefix(p.Name, "runsc") {
			return true
		}
	}
	return false
}

// partition says which process has the memory.
func (s memorySnapshot) partition() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		fmt.Fprintf(&b, "; %s %.1f", name, s.parts[name].proportional/float64(s.count)/megabyte)
	}
	return b.String()
}
