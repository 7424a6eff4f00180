package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/tokens"
)

const pythonProgram = `import csv, io
from collections import Counter
from servers.filesystem import list_directory, read_text_file
from servers.memory import create_entities

totals = Counter()
folder = "FOLDER"
for entry in list_directory(folder)["content"].splitlines():
    name = entry.removeprefix("[FILE] ")
    for row in csv.DictReader(io.StringIO(read_text_file(f"{folder}/{name}")["content"])):
        totals[row["customer"]] += float(row["amount"])
best = totals.most_common(3)
create_entities([{"name": n, "entityType": "customer", "observations": [f"ordered {t:.2f} in 2026"]} for n, t in best])
[f"{n}: {t:.2f}" for n, t in best]`

const typescriptProgram = `import { read_graph } from "servers/memory";
import { get_sum } from "servers/everything";

const { entities } = await read_graph();
const amounts: number[] = entities.map((e: any) => Number(e.observations[0].split(" ")[1]));
const [a, b] = amounts.sort((x, y) => y - x);
await get_sum({ a, b })`

// tally adds up what a model reads and writes.
type tally struct {
	counter *tokens.Counter
	// definitions are read at the start (and again at every turn, unless they are cached), work once.
	definitions, work int
	answer            string
}

func (t *tally) count(text string) int {
	n, err := t.counter.Count(text)
	if err != nil {
		panic(err) // the vocabulary is embedded: no text fails
	}
	return n
}

// throughSallyport plays the part of a model behind one MCP entry.
func throughSallyport(ctx context.Context, binary string, s *environment, counter *tokens.Counter) (*tally, error) {
	cmd := exec.CommandContext(ctx, binary, "serve", "--config", s.config, "--log-level", "warn")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(s.dir, "cache"), "XDG_DATA_HOME="+filepath.Join(s.dir, "data")) // what is learned of results would show in later runs
	cmd.Stderr = os.Stderr
	session, err := connect(ctx, &mcp.CommandTransport{Command: cmd})
	if err != nil {
		return nil, err
	}
	t := &tally{counter: counter}
	if err := t.define(ctx, session); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	heading("what the model reads first: two tools (%d tokens)", t.definitions)
	fmt.Println(session.InitializeResult().Instructions)
	steps := []struct {
		title, tool string
		args        map[string]any
	}{
		{"search", "search_tools", map[string]any{"query": "list and read files in a folder", "limit": 3}},
		{"search", "search_tools", map[string]any{"query": "memory entities: create, read graph", "limit": 3}},
		{"a Python program with two upstreams", "execute_code", map[string]any{"code": strings.Replace(pythonProgram, "FOLDER", s.orders, 1)}},
		{"search", "search_tools", map[string]any{"query": "add two numbers", "language": "typescript", "limit": 1}},
		{"a TypeScript program with two upstreams", "execute_code", map[string]any{"code": typescriptProgram, "language": "typescript"}},
	}
	for _, step := range steps {
		text, n, err := t.call(ctx, session, step.tool, step.args)
		if err != nil {
			return nil, errors.Join(err, session.Close())
		}
		heading("%s: %s (%d tokens, question and answer)", step.title, step.tool, n)
		show(step.args, text)
		t.answer = text
	}
	return t, session.Close()
}

func connect(ctx context.Context, transport mcp.Transport) (*mcp.ClientSession, error) {
	return mcp.NewClient(&mcp.Implementation{Name: "sallyport-demo", Version: "1"}, nil).Connect(ctx, transport, nil)
}

// define counts what a client puts into the model's context for a server.
func (t *tally) define(ctx context.Context, session *mcp.ClientSession) error {
	for def, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		data, err := json.Marshal(map[string]any{"name": def.Name, "description": def.Description, "input_schema": def.InputSchema})
		if err != nil {
			return err
		}
		t.definitions += t.count(string(data))
	}
	t.definitions += t.count(session.InitializeResult().Instructions)
	return nil
}

// call makes one tool call and counts what the model wrote and read.
func (t *tally) call(ctx context.Context, session *mcp.ClientSession, name string, args map[string]any) (string, int, error) {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "", 0, err
	}
	var read strings.Builder
	for _, content := range result.Content {
		if block, ok := content.(*mcp.TextContent); ok {
			read.WriteString(block.Text)
		}
	}
	if result.IsError {
		return "", 0, fmt.Errorf("%s: %s", name, read.String())
	}
	written, err := json.Marshal(args)
	if err != nil {
		return "", 0, err
	}
	n := t.count(name+string(written)) + t.count(read.String())
	t.work += n
	return read.String(), n, nil
}

// heading is bold on a terminal.
func heading(format string, args ...any) {
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		format = "\x1b[1m" + format + "\x1b[0m"
	}
	fmt.Printf("\n== "+format+"\n", args...)
}

func show(args map[string]any, answer string) {
	for _, key := range []string{"query", "code"} {
		if text, ok := args[key].(string); ok {
			fmt.Println("> " + strings.ReplaceAll(text, "\n", "\n> "))
		}
	}
	fmt.Println(answer)
}
