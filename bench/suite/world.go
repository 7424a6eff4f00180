package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// World is a folder with everything that tasks are about. It has no clock: it is the same on every machine, and each time.
type World struct {
	*Data
	// Dir holds files/, the folder that the filesystem server may touch, with files/repo,
	// a git repository; shop.db and memory.jsonl. Its path is read by models, so its length counts.
	Dir string
	// Modules is the node_modules with the pinned servers.
	Modules string
}

// NewWorld says where a world is to be; [World.Reset] makes it. Paths are made absolute.
func NewWorld(dir, modules string) (*World, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	modules, err = filepath.Abs(modules)
	return &World{Data: NewData(), Dir: dir, Modules: modules}, err
}

// Files is the folder that the filesystem server may touch.
func (w *World) Files() string { return filepath.Join(w.Dir, "files") }

// Repo is the git repository.
func (w *World) Repo() string { return filepath.Join(w.Files(), "repo") }

// Database is the file of the sqlite server.
func (w *World) Database() string { return filepath.Join(w.Dir, "shop.db") }

// Memory is the file of the memory server.
func (w *World) Memory() string { return filepath.Join(w.Dir, "memory.jsonl") }

// Expand puts the world's paths in place of {files} and {repo}.
func (w *World) Expand(text string) string {
	return strings.NewReplacer("{files}", w.Files(), "{repo}", w.Repo()).Replace(text)
}

// Server is how one of the upstreams is started.
type Server struct {
	Name, Description string
	// Package and Version are those of npm.
	Package, Version string
	Command          string
	Args             []string
	// Env is added to the environment.
	Env map[string]string
}

// Reset makes the world as it is at the beginning, whatever was there. No server may be using it.
func (w *World) Reset() error {
	if err := os.RemoveAll(w.Dir); err != nil {
		return fmt.Errorf("clear world: %w", err)
	}
	for _, dir := range []string{"orders", "logs", "notes", "config", "out"} {
		if err := os.MkdirAll(filepath.Join(w.Files(), dir), 0o700); err != nil {
			return err
		}
	}
	for _, make := range []func() error{w.makeFiles, w.makeMemory, w.makeDatabase, w.makeRepo} {
		if err := make(); err != nil {
			return fmt.Errorf("make world: %w", err)
		}
	}
	return nil
}

func (w *World) makeFiles() error {
	texts := map[string]*strings.Builder{}
	in := func(name string) *strings.Builder {
		if texts[name] == nil {
			texts[name] = &strings.Builder{}
		}
		return texts[name]
	}
	for _, o := range w.Orders {
		b := in(o.Day.Format("orders/2006-01.csv"))
		if b.Len() == 0 {
			b.WriteString("order_id,date,customer_id,sku,quantity,unit_price\n")
		}
		fmt.Fprintf(b, "%d,%s,%d,%s,%d,%s\n", o.ID, o.Day.Format(time.DateOnly), o.Customer, o.SKU, o.Quantity, Money(o.Cents))
	}
	for _, r := range w.Requests {
		fmt.Fprintf(in(fmt.Sprintf("logs/app-%d.log", r.File)), "%s %-5s %s %s %d %dms\n", r.At.Format(time.RFC3339), r.Level, r.ID, r.Path, r.Status, r.Millis)
	}
	for _, n := range w.Notes {
		b := in("notes/" + n.Name + ".md")
		fmt.Fprintf(b, "# %s\n\n", n.Title)
		for _, item := range n.Todo {
			fmt.Fprintf(b, "- [ ] %s\n", item)
		}
		for _, item := range n.Done {
			fmt.Fprintf(b, "- [x] %s\n", item)
		}
	}
	goods, err := json.MarshalIndent(w.Products, "", "  ")
	if err != nil {
		return err
	}
	in("products.json").Write(goods)
	for name, text := range settings {
		in("config/" + name).WriteString(text)
	}
	in("pairs.csv").WriteString("a,b\n")
	for _, p := range w.Pairs {
		fmt.Fprintf(in("pairs.csv"), "%d,%d\n", p[0], p[1])
	}
	in("hours.txt").WriteString("Open Monday to Friday, 08:30 to 17:45. Closed on 8 September.\n")
	errs := make([]error, 0, len(texts))
	for name, text := range texts {
		errs = append(errs, os.WriteFile(filepath.Join(w.Files(), name), []byte(text.String()), 0o600))
	}
	return errors.Join(errs...)
}

// settings are in config/.
var settings = map[string]string{
	"service.json":        "{\n  \"name\": \"shop\",\n  \"port\": 8443,\n  \"retries\": 3,\n  \"timeout_ms\": 2500,\n  \"regions\": [\"eu-south\", \"eu-west\"]\n}\n",
	"pay-production.json": "{\n  \"name\": \"pay\",\n  \"port\": 8444,\n  \"retries\": 5,\n  \"timeout_ms\": 2500,\n  \"pool\": 32,\n  \"sandbox\": false\n}\n",
	"pay-staging.json":    "{\n  \"name\": \"pay\",\n  \"port\": 8444,\n  \"retries\": 2,\n  \"timeout_ms\": 2500,\n  \"pool\": 4,\n  \"sandbox\": true,\n  \"trace\": true\n}\n",
	"worker.json":         "{\n  \"name\": \"worker\",\n  \"queue\": \"orders\",\n  \"batch\": 50,\n  \"timeout_ms\": 900\n}\n",
}

// Money writes cents with two decimals.
func Money(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// makeMemory writes what the memory server keeps: a line of JSON for each entity and relation.
func (w *World) makeMemory() error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	entity := func(name, kind string, notes ...string) {
		_ = lines.Encode(map[string]any{"type": "entity", "name": name, "entityType": kind, "observations": notes})
	}
	relation := func(from, kind, to string) {
		_ = lines.Encode(map[string]any{"type": "relation", "from": from, "to": to, "relationType": kind})
	}
	for _, p := range w.People {
		entity(p.Name, "person", "lives in "+p.City, "is in team "+p.Team)
	}
	for _, s := range w.Services {
		entity(s.Name, "service", "owned by "+s.Team, fmt.Sprintf("tier %d", s.Tier))
	}
	for _, s := range w.Services {
		relation(s.Name, "on_call", s.OnCall)
		for _, needed := range s.Needs {
			relation(s.Name, "depends_on", needed)
		}
	}
	return os.WriteFile(w.Memory(), b.Bytes(), 0o600)
}

// makeDatabase has the library that the sqlite server uses make its file.
func (w *World) makeDatabase() error {
	var b strings.Builder
	b.WriteString("BEGIN;\nCREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, segment TEXT);\n" +
		"CREATE TABLE payments (order_id INTEGER PRIMARY KEY, amount REAL, paid_on TEXT);\n" +
		"CREATE TABLE tickets (id INTEGER PRIMARY KEY, customer_id INTEGER, opened TEXT, status TEXT, priority TEXT, subject TEXT, assignee TEXT);\n")
	for _, c := range w.Customers {
		fmt.Fprintf(&b, "INSERT INTO customers VALUES (%d, '%s', '%s', '%s');\n", c.ID, c.Name, c.City, c.Segment)
	}
	for _, p := range w.Payments {
		fmt.Fprintf(&b, "INSERT INTO payments VALUES (%d, %s, '%s');\n", p.Order, Money(p.Cents), p.Day.Format(time.DateOnly))
	}
	for _, t := range w.Tickets {
		fmt.Fprintf(&b, "INSERT INTO tickets VALUES (%d, %d, '%s', '%s', '%s', '%s', '%s');\n", t.ID, t.Customer, t.Opened.Format(time.DateOnly), t.Status, t.Priority, t.Subject, t.Assignee)
	}
	b.WriteString("COMMIT;\n")
	script := "const Database = require(process.argv[1]); const db = new Database(process.argv[2]); db.exec(require('fs').readFileSync(0, 'utf8')); db.close()"
	_, err := run(b.String(), "node", "-e", script, filepath.Join(w.Modules, "better-sqlite3"), w.Database())
	return err
}

// makeRepo makes the repository with git's own importer, so that hashes are always the same.
func (w *World) makeRepo() error {
	var b strings.Builder
	text := map[string]string{}
	for _, c := range w.Commits {
		text[c.File] += c.Subject + "\n"
		message, body := c.Subject+"\n", text[c.File]
		fmt.Fprintf(&b, "commit refs/heads/main\ncommitter %s <%s@example.com> %d +0000\ndata %d\n%s", c.Author, strings.ToLower(strings.Fields(c.Author)[0]), c.At.Unix(), len(message), message)
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", c.File, len(body), body)
	}
	if err := os.MkdirAll(w.Repo(), 0o700); err != nil {
		return err
	}
	for _, step := range []struct {
		input string
		args  []string
	}{
		{"", []string{"init", "--quiet", "--initial-branch=main"}},
		{"", []string{"config", "core.logAllRefUpdates", "false"}}, // a log of refs would have the time of today
		{b.String(), []string{"fast-import", "--quiet"}},
		{"", []string{"checkout", "--quiet", "--force", "main"}},
	} {
		if _, err := w.git(step.input, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// git runs git in the repository, without the settings of anyone who runs it.
func (w *World) git(input string, args ...string) (string, error) {
	return run(input, "git", append([]string{"-C", w.Repo()}, args...)...)
}

// run runs a command with an input, and returns what it prints. What it complains of is in the error.
func run(input, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	// Below a git hook GIT_DIR names another repository, which is not to be touched.
	command.Env = slices.DeleteFunc(os.Environ(), func(set string) bool { return strings.HasPrefix(set, "GIT_") })
	command.Env = append(command.Env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	command.Stdin, command.Stderr = strings.NewReader(input), &complaint
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w: %s", name, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
