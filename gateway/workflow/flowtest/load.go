package flowtest

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"
)

// maxTests limits the tests of a file; maxStubs and maxCalls limit the stubs and expected calls of a test.
const maxTests, maxStubs, maxCalls = 1000, 10_000, 2000

// suffixes are the name suffixes of test files.
var suffixes = []string{"_test.yaml", "_test.yml", "_test.json"}

// defaultStart is the default start time of a run.
var defaultStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Load reads the test file at path. Errors in it are *yamlstrict.Error, joined.
func Load(path string) (*File, error) {
	data, err := yamlstrict.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// LoadDir reads all test files in a folder, sorted by name. It returns the errors of invalid files in faults. A
// missing folder has no files.
func LoadDir(dir string) (files []*File, faults []error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, []error{err}
	}
	for _, entry := range entries {
		if !IsTest(entry.Name()) {
			continue
		}
		file, err := Load(filepath.Join(dir, entry.Name()))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		files = append(files, file)
	}
	return files, faults
}

// IsTest reports whether a file name is that of a test file.
func IsTest(name string) bool { return base(name) != name }

// base returns the name of a test file without its suffix, other names unchanged.
func base(name string) string {
	for _, ending := range suffixes {
		if before, ok := strings.CutSuffix(name, ending); ok && before != "" {
			return before
		}
	}
	return name
}

// Parse parses a test file; path is for messages and for the workflow's name.
func Parse(path string, data []byte) (*File, error) {
	f := &File{Path: path, Workflow: base(filepath.Base(path)), src: yamlstrict.NewSource(path, data)}
	root, err := f.src.Document(`is empty; it needs "tests"`)
	if err != nil {
		return nil, err
	}
	r := reader{&yamlstrict.Decoder{Source: f.src}}
	r.file(root, f)
	if err := r.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// reader decodes the parts of a file.
type reader struct{ *yamlstrict.Decoder }

func (r reader) file(root *yaml.Node, f *File) {
	seen := r.Fields(yamlstrict.Path{}, root, []yamlstrict.Key{
		{Name: "workflow", Read: func(at yamlstrict.Path, n *yaml.Node) {
			f.nameNode = n
			r.Text(&f.Workflow)(at, n)
		}},
		{Name: "tests", Read: func(at yamlstrict.Path, n *yaml.Node) {
			f.Tests = yamlstrict.List(r.Decoder, at, n, r.test)
			if len(f.Tests) == 0 && !r.Bad(at) {
				r.Fail(at, n, "tests must have at least one test")
			} else if len(f.Tests) > maxTests {
				r.Fail(at, n, "tests has %d; a file has at most %d", len(f.Tests), maxTests)
			}
		}},
	})
	if !seen["tests"] && root.Kind == yaml.MappingNode {
		r.Fail(yamlstrict.Path{}, root, `the key "tests" is missing`)
	}
	r.checkNames(f.Tests)
}

// checkNames reports duplicate test names.
func (r reader) checkNames(tests []Test) {
	lines := map[string]int{}
	for _, t := range tests {
		if line := lines[t.Name]; line > 0 && t.Name != "" {
			r.Fail(yamlstrict.Path{"tests"}, t.node, "the test on line %d is also called %.40q", line, t.Name)
		}
		lines[t.Name] = t.Line
	}
}

func (r reader) test(at yamlstrict.Path, n *yaml.Node, t *Test) {
	t.node, t.Line, t.Started, t.Expect.Status = n, n.Line, defaultStart, "ok"
	clock := "skip"
	seen := r.Fields(at, n, []yamlstrict.Key{
		{Name: "name", Read: r.Text(&t.Name)},
		{Name: "inputs", Read: r.object(&t.Inputs)},
		{Name: "env", Read: r.env(&t.Env)},
		{Name: "started", Read: yamlstrict.Scalar(r.Decoder, &t.Started, instant)},
		{Name: "clock", Read: r.OneOf(&clock, "skip", "real")},
		{Name: "stubs", Read: func(at yamlstrict.Path, n *yaml.Node) {
			if t.Stubs = yamlstrict.List(r.Decoder, at, n, r.stub); len(t.Stubs) > maxStubs {
				r.Fail(at, n, "stubs has %d; a test has at most %d", len(t.Stubs), maxStubs)
			}
		}},
		{Name: "answers", Read: r.answers(&t.Answers)},
		{Name: "approvals", Read: r.approvals(&t.Approvals)},
		{Name: "expect", Read: r.expect(&t.Expect)},
	})
	t.Real = clock == "real"
	for _, key := range []string{"name", "expect"} {
		if !seen[key] && n.Kind == yaml.MappingNode {
			r.Fail(at, n, "a test has no %q", key)
		}
	}
}

func (r reader) stub(at yamlstrict.Path, n *yaml.Node, s *Stub) {
	s.node = n
	seen := r.Fields(at, n, []yamlstrict.Key{
		{Name: "tool", Read: r.tool(&s.Tool)},
		{Name: "with", Read: r.part(&s.with, yaml.MappingNode)},
		{Name: "step", Read: r.Text(&s.Step)},
		{Name: "result", Read: r.json(&s.Result)},
		{Name: "output", Read: func(at yamlstrict.Path, n *yaml.Node) {
			s.Final = true
			r.json(&s.Result)(at, n)
		}},
		{Name: "error", Read: func(at yamlstrict.Path, n *yaml.Node) {
			s.Error = &Fault{Kind: tool.Failed}
			r.fault(at, n, s.Error)
		}},
		{Name: "times", Read: yamlstrict.Scalar(r.Decoder, &s.Times, times)},
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	if wrong := wrongStub(seen); wrong != "" {
		r.Fail(at, n, "%s", wrong)
	}
}

// wrongStub returns the problem with the keys of a stub, "" for none.
func wrongStub(seen map[string]bool) string {
	comes := 0
	for _, key := range []string{"result", "output", "error"} {
		if seen[key] {
			comes++
		}
	}
	switch {
	case seen["tool"] == seen["step"]:
		return `a stub is for a "tool" or for a "step"`
	case seen["step"] && seen["with"]:
		return `"with" is for the stub of a tool; the stub of a step has only a path`
	case seen["step"] && seen["result"]:
		return `the stub of a step has an "output", not a "result"`
	case comes != 1 && seen["step"]:
		return `the stub of a step has an "output" or an "error"`
	case comes != 1:
		return `the stub of a tool has a "result", an "output" (of the step), or an "error"`
	}
	return ""
}

// kinds are the error kinds, see [tool.Kind].
var kinds = []string{"invalid", "not_found", "denied", "limit", "timeout", "canceled", "upstream", "failed", "internal"}

func (r reader) fault(at yamlstrict.Path, n *yaml.Node, f *Fault) {
	kind := string(f.Kind)
	r.Fields(at, n, []yamlstrict.Key{
		{Name: "kind", Read: r.OneOf(&kind, kinds...)},
		{Name: "message", Read: r.Text(&f.Message)},
	})
	f.Kind = tool.Kind(kind)
}

// expect reads the expectations of a run.
func (r reader) expect(e *Expect) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		order := "exact"
		seen := r.Fields(at, n, []yamlstrict.Key{
			{Name: "status", Read: r.OneOf(&e.Status, "ok", "failed")},
			{Name: "error", Read: r.failure(&e.failure)},
			{Name: "outputs", Read: r.part(&e.outputs, yaml.MappingNode)},
			{Name: "calls", Read: func(at yamlstrict.Path, n *yaml.Node) {
				e.checksCalls = true
				if e.calls = yamlstrict.List(r.Decoder, at, n, r.call); len(e.calls) > maxCalls {
					r.Fail(at, n, "calls has %d; a test names at most %d", len(e.calls), maxCalls)
				}
			}},
			{Name: "order", Read: r.OneOf(&order, "exact", "any")},
			{Name: "steps", Read: r.outcomes(&e.steps)},
		})
		e.AnyOrder = order == "any"
		switch {
		case seen["error"] && seen["status"] && e.Status == "ok":
			r.Fail(at, n, `a run with status "ok" has no "error"`)
		case seen["error"]:
			e.Status = "failed"
		case e.AnyOrder && !seen["calls"]:
			r.Fail(at, n, `"order" needs "calls"`)
		}
	}
}

func (r reader) failure(into **failure) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		f := &failure{}
		r.Fields(at, n, []yamlstrict.Key{
			{Name: "step", Read: r.part(&f.step, yaml.ScalarNode)},
			{Name: "kind", Read: func(at yamlstrict.Path, n *yaml.Node) {
				var kind string
				r.OneOf(&kind, kinds...)(at, n)
				f.kind = n
			}},
			{Name: "message", Read: r.part(&f.message, yaml.ScalarNode)},
		})
		*into = f
	}
}

func (r reader) call(at yamlstrict.Path, n *yaml.Node, c *call) {
	c.line = n.Line
	seen := r.Fields(at, n, []yamlstrict.Key{
		{Name: "tool", Read: r.tool(&c.tool)},
		{Name: "with", Read: r.part(&c.with, yaml.MappingNode)},
	})
	if !seen["tool"] && n.Kind == yaml.MappingNode {
		r.Fail(at, n, `a call has the name of a "tool"`)
	}
}

// outcomeWords are the outcomes that a step can be expected to have; never means that it does not run.
var outcomeWords = []string{"ok", "failed", "skipped", "cached", "canceled", "never"}

func (r reader) outcomes(into *[]outcome) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		r.Each(at, n, func(at yamlstrict.Path, key, value *yaml.Node) {
			o := outcome{path: key.Value, node: value}
			r.OneOf(&o.want, outcomeWords...)(at, value)
			*into = append(*into, o)
		})
	}
}

// toolName matches tool names: upstream.tool, or a protocol method in place of the tool.
var toolName = regexp.MustCompile(`^[A-Za-z_]\w*\.[A-Za-z_][\w/]*$`)

func (r reader) tool(into *string) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if r.Text(into)(at, n); !r.Bad(at) && !toolName.MatchString(*into) {
			r.Fail(at, n, "%.60q is not a tool name; write upstream.tool", *into)
		}
	}
}

func (r reader) env(into *map[string]string) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		*into = map[string]string{}
		r.Each(at, n, func(at yamlstrict.Path, key, value *yaml.Node) {
			var text string
			r.Text(&text)(at, value)
			(*into)[key.Value] = text
		})
	}
}

func (r reader) approvals(into *map[string]bool) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		*into = map[string]bool{}
		r.Each(at, n, func(at yamlstrict.Path, key, value *yaml.Node) {
			var word string
			r.OneOf(&word, "allow", "deny")(at, value)
			(*into)[key.Value] = word == "allow"
		})
	}
}

// instant reads a time.
func instant(n *yaml.Node) (time.Time, string) {
	t, err := time.Parse(time.RFC3339, n.Value)
	if err != nil {
		return t, "must be a time as 2026-01-31T08:00:00Z"
	}
	return t, ""
}

// times reads the maximum number of uses of a stub.
func times(n *yaml.Node) (int, string) {
	count, wrong := yamlstrict.Count(n)
	if wrong == "" && count == 0 {
		wrong = "must be at least 1"
	}
	return count, wrong
}
