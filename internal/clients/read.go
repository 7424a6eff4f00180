package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// Limits of a settings file. They are large, as some clients store their history in it.
const (
	maxFile  = 64 << 20
	maxSmall = 1 << 20 // TOML and YAML, which people write
	maxDepth = 500
)

// ErrSyntax reports that the file cannot be parsed.
var ErrSyntax = errors.New("cannot be read")

// Reader reads settings. It remembers which variables it has assigned, so that no
// variable is assigned to two secrets. It is not safe for concurrent use.
type Reader struct {
	system System
	naming *naming
}

// NewReader returns a reader without assigned variables.
func NewReader(p System) *Reader { return &Reader{system: p, naming: newNaming()} }

// sections are the parts of a file that concern servers.
type sections struct {
	doc     map[string]any
	found   bool // the key of the servers exists
	servers []rawServer
	inputs  map[string]input
	notes   []string
}

type rawServer struct {
	name   string
	at     []string
	fields map[string]any
}

// input is an input variable of VS Code.
type input struct {
	ID, Description, Default string
	Password                 bool
}

// Read returns the servers of a file, and notes about the file itself. What is
// wrong with the file is an error that shows nothing of its content.
func (r *Reader) Read(c Client, file string, data []byte) ([]Server, []string, error) {
	s, err := c.parse(data, r.system)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %w", file, err)
	}
	servers := make([]Server, 0, len(s.servers))
	lists := c.listsOf(r.system, file, s.doc)
	for _, raw := range s.servers {
		reading := &serverParser{Reader: r, client: c, project: c.projectDir(file, r.system), inputs: s.inputs, raw: raw, blocked: lists.blocks(raw)}
		servers = append(servers, reading.server())
	}
	r.naming.reads(servers)
	for i, server := range servers {
		servers[i] = server.named(r.naming.fresh(server))
		r.naming.take(servers[i])
	}
	return servers, s.notes, nil
}

func (c Client) parse(data []byte, p System) (sections, error) {
	doc, err := c.document(data)
	if err != nil {
		return sections{}, err
	}
	s := sections{doc: doc}
	s.take(doc, c.key)
	if c.Name == "claude-code" {
		s.takeProjects(doc, c.key, p.Dir)
	}
	s.inputs = inputsOf(doc["inputs"])
	return s, nil
}

// document reads data into plain maps, lists and scalars.
func (c Client) document(data []byte) (map[string]any, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxFile || c.format != jsonFormat && len(data) > maxSmall {
		return nil, fmt.Errorf("%w: it is too large", ErrSyntax)
	}
	doc := map[string]any{}
	if len(bytes.TrimSpace(data)) == 0 {
		return doc, nil
	}
	if tooDeep(data, c.format) {
		return nil, fmt.Errorf("%w: it is nested too deep", ErrSyntax)
	}
	var err error
	switch c.format {
	case jsonFormat:
		var plain []byte
		if plain, err = hujson.Standardize(append(bytes.Clone(data), '\n')); err == nil {
			dec := json.NewDecoder(bytes.NewReader(plain))
			dec.UseNumber()
			err = dec.Decode(&doc)
		}
	case tomlFormat:
		err = toml.Unmarshal(data, &doc)
	case yamlFormat:
		doc, err = yamlDoc(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it is not %s%s", ErrSyntax, c.format, placeOf(err))
	}
	return doc, nil
}

var lineInError = regexp.MustCompile(`line (\d+)`)

// placeOf returns the line of a parser's error. The rest of the error may quote a secret.
func placeOf(err error) string {
	if fault, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := fault.Position()
		return fmt.Sprintf(" (line %d)", line)
	}
	if m := lineInError.FindString(err.Error()); m != "" {
		return " (" + m + ")"
	}
	return ""
}

// tooDeep reports whether data is nested so deeply that parsing might overflow the
// stack. It skips strings and comments. The YAML parser has its own limit.
func tooDeep(data []byte, f format) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case f == yamlFormat:
			return false
		case b == '[' || b == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case b == ']' || b == '}':
			depth = max(0, depth-1)
		default:
			i = skipText(data, i, f)
		}
	}
	return false
}

// skipText returns the last byte of the string or comment that starts at i, or i.
func skipText(data []byte, i int, f format) int {
	rest := string(data[i:min(i+3, len(data))])
	switch {
	case f == jsonFormat && strings.HasPrefix(rest, "//"), f == tomlFormat && strings.HasPrefix(rest, "#"):
		return skipTo(data, i, "\n")
	case f == jsonFormat && strings.HasPrefix(rest, "/*"):
		return skipTo(data, i+2, "*/")
	case f == tomlFormat && rest == "'''":
		return skipTo(data, i+3, rest)
	case f == tomlFormat && rest == `"""`:
		return skipQuoted(data, i+3, rest)
	case f == tomlFormat && strings.HasPrefix(rest, "'"):
		return skipTo(data, i+1, "'")
	case strings.HasPrefix(rest, `"`):
		return skipQuoted(data, i+1, `"`)
	}
	return i
}

// skipQuoted is skipTo for a string with escapes.
func skipQuoted(data []byte, i int, end string) int {
	for ; i < len(data); i++ {
		if data[i] == '\\' {
			i++
		} else if bytes.HasPrefix(data[i:], []byte(end)) {
			return i + len(end) - 1
		}
	}
	return len(data)
}

func skipTo(data []byte, i int, end string) int {
	at := bytes.Index(data[min(i, len(data)):], []byte(end))
	if at < 0 {
		return len(data)
	}
	return i + at + len(end) - 1
}

// take reads the mapping of servers at keys.
func (s *sections) take(doc map[string]any, keys ...string) {
	for _, key := range keys[:len(keys)-1] {
		doc, _ = doc[key].(map[string]any)
	}
	value, there := doc[keys[len(keys)-1]]
	servers, ok := value.(map[string]any)
	s.found = s.found || ok
	if there && !ok && value != nil {
		s.notes = append(s.notes, fmt.Sprintf("%q holds no servers", keys[len(keys)-1]))
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		at := append(slices.Clone(keys), name)
		if fields, ok := servers[name].(map[string]any); ok {
			s.servers = append(s.servers, rawServer{name, at, fields})
			continue
		}
		s.notes = append(s.notes, fmt.Sprintf("%.80q is not a server", name))
	}
}

// takeProjects reads the servers that Claude Code stores for the project in dir.
func (s *sections) takeProjects(doc map[string]any, key, dir string) {
	projects, _ := doc["projects"].(map[string]any)
	others := 0
	for name, project := range projects {
		fields, _ := project.(map[string]any)
		servers, _ := fields[key].(map[string]any)
		switch {
		case len(servers) == 0:
		case name == dir:
			s.take(doc, "projects", name, key)
		default:
			others += len(servers)
		}
	}
	if others > 0 {
		s.notes = append(s.notes, fmt.Sprintf("%d of other projects were not looked at; run it in their folders", others))
	}
}

func inputsOf(value any) map[string]input {
	list, _ := value.([]any)
	inputs := map[string]input{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		var in input
		in.ID, _ = fields["id"].(string)
		in.Description, _ = fields["description"].(string)
		in.Default, _ = fields["default"].(string)
		in.Password, _ = fields["password"].(bool)
		if in.ID != "" {
			inputs[in.ID] = in
		}
	}
	return inputs
}

func stringsOf(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
