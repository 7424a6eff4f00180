// Command demo shows Sallyport on real input: an MCP client starts `sallyport serve`, searches, and runs one Python
// and one TypeScript program, each using two real upstreams. It prints what a model would have seen, counts the
// tokens, and then does the same work by direct tool calls against the same upstreams, for comparison.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/tokens"
)

func main() {
	sallyport := flag.String("sallyport", ".cache/bin/sallyport", "the sallyport binary")
	modules := flag.String("upstreams", "tools/upstreams/node_modules", "the folder with the npm upstreams")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := run(ctx, *sallyport, *modules); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sallyport, modules string) error {
	counter, err := tokens.O200k()
	if err != nil {
		return err
	}
	stage, err := newEnvironment(modules)
	if err != nil {
		return err
	}
	defer stage.close()
	coded, err := throughSallyport(ctx, sallyport, stage, counter)
	if err != nil {
		return fmt.Errorf("through sallyport: %w", err)
	}
	if err := stage.resetMemory(); err != nil {
		return err
	}
	direct, err := directly(ctx, stage, counter)
	if err != nil {
		return fmt.Errorf("by direct tool calls: %w", err)
	}
	compare(coded, direct)
	return nil
}

// environment is the environment of the demo: a folder of orders, three upstreams, and a settings file that names them.
type environment struct {
	dir, orders, memory, config string
	upstreams                   []server
}

// server is one npm upstream.
type server struct {
	name, about, script string
	args, env           []string
}

const months, rows = 12, 60

func newEnvironment(modules string) (*environment, error) {
	modules, err := filepath.Abs(modules)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sallyport-demo-")
	if err != nil {
		return nil, err
	}
	s := &environment{dir: dir, orders: filepath.Join(dir, "orders"), memory: filepath.Join(dir, "memory.jsonl"), config: filepath.Join(dir, "upstreams.yaml")}
	script := func(name string) string {
		return filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	s.upstreams = []server{
		{name: "everything", about: "arithmetic and echo, for tests", script: script("everything"), args: []string{"stdio"}},
		{name: "filesystem", about: "read and write files in a folder", script: script("filesystem"), args: []string{s.orders}},
		{name: "memory", about: "a knowledge graph that lasts", script: script("memory"), env: []string{"MEMORY_FILE_PATH=" + s.memory}},
	}
	return s, s.write()
}

func (s *environment) write() error {
	if err := os.Mkdir(s.orders, 0o700); err != nil {
		return err
	}
	for month := range months {
		name := filepath.Join(s.orders, fmt.Sprintf("2026-%02d.csv", month+1))
		if err := os.WriteFile(name, orders(month), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(s.config, s.settings(), 0o600)
}

// orders makes one month of orders, always the same.
func orders(month int) []byte {
	customers := []string{"Abela", "Borg", "Camilleri", "Debono", "Ellul", "Farrugia", "Grech"}
	text := []byte("date,customer,item,amount\n")
	for row := range rows {
		n := month*rows + row
		text = fmt.Appendf(text, "2026-%02d-%02d,%s,item-%03d,%d.%02d\n", month+1, row%28+1, customers[(n*n+n/7)%len(customers)], n*37%500, 10+n*7%90, n*13%100)
	}
	return text
}

func (s *environment) settings() []byte {
	text := []byte("upstreams:\n")
	for _, up := range s.upstreams {
		text = fmt.Appendf(text, "  %s:\n    description: %q\n    command: node\n    args: [%q", up.name, up.about, up.script)
		for _, arg := range up.args {
			text = fmt.Appendf(text, ", %q", arg)
		}
		text = append(text, "]\n"...)
		for _, pair := range up.env {
			name, value, _ := strings.Cut(pair, "=")
			text = fmt.Appendf(text, "    env: {%s: %q}\n", name, value)
		}
	}
	return text
}

func (s *environment) resetMemory() error {
	if err := os.Remove(s.memory); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

func (s *environment) close() { _ = os.RemoveAll(s.dir) }
