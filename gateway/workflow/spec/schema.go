package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// section is a mapping of a definition: its name in the schema, its description, and its keys.
type section struct {
	name, doc string
	keys      []key
}

// sections returns all mappings with predefined keys, in the order of the reference.
func sections() (all []section) {
	d := &decoder{}
	all = []section{
		{"workflow", "A workflow.", d.definitionKeys(&Definition{})},
		{"concurrency", "How many runs may be active at once.", d.concurrencyKeys(&Concurrency{})},
		{"input", "An input, with all keywords of JSON Schema but references.", inputDecoder{d}.inputKeys(&Input{})},
		{"output", "An output, with all keywords of JSON Schema but references.", inputDecoder{d}.outputKeys(&Output{})},
		{"on", "What starts runs automatically.", d.triggerKeys(&Triggers{})},
		{"schedule", "A start on a schedule.", d.scheduleKeys(&Schedule{})},
		{"webhook", "A start by a signed request.", d.webhookKeys(&Webhook{})},
		{"step", "The keys of every step.", stepDecoder{d}.stepKeys(&Step{})},
	}
	for _, k := range kinds() {
		what := fmt.Sprintf("A step with %q", k.names[0])
		if len(k.names) > 1 {
			what += fmt.Sprintf(", or with %q", k.names[1])
		}
		all = append(all, section{"step_" + k.names[0], what + ".", k.keys(stepDecoder{d}, &Step{})})
	}
	return append(all, []section{
		{"retry", "When a step is retried.", stepDecoder{d}.retryKeys(&Retry{})},
		{"cache", "How long a step's output is kept for later runs.", stepDecoder{d}.cacheKeys(&Cache{})},
		{"case", "A case of a switch.", stepDecoder{d}.caseKeys(&Case{})},
		{"wait", "What is waited for: one of these.", stepDecoder{d}.waitingKeys(&Wait{})},
		{"approval", "A question to a person.", stepDecoder{d}.approvalKeys(&Approval{})},
		{"form", "A form.", formDecoder{d}.formPartKeys(&Form{})},
		{"field", "A field of a form.", formDecoder{d}.fieldKeys(&Field{})},
		{"source", "A tool that provides a value or options.", formDecoder{d}.sourceKeys(&Source{})},
	}...)
}

// Schema returns the JSON Schema (2020-12) of definitions, for editors. It is docs/workflow.schema.json.
func Schema() []byte {
	all := sections()
	defs := []string{
		member("identifier", `{"type":"string","pattern":`+quote(identifierPattern)+`,"not":{"enum":["in","true","false","null"]}}`),
		member("name", `{"type":"string","pattern":`+quote(namePattern)+`}`),
		member("function", `{"type":"string","pattern":`+quote(functionPattern)+`}`),
		member("duration", `{"type":"string","pattern":`+quote(durationPattern)+`,"description":"a number and a unit, like 30s, 1h30m or 7d; at most 366d"}`),
		member("expression", `{"type":"string","pattern":`+quote(wholePattern)+`,"description":"one ${{ expression }}"}`),
		member("type", `{"anyOf":[`+enumShape(types...)+`,{"type":"array","minItems":1,"uniqueItems":true,"items":`+enumShape(types...)+`}]}`),
		member("schema", `{"type":["object","boolean"],"properties":{`+properties(schemaDecoder{(&decoder{})}.keywords(map[string]any{}))+`},"additionalProperties":false}`),
		member("inputs", `{"type":"object","maxProperties":256,"propertyNames":`+idShape+`,"additionalProperties":{"anyOf":[`+enumShape(types...)+`,{"$ref":"#/$defs/input"}]}}`),
		member("outputs", `{"type":"object","maxProperties":256,"propertyNames":`+idShape+`,"additionalProperties":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/output"}]}}`),
		member("steps", `{"type":"array","minItems":1,"items":{"$ref":"#/$defs/any_step"}}`),
		member("steps_or_none", `{"type":"array","items":{"$ref":"#/$defs/any_step"}}`),
		member("any_step", `{"type":"object","oneOf":[`+strings.Join(kindRefs(), ",")+`]}`),
	}
	for _, s := range all[1:] {
		defs = append(defs, member(s.name, s.schema()))
	}
	text := `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"A workflow of Sallyport",` +
		strings.TrimPrefix(all[0].schema(), "{") // without its opening brace
	text = strings.TrimSuffix(text, "}") + `,"$defs":{` + strings.Join(defs, ",") + `}}`
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", "\t"); err != nil {
		return []byte(text)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func kindRefs() (refs []string) {
	for _, k := range kinds() {
		refs = append(refs, `{"$ref":"#/$defs/step_`+k.names[0]+`"}`)
	}
	return refs
}

// schema returns the JSON Schema of one mapping.
func (s section) schema() string {
	text := properties(s.keys)
	required := requiredOf(s.keys)
	rest := `,"additionalProperties":false`
	switch {
	case s.name == "input" || s.name == "output":
		text = properties(schemaDecoder{(&decoder{})}.withKeywords(s.keys, map[string]any{}))
	case strings.HasPrefix(s.name, "step_"):
		text = stepProperties() + "," + text
		required = append([]string{`"id"`}, required...)
		if s.has("file") {
			required, rest = []string{`"id"`}, `,"oneOf":[{"required":["code"]},{"required":["file"]}]`+rest
		}
		if s.has("try") {
			rest = `,"anyOf":[{"required":["catch"]},{"required":["finally"]}]` + rest
		}
	case s.name == "schedule":
		rest = `,"oneOf":[{"required":["cron"]},{"required":["every"]}]` + rest
	case s.name == "wait":
		rest = `,"minProperties":1,"maxProperties":1` + rest
	}
	if len(required) > 0 {
		rest = `,"required":[` + strings.Join(required, ",") + `]` + rest
	}
	return `{"type":"object","description":` + quote(s.doc) + `,"properties":{` + text + `}` + rest + `}`
}

func (s section) has(name string) bool {
	return slices.ContainsFunc(s.keys, func(k key) bool { return k.name == name })
}

// stepProperties returns the keys of every step, as references.
func stepProperties() string {
	var all []string
	for _, k := range (stepDecoder{(&decoder{})}).stepKeys(&Step{}) {
		all = append(all, member(k.name, `{"$ref":"#/$defs/step/properties/`+k.name+`"}`))
	}
	return strings.Join(all, ",")
}

func requiredOf(keys []key) (names []string) {
	for _, k := range keys {
		if k.required {
			names = append(names, quote(k.name))
		}
	}
	return names
}

// properties returns the schema properties for keys.
func properties(keys []key) string {
	var all []string
	for _, k := range keys {
		shape := strings.TrimPrefix(k.shape, "{")
		switch k.shape {
		case anyShape:
			shape = "}"
		case "{}":
			shape = "}"
		default:
			shape = "," + shape
		}
		all = append(all, member(k.name, `{"description":`+quote(k.doc)+shape))
	}
	return strings.Join(all, ",")
}
