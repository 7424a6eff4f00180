// Package corpus provides any number of tools for benchmarks, the same on every run: those of the catalogue of real
// servers and, if more are requested, variants with other names and words. Without a catalogue, all of them are
// synthetic.
package corpus

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"sallyport/internal/testutil/ireval"
	"sallyport/internal/tool"
)

// Source is what tools are made of, and what they are asked for by.
type Source struct {
	// Real says that the catalogue exists.
	Real bool
	// Queries are what is asked, in the order of their file.
	Queries []string
	base    []ireval.Entry
}

// Open reads the catalogue of a folder, which may be missing, and the queries of a file of JSON lines, which may not.
func Open(catalog, queries string) (*Source, error) {
	s := &Source{}
	var err error
	if s.Queries, err = readQueries(queries); err != nil {
		return nil, fmt.Errorf("read queries: %w", err)
	}
	set, err := ireval.ReadCatalog(catalog, queries)
	switch {
	case err == nil:
		s.Real, s.base = true, set.Entries
	case errors.Is(err, ireval.ErrNoData):
		s.base = syntheticEntries()
	default:
		return nil, err
	}
	for i := range s.base {
		t := &s.base[i].Tool
		if t.Input, err = compact(t.Input); err == nil {
			t.Output, err = compact(t.Output)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t.ID, err)
		}
	}
	return s, nil
}

func readQueries(path string) (texts []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return texts, lines.Err()
		}
		var one ireval.Query
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, err
		}
		texts = append(texts, one.Text)
	}
}

// compact is a schema without white space, as it is sent.
func compact(schema json.RawMessage) (json.RawMessage, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	err := json.Compact(&b, schema)
	return b.Bytes(), err
}

// Name says what the tools are.
func (s *Source) Name() string {
	if !s.Real {
		return "made up, there is no catalogue"
	}
	return fmt.Sprintf("a catalogue of %d tools of %d servers", len(s.base), len(ByServer(s.base)))
}

// Digest is the start of the SHA-256 of all definitions and queries.
func (s *Source) Digest() string {
	sum := sha256.New()
	for _, e := range s.base {
		sum.Write(append(Definition(e.Tool), e.Server...))
	}
	for _, text := range s.Queries {
		sum.Write([]byte(text))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Catalog is all tools as they are, without any that were made of them.
func (s *Source) Catalog() []ireval.Entry { return s.base }

// Tools returns n tools. Fewer than the catalogue has are taken from all over
// it. Of more the first are the catalogue's, then come rounds of the same in which
// one word in five of the names and descriptions, those of parameters too, is
// another of the catalogue's, as frequent ones as there are, and one in fifty a
// new one: so the vocabulary grows as that of real texts does.
func (s *Source) Tools(n int) []ireval.Entry {
	entries := make([]ireval.Entry, 0, n)
	for i := range min(n, len(s.base)) {
		entries = append(entries, s.base[i*max(len(s.base), n)/n])
	}
	if n <= len(s.base) {
		return entries
	}
	known := map[tool.ID]bool{}
	for _, e := range entries {
		known[e.Tool.ID] = true
	}
	v := newVariety(s.base)
	for i := len(s.base); len(entries) < n; i++ {
		e := s.base[i%len(s.base)]
		v.vary(&e, i/len(s.base))
		if !known[e.Tool.ID] { // two names may have become the same
			known[e.Tool.ID] = true
			entries = append(entries, e)
		}
	}
	return entries
}

// Definition is a tool as an upstream lists it.
func Definition(t tool.Tool) json.RawMessage {
	data, err := json.Marshal(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	}{t.Wire, t.Title, t.Description, t.Input, t.Output})
	if err != nil {
		panic(err) // Open has read these schemas
	}
	return data
}

// Server is a server and its tools.
type Server struct {
	Name  string
	Tools []ireval.Entry
}

// Deal distributes tools over n servers in turn, so that each has as many as the next, and renames the servers: s00,
// s01 .... Within a server, later tools of the same name are left out.
func Deal(entries []ireval.Entry, n int) []Server {
	servers := make([]Server, n)
	for i := range servers {
		servers[i].Name = fmt.Sprintf("s%02d", i)
		known := map[string]bool{}
		for _, e := range entries[i*len(entries)/n : (i+1)*len(entries)/n] {
			if !known[e.Tool.Wire] {
				known[e.Tool.Wire] = true
				servers[i].Tools = append(servers[i].Tools, e)
			}
		}
	}
	return servers
}

// ByServer puts tools together that are of one server, in the order in which servers come first.
func ByServer(entries []ireval.Entry) (servers []Server) {
	at := map[string]int{}
	for _, e := range entries {
		i, ok := at[e.Server]
		if !ok {
			i = len(servers)
			at[e.Server] = i
			servers = append(servers, Server{Name: e.Server})
		}
		servers[i].Tools = append(servers[i].Tools, e)
	}
	return servers
}

// List is the result of tools/list of a server.
func (s Server) List() json.RawMessage {
	var definitions []string
	for _, e := range s.Tools {
		definitions = append(definitions, string(Definition(e.Tool)))
	}
	return json.RawMessage(`{"tools":[` + strings.Join(definitions, ",") + `]}`)
}
