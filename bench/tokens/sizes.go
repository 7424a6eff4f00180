package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/bench/agent"
	"sallyport/bench/ledger"
	"sallyport/bench/machine"
	"sallyport/bench/suite"
	"sallyport/bench/tokens/report"
)

// all is as many servers as there are.
const all = 1 << 20

// sizes are the numbers of servers that a client is connected to: one, the five that tasks are about, and more
// beside them whose tools nobody calls. n catalogues are more.
func (o *options) chosen(n int) (sizes []int) {
	wanted := o.sizes
	if len(wanted) == 0 {
		wanted = []int{1, 5, 10, 25, all}
	}
	for _, size := range wanted {
		if size == all || size > 5+n {
			size = 5 + n
		}
		if !slices.Contains(sizes, size) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// shown is what a client shows of the servers of one size when it calls tools directly.
type shown struct {
	definitions  []ledger.Definition
	instructions []string
}

// names are the servers of one size; with one, which that is depends on the task.
func (b *bench) names(size int) (list []string) {
	if size == 1 {
		return nil
	}
	for _, s := range b.world.Servers() {
		list = append(list, s.Name)
	}
	for _, c := range b.more[:size-len(list)] {
		list = append(list, c.Name)
	}
	return list
}

// order has the catalogues that cost the least to show come first, which favours direct calls at every size but the
// last: by chance or by name, a few servers with tools by the hundred would fill a window wherever they come.
func (b *bench) order(ctx context.Context) error {
	tools, err := agent.OpenTools(ctx, suite.Direct, agent.Setup{World: b.world, More: b.more})
	if err != nil {
		return err
	}
	costs := map[string]int{}
	for _, d := range tools.Definitions() {
		n, err := b.counters[report.Encoding].Definition(d)
		if err != nil {
			return errors.Join(err, tools.Close())
		}
		name, _, _ := strings.Cut(d.Name, "__")
		costs[name] += n
	}
	slices.SortStableFunc(b.more, func(x, y agent.Catalogue) int { return cmp.Compare(costs[x.Name], costs[y.Name]) })
	return tools.Close()
}

// setup is what is behind the tools of a task at one size; which task, matters with one server only.
func (b *bench) setup(task *suite.Task, size int) agent.Setup {
	s := agent.Setup{World: b.world, Sallyport: b.sallyport, Cache: b.cache}
	if size == 1 {
		s.Upstreams = task.Upstreams
		return s
	}
	s.Upstreams = b.names(5)
	s.More = b.more[:size-5]
	return s
}

// sized returns what direct calls show at one size, which is asked of the real servers once.
func (b *bench) sized(ctx context.Context, task *suite.Task, size int) (shown, error) {
	key := fmt.Sprint(size)
	if size == 1 {
		key = task.Upstreams[0]
	}
	if s, ok := b.shown[key]; ok {
		return s, nil
	}
	tools, err := agent.OpenTools(ctx, suite.Direct, b.setup(task, size))
	if err != nil {
		return shown{}, err
	}
	s := shown{tools.Definitions(), tools.Instructions()}
	b.shown[key] = s
	return s, tools.Close()
}

// catalogues are those that are shown beside the real servers.
func catalogues(o *options, w *suite.World) (more []agent.Catalogue, digests map[string]string, err error) {
	list, err := agent.ReadCatalogues(o.catalog)
	if err != nil {
		return nil, nil, err
	}
	var real []string
	for _, s := range w.Servers() {
		real = append(real, s.Name)
	}
	digests = map[string]string{}
	more = agent.Without(list, real...)
	for _, c := range more {
		if digests[c.Name], err = digest(filepath.Join(o.catalog, c.Name+".json")); err != nil {
			return nil, nil, err
		}
	}
	return more, digests, nil
}

func digest(path string) (string, error) {
	digits, err := machine.Digest(path)
	return "sha256:" + digits, err
}

// describe says what each size is, in the head of the results.
func (b *bench) describe(ctx context.Context, sizes []int) (list []report.Size, err error) {
	for _, n := range sizes {
		size := report.Size{Servers: n, Names: b.names(n), Definitions: map[string]int{}}
		if n > 1 {
			s, err := b.sized(ctx, nil, n)
			if err != nil {
				return nil, err
			}
			size.Tools = len(s.definitions)
			for name, memo := range b.counters {
				if size.Definitions[name], err = tokensOf(memo, s.definitions); err != nil {
					return nil, err
				}
			}
		}
		list = append(list, size)
	}
	return list, nil
}

func tokensOf(memo *ledger.Memo, definitions []ledger.Definition) (sum int, err error) {
	for _, d := range definitions {
		n, err := memo.Definition(d)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
