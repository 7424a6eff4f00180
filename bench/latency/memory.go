package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	few, many = 2, 12
	barMemory = 60 // MB a waiting sandbox
	megabyte  = 1 << 20
)

// memory is what a waiting sandbox takes, from the difference between a pool of few and one of many.
func memory(ctx context.Context, b *bench) error {
	if b.poolless {
		return nil
	}
	for _, l := range languages() {
		if err := b.memoryOf(ctx, l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// stand is how much memory a serve with its waiting sandboxes takes.
type stand struct {
	boxes     int
	sandboxes use // without serve itself
	parts     map[string]use
	available float64
}

func (b *bench) memoryOf(ctx context.Context, l language) error {
	var stands [2]stand
	for i, count := range []int{few, many} {
		s := setup{pool: fmt.Sprintf("{min: %d, max: %d, memory: 4GiB}", count, count)}
		if err := b.withGate(ctx, s, l, func(g *gate) (err error) {
			if err = g.quiet(ctx, count); err == nil {
				stands[i], err = g.stand()
			}
			return err
		}); err != nil {
			return err
		}
	}
	less, more := stands[0], stands[1]
	if more.boxes == less.boxes {
		return errors.New("the pool does not grow")
	}
	each := func(figure func(s stand) float64) float64 {
		return (figure(more) - figure(less)) / float64(more.boxes-less.boxes) / megabyte
	}
	pss := each(func(s stand) float64 { return s.sandboxes.proportional })
	kernel := -each(func(s stand) float64 { return s.available })
	note := fmt.Sprintf("each of %d waiting: RSS summed %.1f, PSS %.1f, USS %.1f MB%s", more.boxes,
		more.sandboxes.resident/float64(more.boxes)/megabyte, more.sandboxes.proportional/float64(more.boxes)/megabyte,
		more.sandboxes.unique/float64(more.boxes)/megabyte, more.partition())
	b.add(one("waiting sandbox, PSS", l, "MB", pss, []bar{atMost("MB", barMemory, pss)}, note))
	b.add(one("waiting sandbox, MemAvailable", l, "MB", kernel, []bar{atMost("MB", barMemory, kernel)}, "what the machine has less of, with page tables and the kernel's share"))
	b.add(one("waiting sandboxes in 1 GiB", l, "", float64(int(1024/max(pss, kernel))), nil, "by the larger of the two"))
	return nil
}

func one(name string, l language, unit string, figure float64, bars []bar, note string) row {
	return row{Case: name, Language: l.name, Unit: unit, summary: summarize([]float64{figure}), Bars: bars, Note: note}
}

// stand looks at everything that serve has started but its upstream.
func (g *gate) stand() (stand, error) {
	all := g.processes()
	s := stand{boxes: boxes(all), parts: map[string]use{}}
	for pid, p := range all {
		if pid == g.command.Process.Pid || !within(all, p) {
			continue
		}
		part := s.parts[p.name]
		if err := errors.Join(s.sandboxes.add(pid), part.add(pid)); err != nil {
			return stand{}, err
		}
		s.parts[p.name] = part
	}
	var err error
	s.available, err = available()
	return s, err
}

// within reports whether a process is a part of gVisor's, or descends from one: the sentry's stubs.
func within(all map[int]process, p process) bool {
	for ok := true; ok; p, ok = all[p.parent] {
		if strings.HasPrefix(p.name, "runsc") {
			return true
		}
	}
	return false
}

// partition says whose the memory is.
func (s stand) partition() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.parts)) {
		fmt.Fprintf(&b, "; %s %.1f", name, s.parts[name].proportional/float64(s.boxes)/megabyte)
	}
	return b.String()
}
