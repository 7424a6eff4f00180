package ireval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// ErrNoData means that a set is not on this machine: the sets are not part of the project.
var ErrNoData = errors.New("no judged queries here")

// Entry is one tool of a set, as the gateway sees it.
type Entry struct {
	// Judged is the id that queries use.
	Judged string
	Tool   tool.Tool
	// Server is the upstream's name in the set, About its description.
	Server, About string
}

// Set is a pool of tools and the queries over it.
type Set struct {
	Name    string
	Entries []Entry
	Queries []Query
	judged  map[tool.ID]string
}

// JudgedID returns the id that queries use for a tool, "" if it is not in the set.
func (s *Set) JudgedID(id tool.ID) string { return s.judged[id] }

// row is one tool in a set's tools.jsonl, or in a tools/list answer.
type row struct {
	ID, Server, Name, Title, Description string
	Schema                               json.RawMessage `json:"input_schema"`
	Input                                json.RawMessage `json:"inputSchema"`
	Output                               json.RawMessage `json:"outputSchema"`
	Annotations                          tool.Annotations
	ServerTitle                          string `json:"server_title"`
	ServerAbout                          string `json:"server_description"`
}

// Names returns the sets that Read reads.
func Names() []string {
	return []string{"livemcp", "bfcl", "mcpproxygold", "metatool", "stabletoolbench"}
}

// Read reads one set of dir: its tools.jsonl and its queries.jsonl. The groups are
// set/kind, where the kinds of a set that has no names for what is asked are one, "pooled".
// It is [ErrNoData] if dir has no such set.
func Read(dir, name string) (*Set, error) {
	var rows []row
	if err := readLines(filepath.Join(dir, name, "tools.jsonl"), &rows); err != nil {
		return nil, err
	}
	s := &Set{Name: name}
	s.fill(rows)
	err := s.readQueries(filepath.Join(dir, name, "queries.jsonl"), func(q Query) string {
		switch q.Kind {
		case "step", "task", "route", "golden":
			return q.Kind
		}
		if group, _, ok := strings.Cut(q.Kind, "_"); ok && len(group) == 2 && group[0] == 'G' { // ToolBench's G1 to G3
			return group
		}
		return "pooled"
	})
	return s, err
}

// ReadCatalog reads tools/list answers, one file a server, as a pool of tools,
// and the queries over it from a file; the groups are catalog/style, or absent/catalog for queries of no style,
// which nothing in the catalogue fits. It is [ErrNoData] if dir has no catalogue, or if the file is missing.
func ReadCatalog(dir, queries string) (*Set, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%w: no catalogue in %s", ErrNoData, dir)
	}
	var rows []row
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var list struct{ Tools []row }
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		server := strings.TrimSuffix(filepath.Base(path), ".json")
		for _, r := range list.Tools {
			r.ID, r.Server, r.Schema = server+"."+r.Name, server, r.Input
			rows = append(rows, r)
		}
	}
	s := &Set{Name: "catalog"}
	s.fill(rows)
	err = s.readQueries(queries, func(q Query) string { return q.Style })
	for i := range s.Queries {
		if q := &s.Queries[i]; q.Style == "" {
			q.Group = "absent/catalog"
		}
	}
	return s, err
}

// fill makes entries of the rows: upstreams and tools get the ids that the
// gateway would give them.
func (s *Set) fill(rows []row) {
	wires := map[string][]string{}
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if r.Server == "" {
			r.Server = s.Name
		}
		if seen[r.Server+"\n"+r.Name] { // a server has one tool of a name, a pool may have several
			r.Name = r.ID
		}
		seen[r.Server+"\n"+r.Name] = true
		wires[r.Server] = append(wires[r.Server], r.Name)
	}
	names := map[string][]string{}
	for server, list := range wires {
		names[server] = tool.Identifiers(list)
	}
	s.judged = map[tool.ID]string{}
	for _, r := range rows {
		id := tool.ID{Upstream: tool.Identifier(r.Server), Name: names[r.Server][0]}
		names[r.Server] = names[r.Server][1:]
		s.judged[id] = r.ID
		s.Entries = append(s.Entries, Entry{
			Judged: r.ID, Server: r.Server, About: strings.TrimSpace(r.ServerTitle + "\n" + r.ServerAbout),
			Tool: tool.Tool{ID: id, Wire: r.Name, Title: r.Title, Description: r.Description,
				Input: r.Schema, Output: r.Output, Annotations: r.Annotations},
		})
	}
}

func (s *Set) readQueries(path string, kind func(Query) string) error {
	if err := readLines(path, &s.Queries); err != nil {
		return err
	}
	for i := range s.Queries {
		q := &s.Queries[i]
		q.Group, q.Tuned = s.Name+"/"+kind(*q), i%2 == 0
	}
	s.setApart()
	return nil
}

// setApart finds the validation queries that resemble no tuning query. The halves themselves are fixed: a new split
// by task would put queries that the weights were tuned on into validation.
func (s *Set) setApart() {
	tasks, golds := map[string]bool{}, map[string]bool{}
	for _, q := range s.Queries {
		if !q.Tuned {
			continue
		}
		tasks[q.Task] = q.Task != ""
		for _, gold := range q.Gold {
			golds[gold] = true
		}
	}
	for i := range s.Queries {
		q := &s.Queries[i]
		seen := tasks[q.Task] || slices.ContainsFunc(q.Gold, func(gold string) bool { return golds[gold] })
		q.Apart = !q.Tuned && !seen
	}
}

// Check returns errors in the judgements: unknown tool ids, duplicate queries.
func (s *Set) Check() []string {
	known := map[string]bool{}
	for _, e := range s.Entries {
		known[e.Judged] = true
	}
	var faults []string
	seen := map[string]string{}
	for _, q := range s.Queries {
		for _, key := range []string{q.ID, strings.ToLower(q.Text)} {
			if seen[key] != "" {
				faults = append(faults, fmt.Sprintf("%s: %q stands in %s too", q.ID, key, seen[key]))
			}
			seen[key] = q.ID
		}
		for _, id := range q.ids() {
			if !known[id] {
				faults = append(faults, fmt.Sprintf("%s: there is no tool %s", q.ID, id))
			}
		}
	}
	return faults
}

func (q Query) ids() []string {
	ids := append([]string{}, q.Gold...)
	for gold, alts := range q.Alts {
		ids = append(append(ids, gold), alts...)
	}
	return ids
}

func readLines[T any](path string, into *[]T) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNoData, path)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		*into = append(*into, one)
	}
	return lines.Err()
}
