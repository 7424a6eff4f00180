package spec

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

func (d *decoder) definition(n *yaml.Node, def *Definition) {
	def.namePos, def.Concurrency.Full = posOf(n), fullPolicies[0]
	seen := d.mapping(yamlstrict.Path{}, n, "a workflow", d.definitionKeys(def))
	if !seen["name"] && n.Kind == yaml.MappingNode {
		d.nameByFile(n, def)
	}
}

func (d *decoder) definitionKeys(def *Definition) []key {
	return []key{
		{name: "$schema", shape: textShape, doc: "the schema of definitions, for editors; has no effect", read: d.Text(new(string))},
		{name: "name", shape: nameShape, doc: "its name: a lower-case identifier; by default the file's name without extension", read: d.workflowName(def)},
		{name: "description", shape: wordsShape, doc: "what it does, for people and models", read: d.words(&def.Description)},
		{name: "expose", shape: boolShape, doc: "programs and other clients find and call it, as workflows.NAME; default false", read: d.bool(&def.Expose)},
		{name: "timeout", shape: spanShape, doc: "how long a run may take, without waits for people and times; default unlimited", read: d.span(&def.Timeout)},
		{name: "concurrency", shape: `{"anyOf":[` + countShape(1, maxRuns) + `,{"$ref":"#/$defs/concurrency"}]}`, doc: "how many runs may be active at once; a number is its limit", read: d.concurrency(&def.Concurrency)},
		{name: "env", shape: `{"type":"array","maxItems":256,"items":{"type":"string","pattern":"` + variablePattern + `"}}`, doc: "names of environment variables that expressions may read, as env.NAME; they are in the run's log", read: d.env(&def.Env)},
		{name: "inputs", shape: `{"$ref":"#/$defs/inputs"}`, doc: "the values that a run is started with, by name", read: inputDecoder{d}.inputs(&def.Inputs)},
		{name: "outputs", shape: `{"$ref":"#/$defs/outputs"}`, doc: "the values that a run ends with, by name", read: inputDecoder{d}.outputs(&def.Outputs)},
		{name: "on", shape: `{"$ref":"#/$defs/on"}`, doc: "what starts runs automatically", read: func(at yamlstrict.Path, n *yaml.Node) { d.mapping(at, n, `"on"`, d.triggerKeys(&def.On)) }},
		{name: "steps", shape: stepsShape, doc: "the steps of a run, in order", required: true, read: stepDecoder{d}.block(&def.Steps)},
	}
}

func (d *decoder) workflowName(def *Definition) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		var t Text
		d.name(&t, workflowName, `the name of a workflow: a-z, 0-9 and "_", first a letter, at most 64`)(at, n)
		def.Name, def.namePos = t.Text, posOf(n)
	}
}

// nameByFile sets the name from the file name.
func (d *decoder) nameByFile(n *yaml.Node, def *Definition) {
	base := filepath.Base(def.Path)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	if def.Name = base; workflowName.MatchString(base) {
		return
	}
	hint := `"name"`
	if fit := notInNames.ReplaceAllString(strings.ToLower(base), "_"); workflowName.MatchString(fit) {
		hint = fmt.Sprintf("%q", "name: "+fit)
	}
	d.Fail(yamlstrict.Path{"name"}, n, `the file's name cannot be the workflow's: a-z, 0-9 and "_", first a letter, at most 64; add %s`, hint)
}

// notInNames matches characters that are invalid in workflow names.
var notInNames = regexp.MustCompile(`[^a-z0-9_]+`)

const maxRuns = 10_000

var fullPolicies = []string{"queue", "refuse", "cancel"}

func (d *decoder) concurrency(c *Concurrency) yamlstrict.Reader {
	return shortForm(d.count(&c.Limit, 1, maxRuns), func(at yamlstrict.Path, n *yaml.Node) { d.mapping(at, n, `"concurrency"`, d.concurrencyKeys(c)) })
}

func (d *decoder) concurrencyKeys(c *Concurrency) []key {
	return []key{
		{name: "limit", shape: countShape(1, maxRuns), doc: "how many runs may be active at once", required: true, read: d.count(&c.Limit, 1, maxRuns)},
		{name: "full", shape: enumShape(fullPolicies...), doc: "what happens to another run: queue (default: it waits), refuse, or cancel (the oldest is canceled)", read: d.oneOf(&c.Full, fullPolicies...)},
	}
}

func (d *decoder) env(into *[]Text) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		d.Items(at, n, "a list of names of variables", func(at yamlstrict.Path, i int, item *yaml.Node) {
			var t Text
			d.name(&t, variable, `the name of a variable: letters, digits and "_", not first a digit`)(at, item)
			if slices.ContainsFunc(*into, func(other Text) bool { return other.Text == t.Text }) && !d.Bad(at) {
				d.Fail(at, item, "%.60q is listed twice", t.Text)
			}
			if i == MaxNames {
				d.Fail(at, item, "more than %d names", MaxNames)
			}
			*into = append(*into, t)
		})
	}
}

func (d *decoder) triggerKeys(on *Triggers) []key {
	return []key{
		{name: "schedule", shape: `{"type":"array","minItems":1,"maxItems":64,"items":{"$ref":"#/$defs/schedule"}}`, doc: "starts runs on a schedule", read: d.schedules(&on.Schedules)},
		{name: "webhook", shape: `{"$ref":"#/$defs/webhook"}`, doc: "starts a run for each signed request to /hooks/NAME", read: func(at yamlstrict.Path, n *yaml.Node) {
			on.Webhook = &Webhook{Pos: posOf(n), Scheme: schemes[0]}
			d.mapping(at, n, "a webhook", d.webhookKeys(on.Webhook))
		}},
	}
}

const maxSchedules = 64

func (d *decoder) schedules(into *[]Schedule) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if n.Kind == yaml.SequenceNode && (len(n.Content) == 0 || len(n.Content) > maxSchedules) {
			d.Fail(at, n, "%s has from 1 to %d items", label(at), maxSchedules)
			return
		}
		*into = yamlstrict.List(d.Decoder, at, n, d.schedule)
	}
}

func (d *decoder) schedule(at yamlstrict.Path, n *yaml.Node, s *Schedule) {
	s.Pos = posOf(n)
	seen := d.mapping(at, n, "a schedule", d.scheduleKeys(s))
	switch {
	case n.Kind != yaml.MappingNode || d.Bad(at.Unknown()):
	case seen["cron"] == seen["every"]:
		d.Fail(at, n, `a schedule has "cron" or "every", one of the two`)
	case seen["every"] && seen["zone"]:
		d.Fail(at.To("zone"), yamlstrict.ValueOf(n, "zone"), `"zone" needs "cron"`)
	}
}

func (d *decoder) scheduleKeys(s *Schedule) []key {
	return []key{
		{name: "cron", shape: `{"type":"string","minLength":1,"maxLength":100}`, doc: "minute hour day month weekday, or @hourly, @daily, @weekly, @monthly", read: d.line(&s.Cron, 100)},
		{name: "every", shape: spanShape, doc: "an interval of at least a second", read: d.spanFrom(&s.Every, time.Second)},
		{name: "zone", shape: `{"type":"string","minLength":1,"maxLength":100}`, doc: "the time zone of cron, as Europe/Berlin; default UTC", read: d.line(&s.Zone, 100)},
		{name: "with", shape: `{"type":"object"}`, doc: "the inputs; expressions may use env", read: d.variables(&s.With)},
	}
}

// line reads a non-empty text of limited length.
func (d *decoder) line(into *Text, most int) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		if !d.IsText(at, n) {
			return
		}
		if *into = d.textOf(n); n.Value == "" || len(n.Value) > most {
			d.Fail(at, n, "%s has from 1 to %d bytes", label(at), most)
		}
	}
}

var schemes = []string{"standard", "github"}

func (d *decoder) webhookKeys(w *Webhook) []key {
	return []key{
		{name: "secret", shape: idShape, doc: "the name of the secret that signs, under workflows.secrets in upstreams.yaml", required: true, read: d.name(&w.Secret, identifier, "the name of a secret: "+identifierRule)},
		{name: "scheme", shape: enumShape(schemes...), doc: "standard (Standard Webhooks, default) or github (X-Hub-Signature-256)", read: d.oneOf(&w.Scheme, schemes...)},
		{name: "with", shape: `{"type":"object"}`, doc: "the inputs; expressions may use request.body, request.headers and env; default: the body's members", read: func(at yamlstrict.Path, n *yaml.Node) {
			w.With = &Value{}
			d.variables(w.With)(at, n)
		}},
	}
}

// inputDecoder reads inputs and outputs.
type inputDecoder struct{ *decoder }

func (d inputDecoder) inputs(into *[]Input) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		d.members(at, n, "the name of an input", func(at yamlstrict.Path, name Text, value *yaml.Node) {
			in := Input{Name: name}
			d.input(at, value, &in)
			*into = append(*into, in)
		})
	}
}

func (d inputDecoder) input(at yamlstrict.Path, n *yaml.Node, in *Input) {
	schema, before := map[string]any{}, d.Faults()
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		var word string
		d.oneOf(&word, types...)(at, n)
		schema["type"] = word
	} else {
		d.mapping(at, n, "an input", slices.Concat(schemaDecoder(d).withKeywords(d.inputKeys(in), schema), schemaDecoder(d).references()))
		d.checkInput(at, n, in)
	}
	in.Description, _ = schema["description"].(string)
	in.Schema = schemaDecoder(d).compileSchema(at, n, schema, in.Default, before)
}

func (d inputDecoder) checkInput(at yamlstrict.Path, n *yaml.Node, in *Input) {
	if in.Optional && in.Default != nil {
		d.Fail(at.To("optional"), yamlstrict.ValueOf(n, "optional"), `an input with a "default" need not be "optional"`)
	}
}

func (d inputDecoder) inputKeys(in *Input) []key {
	return []key{
		{name: "prompt", shape: wordsShape, doc: "the question if it is missing; default: the description", read: d.words(&in.Prompt)},
		{name: "default", shape: valueShape, doc: "its value if it is missing; without one it is required", read: d.optionalValue(&in.Default)},
		{name: "optional", shape: boolShape, doc: "it may be missing, and is null then; default false", read: d.bool(&in.Optional)},
	}
}

func (d inputDecoder) outputs(into *[]Output) yamlstrict.Reader {
	return func(at yamlstrict.Path, n *yaml.Node) {
		d.members(at, n, "the name of an output", func(at yamlstrict.Path, name Text, value *yaml.Node) {
			out := Output{Name: name}
			d.output(at, value, &out)
			*into = append(*into, out)
		})
	}
}

func (d inputDecoder) output(at yamlstrict.Path, n *yaml.Node, out *Output) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		out.Value = d.value(at, n)
		return
	}
	schema, before := map[string]any{}, d.Faults()
	d.mapping(at, n, "an output", slices.Concat(schemaDecoder(d).withKeywords(d.outputKeys(out), schema), schemaDecoder(d).references()))
	out.Description, _ = schema["description"].(string)
	if len(schema) > 0 {
		var constant *Value
		if out.Value.Kind != None {
			constant = &out.Value
		}
		out.Schema = schemaDecoder(d).compileSchema(at, n, schema, constant, before)
	}
}

func (d inputDecoder) outputKeys(out *Output) []key {
	return []key{{name: "value", shape: valueShape, doc: "its value; expressions may use all of the workflow's own steps", required: true, read: d.any(&out.Value)}}
}
