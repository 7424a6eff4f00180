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
	"sallyport/bench/machine"
	"sallyport/bench/suite"
	"sallyport/bench/tokencount"
	"sallyport/bench/tokens/report"
)

// all is as many servers as there are.
const all = 1 << 20

// sizes are the numbers of servers that a client is connected to: one, the five that tasks are about, and more
// next to them that are not called. n catalogues are more.
func (o *options) chooseSizes(n int) (sizes []int) {
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

// shownTools is what a client shows of the servers of one size when it calls tools directly.
type shownTools struct {
	definitions  []tokencount.Definition
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

// cost is what showing a server costs.
type cost struct {
	tools  int
	tokens map[string]int // by encoding
}

// order has the catalogues that cost the least to show come first, which favours direct calls at every size but the
// last: by chance or by name, a few servers with tools by the hundred would fill a window wherever they come.
func (b *bench) order(ctx context.Context) error {
	tools, err := agent.OpenTools(ctx, suite.Direct, agent.Setup{World: b.world, Upstreams: b.names(5), More: b.more})
	if err != nil {
		return err
	}
	for _, d := range tools.Definitions() {
		if err := b.charge(d); err != nil {
			return errors.Join(err, tools.Close())
		}
	}
	slices.SortStableFunc(b.more, func(x, y agent.Catalogue) int {
		return cmp.Compare(b.costs[x.Name].tokens[report.Encoding], b.costs[y.Name].tokens[report.Encoding])
	})
	b.more = variantsLast(b.more)
	return tools.Close()
}

// charge adds a definition to what its server costs.
func (b *bench) charge(d tokencount.Definition) error {
	name, _, _ := strings.Cut(d.Name, "__")
	c, known := b.costs[name]
	if !known {
		c.tokens = map[string]int{}
	}
	c.tools++
	for encoding, memo := range b.counters {
		n, err := memo.Definition(d)
		if err != nil {
			return err
		}
		c.tokens[encoding] += n
	}
	b.costs[name] = c
	return nil
}

// variantsLast puts what is there already of the same package behind everything else: no one connects to a server twice.
func variantsLast(list []agent.Catalogue) []agent.Catalogue {
	var first, again []agent.Catalogue
	for _, c := range list {
		if c.Package != "" && slices.ContainsFunc(first, func(other agent.Catalogue) bool { return other.Package == c.Package }) {
			again = append(again, c)
		} else {
			first = append(first, c)
		}
	}
	return append(first, again...)
}

// servers are all that are shown, in the order in which they are added.
func (b *bench) servers() (list []report.Server) {
	for _, s := range b.world.Servers() {
		list = append(list, report.Server{Name: s.Name, Package: s.Package, Version: s.Version, Tools: b.costs[s.Name].tools, Tokens: b.costs[s.Name].tokens})
	}
	for _, c := range b.more {
		list = append(list, report.Server{Name: c.Name, Package: c.Package, Version: c.Version, Tools: b.costs[c.Name].tools, Tokens: b.costs[c.Name].tokens, Shown: true})
	}
	return list
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

// shownAt returns what direct calls show at one size, requested once from the real servers.
func (b *bench) shownAt(ctx context.Context, task *suite.Task, size int) (shownTools, error) {
	key := fmt.Sprint(size)
	if size == 1 {
		key = task.Upstreams[0]
	}
	if s, ok := b.shown[key]; ok {
		return s, nil
	}
	tools, err := agent.OpenTools(ctx, suite.Direct, b.setup(task, size))
	if err != nil {
		return shownTools{}, err
	}
	s := shownTools{tools.Definitions(), tools.Instructions()}
	b.shown[key] = s
	return s, tools.Close()
}

// catalogues are those that are shown next to the real servers.
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
		size := report.Size{Servers: n, Names: b.names(n), Definitions: map[string]int{}, Instructions: map[string]int{}}
		if n > 1 {
			s, err := b.shownAt(ctx, nil, n)
			if err != nil {
				return nil, err
			}
			size.Tools = len(s.definitions)
			for name, memo := range b.counters {
				c, err := (&tokencount.Transcript{Definitions: s.definitions, Instructions: s.instructions}).Count(memo)
				if err != nil {
					return nil, err
				}
				size.Definitions[name], size.Instructions[name] = c.Definitions, c.Instructions
			}
		}
		list = append(list, size)
	}
	return list, nil
}
