package spec

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// kind is a kind of step: the keys that identify it, and all keys that only such steps have.
type kind struct {
	names []string
	keys  func(d stepDecoder, s *Step) []key
}

// kinds returns the kinds in the order of the documentation.
func kinds() []kind {
	return []kind{
		{[]string{"tool"}, stepDecoder.toolKeys},
		{[]string{"code", "file"}, stepDecoder.codeKeys},
		{[]string{"skill"}, stepDecoder.skillKeys},
		{[]string{"plugin"}, stepDecoder.pluginKeys},
		{[]string{"task"}, stepDecoder.taskKeys},
		{[]string{"workflow"}, stepDecoder.nestedKeys},
		{[]string{"parallel"}, stepDecoder.parallelKeys},
		{[]string{"for_each"}, stepDecoder.forEachKeys},
		{[]string{"switch"}, stepDecoder.switchKeys},
		{[]string{"while"}, stepDecoder.whileKeys},
		{[]string{"wait"}, stepDecoder.waitKeys},
		{[]string{"form"}, func(d stepDecoder, s *Step) []key { return formDecoder(d).formKeys(s) }},
		{[]string{"try"}, stepDecoder.tryKeys},
	}
}

// kindNames returns all keys that identify a kind.
func kindNames() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.names...)
	}
	return names
}

// stepDecoder reads steps.
type stepDecoder struct{ *decoder }

// block reads a list of at least one step.
func (d stepDecoder) block(into *[]Step) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			d.Fail(at, n, "%s has no steps", label(at))
			return
		}
		d.blockOrNone(into)(at, n)
	}
}

// blockOrNone reads a list of steps; an empty one is not nil.
func (d stepDecoder) blockOrNone(into *[]Step) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if d.depth++; d.depth > MaxDepth {
			d.Fail(at, n, "steps nest at most %d deep; move these to a workflow of their own", MaxDepth)
			d.depth--
			return
		}
		defer func() { d.depth-- }()
		if *into = yamlstrict.List(d.Decoder, at, n, d.step); *into == nil {
			*into = []Step{}
		}
	}
}

func (d stepDecoder) step(at yamlstrict.Path, n *yaml.Node, s *Step) {
	s.Pos = posOf(n)
	if d.steps++; d.steps > MaxSteps {
		if d.steps == MaxSteps+1 {
			d.Fail(at, n, "a workflow has at most %d steps", MaxSteps)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		d.Fields(at, n, nil) // says so
		return
	}
	if k := d.kindOf(at, n); k != nil {
		d.mapping(at, d.dropForeignKeys(at, n, *k), "a step with "+strconv.Quote(k.names[0]), slices.Concat(d.stepKeys(s), k.keys(d, s)))
		d.checkStep(at, n, s)
	}
}

// checkStep checks combinations of keys.
func (d stepDecoder) checkStep(at yamlstrict.Path, n *yaml.Node, s *Step) {
	switch do := s.Do.(type) {
	case *ForEach:
		if do.As.Text == do.Index.Text {
			d.Fail(at, keyOf(n, "as"), "the item and its number are both called %q", do.As.Text)
		}
	case *Try:
		if do.Catch == nil && do.Finally == nil && !d.Bad(at.Unknown(), at.To("catch"), at.To("finally")) {
			d.Fail(at, n, `a step with "try" needs "catch" or "finally"`)
		}
	case *Code:
		if do.Language == "" {
			do.Language = "python"
		}
	}
}

// kindOf returns the kind of a step. It fails if there is none or several.
func (d stepDecoder) kindOf(at yamlstrict.Path, n *yaml.Node) *kind {
	var found *kind
	var first string
	for _, k := range kinds() {
		for _, name := range k.names {
			value := yamlstrict.ValueOf(n, name)
			switch {
			case value == nil:
			case found != nil:
				key := keyOf(n, name)
				d.Fail(at, key, "a step has one of %q and %q, not both", first, name)
				return nil
			default:
				found, first = &k, name
			}
		}
	}
	if found == nil {
		d.noKind(at, n)
	}
	return found
}

// noKind reports a step without a kind, with a suggestion.
func (d stepDecoder) noKind(at yamlstrict.Path, n *yaml.Node) {
	names := kindNames()
	for i := 0; i < len(n.Content); i += 2 {
		word := n.Content[i].Value
		if owners, known := d.owners[word]; known && owners == nil {
			continue
		}
		near := suggest.Of(word, names)
		if other := translateKey(word); slices.Contains(names, other) {
			near = other
		}
		if near != "" {
			d.Fail(at, n.Content[i], "unknown key %.40q; did you mean %q?", word, near)
			return
		}
	}
	d.Fail(at, n, "this step does nothing; a step has one of %s", strings.Join(names, ", "))
}

// dropForeignKeys reports keys of other kinds, and returns the step without them.
func (d stepDecoder) dropForeignKeys(at yamlstrict.Path, n *yaml.Node, own kind) *yaml.Node {
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		word := n.Content[i].Value
		if owners := d.owners[word]; owners != nil && !slices.Contains(owners, own.names[0]) {
			d.Fail(at.Unknown(), n.Content[i], "%q belongs to a step with %s, not to one with %q", word, strings.Join(owners, " or "), own.names[0])
			continue
		}
		rest.Content = append(rest.Content, n.Content[i], n.Content[i+1])
	}
	return &rest
}

// ownersOf returns the kinds that have a key, by key; nil for keys of every step.
func (d stepDecoder) ownersOf() map[string][]string {
	owners := map[string][]string{}
	for _, k := range kinds() {
		for _, key := range k.keys(d, &Step{}) {
			owners[key.name] = append(owners[key.name], k.names[0])
		}
	}
	for _, key := range d.stepKeys(&Step{}) {
		owners[key.name] = nil
	}
	return owners
}

func keyOf(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i]
		}
	}
	return n
}

var interruptRules = []string{"retry", "fail", "ask"}

// stepKeys returns the keys of every step.
func (d stepDecoder) stepKeys(s *Step) []key {
	return []key{
		{name: "id", shape: idShape, doc: "its name: steps.ID.output is its result", required: true, read: d.id(&s.ID)},
		{name: "description", shape: wordsShape, doc: "what it is for", read: d.words(&s.Description)},
		{name: "if", shape: exprShape, doc: "an expression; if it is false the step is skipped and its output is null", read: d.condition(&s.If)},
		{name: "retry", shape: `{"anyOf":[` + countShape(1, maxRetries) + `,{"$ref":"#/$defs/retry"}]}`, doc: "repeats it after failures; a number is its count", read: func(at yamlstrict.Path, n *yaml.Node) {
			s.Retry = &Retry{Wait: time.Second}
			shortForm(d.count(&s.Retry.Count, 1, maxRetries), func(at yamlstrict.Path, n *yaml.Node) { d.retry(at, n, s.Retry) })(at, n)
			if s.Retry.Max == 0 {
				s.Retry.Max = max(time.Minute, s.Retry.Wait)
			}
		}},
		{name: "timeout", shape: spanShape, doc: "how long one attempt may take, without waits for people and times; default unlimited", read: d.span(&s.Timeout)},
		{name: "cache", shape: `{"anyOf":[` + spanShape + `,{"$ref":"#/$defs/cache"}]}`, doc: "reuses the output of an earlier run; a duration is how long", read: func(at yamlstrict.Path, n *yaml.Node) {
			s.Cache = &Cache{}
			shortForm(d.span(&s.Cache.For), func(at yamlstrict.Path, n *yaml.Node) { d.mapping(at, n, `"cache"`, d.cacheKeys(s.Cache)) })(at, n)
		}},
		{name: "idempotency_key", shape: valueShape, doc: "a key for what is done once in all runs: the first output is reused for 30 days", read: d.optionalValue(&s.Idempotency)},
		{name: "interrupted", shape: enumShape(interruptRules...), doc: "what happens if the gateway was killed during it: retry, fail or ask; default: retry where that is safe, else ask", read: d.oneOf(&s.Interrupted, interruptRules...)},
		{name: "output", shape: valueShape, doc: "the value of steps.ID.output, computed from the step's result, which is output here", read: d.optionalValue(&s.Output)},
	}
}

// id reads a unique step id.
func (d stepDecoder) id(into *Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !d.IsText(at, n) || !d.isIdentifier(at, n, "the id of a step") {
			return
		}
		*into = d.textOf(n)
		if line := d.ids[n.Value]; line > 0 {
			d.Fail(at, n, "the step on line %d has the id %q already", line, n.Value)
			return
		}
		d.ids[n.Value] = n.Line
	}
}

const maxRetries = 100

func (d stepDecoder) retry(at yamlstrict.Path, n *yaml.Node, r *Retry) {
	d.mapping(at, n, `"retry"`, d.retryKeys(r))
	if r.Max != 0 && r.Max < r.Wait && !d.Bad(at.To("max"), at.To("wait")) {
		d.Fail(at, yamlstrict.ValueOf(n, "max"), `"max" is less than "wait"`)
	}
}

// errorKinds returns the error kinds that can be retried.
func errorKinds() (words []string) {
	for _, k := range []tool.Kind{tool.Timeout, tool.Upstream, tool.Limit, tool.Failed, tool.Internal, tool.NotFound, tool.Invalid, tool.Denied} {
		words = append(words, string(k))
	}
	return words
}

func (d stepDecoder) retryKeys(r *Retry) []key {
	on := enumShape(errorKinds()...)
	return []key{
		{name: "count", shape: countShape(1, maxRetries), doc: "the maximum number of retries", required: true, read: d.count(&r.Count, 1, maxRetries)},
		{name: "wait", shape: spanShape, doc: "the delay before the first retry, which doubles with each; default 1s", read: d.span(&r.Wait)},
		{name: "max", shape: spanShape, doc: "the maximum delay; default 1m", read: d.span(&r.Max)},
		{name: "on", shape: `{"type":"array","minItems":1,"maxItems":16,"items":` + on + `}`, doc: "the kinds of errors to retry; default timeout, upstream, limit", read: d.retryOn(&r.On)},
	}
}

func (d stepDecoder) retryOn(into *[]string) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || len(n.Content) > 16) {
			d.Fail(at, n, "%s names no error kinds, or too many", label(at))
			return
		}
		d.Items(at, n, "a list of kinds of errors", func(at yamlstrict.Path, _ int, item *yaml.Node) {
			var word string
			d.oneOf(&word, errorKinds()...)(at, item)
			*into = append(*into, word)
		})
	}
}

func (d stepDecoder) cacheKeys(c *Cache) []key {
	return []key{
		{name: "for", shape: spanShape, doc: "how long", required: true, read: d.span(&c.For)},
		{name: "key", shape: valueShape, doc: "the cache key; default: with, and the definition of the tool or the text of the code", read: d.optionalValue(&c.Key)},
	}
}

func (d stepDecoder) toolKeys(s *Step) []key {
	t := &Tool{}
	s.Do = t
	return d.toolCallKeys(t)
}

// toolCallKeys returns the keys of a tool call, for steps and for sources of fields.
func (d stepDecoder) toolCallKeys(t *Tool) []key {
	return []key{
		{name: "tool", shape: `{"$ref":"#/$defs/function"}`, doc: "the tool that it calls, as upstream.tool", required: true, read: d.name(&t.Name, function, "a tool; write upstream.tool, for example memory.read_graph")},
		{name: "with", shape: withShape, doc: "its arguments", read: d.arguments(&t.With)},
	}
}

func (d stepDecoder) skillKeys(s *Step) []key {
	t := &Skill{}
	s.Do = t
	return []key{
		{name: "skill", shape: `{"$ref":"#/$defs/function"}`, doc: "the function that it calls, as skill.function", required: true, read: d.name(&t.Name, function, "a function of a skill; write skill.function")},
		{name: "with", shape: withShape, doc: "its arguments", read: d.arguments(&t.With)},
	}
}

func (d stepDecoder) pluginKeys(s *Step) []key {
	t := &Plugin{}
	s.Do = t
	return []key{
		{name: "plugin", shape: `{"$ref":"#/$defs/function"}`, doc: "the step of a plugin that it calls, as plugin.step", required: true, read: d.name(&t.Name, function, "a step of a plugin; write plugin.step")},
		{name: "with", shape: withShape, doc: "its arguments", read: d.arguments(&t.With)},
	}
}

func (d stepDecoder) nestedKeys(s *Step) []key {
	t := &Nested{}
	s.Do = t
	return []key{
		{name: "workflow", shape: nameShape, doc: "the workflow that it runs within this run", required: true, read: d.name(&t.Name, workflowName, `the name of a workflow: a-z, 0-9 and "_", first a letter`)},
		{name: "with", shape: withShape, doc: "its inputs", read: d.arguments(&t.With)},
	}
}

var languages = []string{"python", "typescript"}

func (d stepDecoder) codeKeys(s *Step) []key {
	c := &Code{}
	s.Do = c
	return []key{
		{name: "code", shape: `{"type":"string","minLength":1}`, doc: "the program that it runs in a sandbox; what it leaves in result (Python) or exports (TypeScript) is the output", read: d.program(&c.Text)},
		{name: "file", shape: `{"type":"string","minLength":1,"maxLength":1024}`, doc: "instead of code: the program's file, below the definition's folder", read: d.file(c)},
		{name: "language", shape: enumShape(languages...), doc: "python or typescript; default by the file's name, else python", read: d.oneOf(&c.Language, languages...)},
		{name: "with", shape: `{"type":"object"}`, doc: "variables of the program", read: d.variables(&c.With)},
		{name: "workspace", shape: `{"type":"string","minLength":1,"maxLength":64}`, doc: "its working folder, as in execute_code", read: d.line(&c.Workspace, 64)},
		{name: "environment", shape: `{"type":"string","minLength":1,"maxLength":64}`, doc: "its packages, as in execute_code", read: d.line(&c.Environment, 64)},
		{name: "returns", shape: sub, doc: "the JSON Schema of the output; default any", read: schemaDecoder(d).jsonSchema(&c.Returns)},
	}
}

func (d stepDecoder) program(into *Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !d.IsText(at, n) {
			return
		}
		switch *into = d.textOf(n); {
		case strings.TrimSpace(n.Value) == "":
			d.Fail(at, n, "the program is empty")
		case len(n.Value) > MaxCode:
			d.Fail(at, n, "a program has at most 64 KiB")
		}
	}
}

// file reads the file of a program.
func (d stepDecoder) file(c *Code) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		var t Text
		if d.line(&t, 1024)(at, n); d.Bad(at) {
			return
		}
		c.File, c.Text = &t, Text{Pos: t.Pos}
		if c.Language == "" && path.Ext(t.Text) == ".ts" {
			c.Language = "typescript"
		}
		if wrong := d.readFile(t.Text, &c.Text.Text); wrong != "" {
			d.Fail(at, n, "%s", wrong)
		}
	}
}

// readFile reads a code file. It returns the problem with it, "" for none.
func (d stepDecoder) readFile(name string, into *string) string {
	if path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") || strings.Contains(name, `\`) {
		return "a file is a plain path below the definition's folder, as in code/names.py"
	}
	if d.files == nil {
		return "files cannot be read here; write the program out, as code"
	}
	data, err := d.files(name)
	switch {
	case err != nil:
		return fmt.Sprintf("the file %.80q cannot be read: %s", name, reason(err))
	case len(data) > MaxCode:
		return fmt.Sprintf("the file %.80q is longer than 64 KiB", name)
	case !utf8.Valid(data) || strings.TrimSpace(string(data)) == "":
		return fmt.Sprintf("the file %.80q is empty or not UTF-8", name)
	}
	if d.def.Files == nil {
		d.def.Files = map[string][]byte{}
	}
	d.def.Files[name], *into = data, string(data)
	return ""
}
