package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/tokens"
)

// directly does the same work as a model with all tools in its context: every definition is read, and every
// intermediate result passes through the model. The model's own calculations are made here.
func directly(ctx context.Context, s *environment, counter *tokens.Counter) (*tally, error) {
	t := &tally{counter: counter}
	sessions := map[string]*mcp.ClientSession{}
	defer func() {
		for _, session := range sessions {
			_ = session.Close()
		}
	}()
	for _, up := range s.upstreams {
		cmd := exec.CommandContext(ctx, "node", append([]string{up.script}, up.args...)...)
		cmd.Env = append(os.Environ(), up.env...)
		session, err := connect(ctx, &mcp.CommandTransport{Command: cmd})
		if err != nil {
			return nil, err
		}
		sessions[up.name] = session
		if err := t.define(ctx, session); err != nil {
			return nil, err
		}
	}
	listing, _, err := t.call(ctx, sessions["filesystem"], "list_directory", map[string]any{"path": s.orders})
	if err != nil {
		return nil, err
	}
	totals := map[string]float64{}
	for entry := range strings.SplitSeq(strings.TrimSpace(listing), "\n") {
		file := filepath.Join(s.orders, strings.TrimPrefix(entry, "[FILE] "))
		text, _, err := t.call(ctx, sessions["filesystem"], "read_text_file", map[string]any{"path": file})
		if err != nil {
			return nil, err
		}
		if err := add(totals, text); err != nil {
			return nil, err
		}
	}
	return t, t.note(ctx, sessions, totals)
}

func add(totals map[string]float64, text string) error {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return err
	}
	for _, row := range rows[1:] {
		amount, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			return err
		}
		totals[row[1]] += amount
	}
	return nil
}

// note writes the best three to memory, reads them back and adds two of them up, call by call.
func (t *tally) note(ctx context.Context, sessions map[string]*mcp.ClientSession, totals map[string]float64) error {
	names := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		if totals[a] > totals[b] {
			return -1
		}
		return 1
	})
	var entities []any
	for _, name := range names[:3] {
		entities = append(entities, map[string]any{"name": name, "entityType": "customer", "observations": []string{fmt.Sprintf("ordered %.2f in 2026", totals[name])}})
	}
	_, _, err := t.call(ctx, sessions["memory"], "create_entities", map[string]any{"entities": entities})
	_, _, readErr := t.call(ctx, sessions["memory"], "read_graph", map[string]any{})
	if err := errors.Join(err, readErr); err != nil {
		return err
	}
	round := func(f float64) float64 { r, _ := strconv.ParseFloat(fmt.Sprintf("%.2f", f), 64); return r }
	t.answer, _, err = t.call(ctx, sessions["everything"], "get-sum", map[string]any{"a": round(totals[names[0]]), "b": round(totals[names[1]])})
	return err
}

func compare(coded, direct *tally) {
	heading("tokens that the model reads and writes (o200k_base; each definition and result counted once)")
	fmt.Printf("%-28s %12s %12s\n", "", "sallyport", "direct calls")
	fmt.Printf("%-28s %12d %12d   (again at every turn, unless the client caches)\n", "tool definitions", coded.definitions, direct.definitions)
	fmt.Printf("%-28s %12d %12d\n", "calls and results", coded.work, direct.work)
	fmt.Printf("%-28s %12d %12d\n", "together", coded.definitions+coded.work, direct.definitions+direct.work)
	fmt.Printf("\nBoth ways came to: %s\n", coded.answer)
	if coded.answer != direct.answer {
		fmt.Printf("NOT THE SAME: by direct calls it was %s\n", direct.answer)
		os.Exit(1)
	}
}
