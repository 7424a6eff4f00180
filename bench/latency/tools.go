package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"sallyport/bench/corpus"
	"sallyport/bench/stats"
	"sallyport/codegen"
	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tool"
)

// source reads what tools are made of, once.
func (b *bench) source() (*corpus.Source, error) {
	if b.tools != nil {
		return b.tools, nil
	}
	var err error
	b.tools, err = corpus.Open(b.catalog, b.queries)
	return b.tools, err
}

// since is how long something took, in milliseconds.
func since(do func() error) (float64, error) {
	begin := time.Now()
	err := do()
	return milliseconds(time.Since(begin)), err
}

// byTurns measures two things n times, one after the other; which of them is the
// first changes with each turn. Before a turn something may be done that is not measured.
func byTurns(ctx context.Context, n int, before func(), one, other func() (float64, error)) (first, second []float64, err error) {
	measure := [2]func() (float64, error){one, other}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		before()
		var took [2]float64
		for j := range measure {
			which := (i + j) % 2
			if took[which], err = measure[which](); err != nil {
				return nil, nil, err
			}
		}
		first, second = append(first, took[0]), append(second, took[1])
	}
	return first, second, nil
}

// rounds is how often something is measured that takes longer the more tools there are.
func (b *bench) rounds(size int) int {
	switch {
	case size > 20_000:
		return min(3, b.n)
	case size > 1000:
		return min(10, b.n)
	}
	return b.n
}

// thousands writes 2000 as 2,000.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// generate is what making the wrappers of both languages costs, compared with reading and writing the same definitions as JSON.
func generate(ctx context.Context, b *bench) error {
	from, err := b.source()
	if err != nil {
		return err
	}
	for _, set := range []struct {
		name  string
		tools []ireval.Entry
	}{{"100 tools", from.Tools(100)}, {"the catalogue", from.Catalog()}, {"2,000 tools", from.Tools(2000)}} {
		if set.name == "the catalogue" && !from.Real {
			continue
		}
		if err := b.generate(ctx, set.name, set.tools); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) generate(ctx context.Context, name string, tools []ireval.Entry) error {
	ups, lists := codegenInput(tools)
	files, size := 0, 0
	ours, bare, err := byTurns(ctx, b.rounds(len(tools)), runtime.GC, func() (float64, error) {
		return since(func() error {
			files, size = countFiles(codegen.Generate(ups))
			return nil
		})
	}, func() (float64, error) { return since(func() error { return rewrite(lists) }) })
	if err != nil {
		return err
	}
	b.add(row{Case: "wrappers of " + name, Unit: "ms", Compared: stats.Compare(ours, bare), Note: fmt.Sprintf(
		"%s tools of %d upstreams: %s files, %.1f MB, both languages; bare: the same definitions read by encoding/json and written again", thousands(len(tools)), len(ups), thousands(files), float64(size)/megabyte)})
	return nil
}

func countFiles(all []codegen.File) (files, size int) {
	for _, f := range all {
		size += len(f.Data)
	}
	return len(all), size
}

// codegenInput are tools as codegen takes them, and as their servers list them.
func codegenInput(tools []ireval.Entry) (ups []codegen.Upstream, lists []json.RawMessage) {
	for _, s := range corpus.ByServer(tools) {
		up := codegen.Upstream{ID: tool.Identifier(s.Name)}
		for _, e := range s.Tools {
			up.Tools = append(up.Tools, e.Tool)
		}
		ups, lists = append(ups, up), append(lists, s.List())
	}
	return ups, lists
}

// rewrite reads lists of tools and writes them.
func rewrite(lists []json.RawMessage) error {
	for _, data := range lists {
		var list struct {
			Tools []struct {
				Name, Title, Description  string
				InputSchema, OutputSchema any
			}
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		if _, err := json.Marshal(list); err != nil {
			return err
		}
	}
	return nil
}
