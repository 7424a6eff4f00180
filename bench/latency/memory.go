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
	"sallyport/internal/procmem"
)

const (
	few, many = 1, 7
	barMemory = 60 // MB a waiting sandbox
	megabyte  = 1 << 20
)

// memorySnapshot is the memory of a serve with its waiting sandboxes.
type memorySnapshot struct {
	count     int
	sandboxes procmem.Use // without serve itself
	parts     map[string]procmem.Use
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
	pss := each(func(s memorySnapshot) float64 { return float64(s.sandboxes.Proportional) })
	machine := -each(func(s memorySnapshot) float64 { return s.available })
	alone, err := idle(ctx, many)
	if err != nil {
		return fmt.Errorf("bare interpreters: %w", err)
	}
	of := func(sum int64) float64 { return float64(sum) / float64(more.count) / megabyte }
	note := fmt.Sprintf("half Python, half node, the difference between %d and %d; each of %d: RSS summed %.1f, PSS %.1f, USS %.1f MB%s; bare: as many of the interpreters alone, which wait for input",
		less.count, more.count, more.count, of(more.sandboxes.Resident), of(more.sandboxes.Proportional), of(more.sandboxes.Unique), more.partition())
	b.add(one("waiting sandbox, PSS", "MB", pss, []float64{alone}, []bar{atMost("MB", barMemory, pss)}, note))
	b.add(one("waiting sandbox, MemAvailable", "MB", machine, nil, []bar{atMost("MB", barMemory, machine)}, "what the machine has less of, page tables and the kernel's share included; other processes disturb it"))
	b.add(one("waiting sandboxes in 1 GiB", "", float64(int(1024/max(pss, machine))), []float64{float64(int(1024 / alone))}, nil, "by the larger of the two; bare: by PSS"))
	return nil
}

// idle is the PSS of an interpreter that waits for input, in MB: the mean over so many of either language.
func idle(ctx context.Context, count int) (mean float64, err error) {
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
	all, err := procmem.Of(pids...) // when all of them are there: they share pages
	return float64(all.Proportional) / float64(len(pids)) / megabyte, err
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
	s := memorySnapshot{count: procs.Sandboxes(all), parts: map[string]procmem.Use{}}
	byName, pids := map[string][]int{}, []int{}
	for pid, p := range all {
		if pid != g.command.Process.Pid && within(all, p) {
			byName[p.Name], pids = append(byName[p.Name], pid), append(pids, pid)
		}
	}
	var err error
	if s.sandboxes, err = procmem.Of(pids...); err != nil {
		return memorySnapshot{}, err
	}
	for name, of := range byName {
		if s.parts[name], err = procmem.Of(of...); err != nil {
			return memorySnapshot{}, err
		}
	}
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
		fmt.Fprintf(&b, "; %s %.1f", name, float64(s.parts[name].Proportional)/float64(s.count)/megabyte)
	}
	return b.String()
}
