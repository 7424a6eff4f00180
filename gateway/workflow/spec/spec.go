// Package spec parses workflow definitions. Its main type is [Definition]. [Load] reads one from a file in
// YAML or JSON, strictly: anything unknown is an error with the line, a caret, and a suggestion.
// The package does not run workflows and does not know the available tools.
package spec

import "time"

// Pos is a position in a definition's file; line and column count from 1, columns in characters. The zero Pos is no position.
type Pos struct{ Line, Column int }

// Definition is one workflow. It must not be modified.
type Definition struct {
	// Path is the path given to Load; Dir is the absolute directory of the file, the base of relative paths in it.
	Path, Dir string
	// Source is the whole text; Files are the contents of the files that it names, by their paths in it; Digest is a SHA-256 of all, in hex.
	Source []byte
	Files  map[string][]byte
	Digest string

	// Name is a lower-case identifier (a-z, 0-9, "_"; at most 64), by default the file name without extension.
	Name        string
	Description string
	// Expose lets programs and other clients of the gateway find and call it.
	Expose bool
	// Timeout limits a run, without waits for people and times; 0 is none.
	Timeout time.Duration
	// Concurrency limits its concurrent runs.
	Concurrency Concurrency
	// Env are the environment variables that expressions may read, as env.NAME. Their values are in the run's log: none may be secret.
	Env []Text
	// Inputs and Outputs are in the order of the file.
	Inputs  []Input
	Outputs []Output
	On      Triggers
	Steps   []Step

	lines   *lines
	namePos Pos // position of the name, or of the start of the file
}

// Concurrency limits the concurrent runs of one workflow.
type Concurrency struct {
	// Limit is the maximum number of concurrent runs; 0 is unlimited.
	Limit int
	// Full is what happens to another run: queue (default: it waits), refuse, or cancel (the oldest is canceled).
	Full string
}

// Input is a value that a run is started with.
type Input struct {
	Name Text
	// Schema is its JSON Schema (draft 2020-12), without the additional keys.
	Schema []byte
	// Description is from the schema. Prompt is the question for a missing input; "" means the description.
	Description, Prompt string
	// Default is its value if it is missing; nil is none, and then it is required unless Optional (then it is null).
	Default  *Value
	Optional bool
}

// Output is a value that a run ends with.
type Output struct {
	Name        Text
	Description string
	// Schema is its JSON Schema; nil is any. A run fails if its output is invalid.
	Schema []byte
	Value  Value
}

// Triggers start runs automatically, in a serving gateway.
type Triggers struct {
	Schedules []Schedule
	Webhook   *Webhook
}

// Schedule starts runs on a schedule.
type Schedule struct {
	Pos
	// Cron has five fields (minute hour day month weekday) or one of @hourly, @daily, @weekly, @monthly; or Every is an interval of at least a second.
	Cron  Text
	Every time.Duration
	// Zone is the time zone of Cron, as in the IANA database; "" is UTC.
	Zone Text
	// With are the inputs; expressions may use env only.
	With Value
}

// Webhook starts a run for each signed request to /hooks/NAME. The inputs are the members of the body, a JSON object, unless With is set.
type Webhook struct {
	Pos
	// Secret is the name of the signing secret: an entry of workflows.secrets in upstreams.yaml.
	Secret Text
	// Scheme is standard (Standard Webhooks, https://www.standardwebhooks.com: default), or github (X-Hub-Signature-256).
	Scheme string
	// With, if set, are the inputs; expressions may use "request": {body, headers}, and env.
	With *Value
}

// Step is one step. Do is its action.
type Step struct {
	Pos
	// ID is an identifier (letters, digits, "_"; at most 64), unique in the definition.
	ID          Text
	Description string
	// If skips the step if it is false: its output is null then; nil runs it always. In fields that are one expression
	// (If, While, cases, rules), "${{" and "}}" may be left out, and are not in the Text.
	If *Text
	// Retry repeats it after failures; nil is never.
	Retry *Retry
	// Timeout limits one attempt, without waits for people and times; 0 is none.
	Timeout time.Duration
	// Cache reuses the output of an earlier run; nil is never.
	Cache *Cache
	// Idempotency is a key for an action that is done only once in all runs: the first successful output is reused
	// for 30 days. nil is none.
	Idempotency *Value
	// Interrupted says what happens if the gateway was killed during the step: retry, fail or ask (a person is asked whether
	// to repeat it). "" is retry for tools that declare themselves read-only or idempotent, and for code and skills, which can be resumed; else ask.
	Interrupted string
	// Output is the value of steps.ID.output, computed from the step's result, "output" in this expression. nil is the result itself.
	Output *Value
	Do     Action
}

// Retry says when a step is repeated.
type Retry struct {
	// Count is the maximum number of retries.
	Count int
	// Wait is the delay before the first retry; it doubles up to Max. Load sets the defaults: 1s and 1m.
	Wait, Max time.Duration
	// On are the error kinds ([sallyport/internal/tool.Kind]) that are retried; empty is timeout, upstream and limit.
	On []string
}

// Cache stores a step's output for later runs of the workflow.
type Cache struct {
	// For is the lifetime of an entry.
	For time.Duration
	// Key is the cache key; nil is the evaluated "with", and the definition of the tool or the text of the code.
	Key *Value
}

// Action is the action of a step: a pointer to one of the types below.
type Action interface{ action() }

// Tool calls a tool of an upstream.
type Tool struct {
	// Name is "upstream.tool".
	Name Text
	With Value
}

// Code runs a program in a sandbox. The output is the variable "result" (Python), or the last expression or "export default" (TypeScript), as in execute_code.
type Code struct {
	// Text is the program; File is its path below Dir if it is not inline, which Load reads into Text.
	Text Text
	File *Text
	// Language is python (default) or typescript.
	Language string
	// With are variables of the program.
	With Value
	// Workspace and Environment are as in execute_code; an empty text is the default one.
	Workspace, Environment Text
	// Returns is the JSON Schema of the output; nil is any.
	Returns []byte
}

// Skill calls a function of a skill in a sandbox.
type Skill struct {
	// Name is "skill.function".
	Name Text
	With Value
}

// Plugin calls a step of a plugin.
type Plugin struct {
	// Name is "plugin.step".
	Name Text
	With Value
}

// Task does a task in words: a language model, or rules, write programs for it until it has an answer.
type Task struct {
	// Words say what is to be done. With are facts for it, by name.
	Words Value
	With  Value
	// Returns is the JSON Schema of the output.
	Returns []byte
	// Only are the upstreams that its programs may call; none means all. Model is a name of models in upstreams.yaml, "" the default one.
	Only  []Text
	Model Text
}

// Nested runs another workflow within the run.
type Nested struct {
	Name Text
	With Value
}

// Parallel runs branches concurrently. Its result is a map of the branches' results; when one fails, the others are canceled.
type Parallel struct{ Branches []Branch }

// Branch is a branch of Parallel.
type Branch struct {
	Name  Text
	Steps []Step
}

// ForEach runs its steps for each item of a list. Its result is the list of their results; when one fails, the others are canceled.
type ForEach struct {
	// In evaluates to a list.
	In Value
	// As is the variable for the item, "item" by default; Index the variable for its index, from 0, "index" by default.
	As, Index Text
	// Concurrency is the number of concurrent items; 1 by default, at most 64.
	Concurrency int
	Steps       []Step
}

// Switch runs the steps of the first case that is true, else those of Default; its result is theirs, null for none.
type Switch struct {
	Cases   []Case
	Default []Step
}

// Case is a case of Switch.
type Case struct {
	When  Text
	Steps []Step
}

// While repeats its steps while When is true. More than Max iterations are an error. "index" counts from 0, "last" is the previous result, null at first.
type While struct {
	When  Text
	Max   int
	Steps []Step
}

// Wait waits, for a time (For, a duration), until a time (Until, RFC 3339), or for a person. Exactly one is set.
type Wait struct {
	For, Until *Value
	Approval   *Approval
}

// Approval asks a person for approval. The result is {"approved": true, "by", "note"}; a refusal fails the step with kind denied.
type Approval struct {
	Message Value
	// Timeout is how long it can be answered, after which the step fails with kind timeout; default 24h.
	Timeout time.Duration
}

// Form asks a person for missing values. Its result is an object of all fields that apply.
type Form struct {
	Title Value
	// Timeout is how long it can be answered; default 24h.
	Timeout time.Duration
	Fields  []Field
}

// Field is one field of a form.
type Field struct {
	Name Text
	// Type is string (default), text (of several lines), integer, number, boolean, date, datetime, email, uri, choice (one of Options) or choices (several of them).
	Type        string
	Title       string
	Description string
	Required    bool // default true
	// If leaves the field out if it is false; it may use "form", the earlier fields. nil is always.
	If *Text
	// From provides a value before a person is asked: an expression over inputs, steps and "form", or a tool; null and "" are no value.
	From *Source
	// Confirm asks a person even if From has a value, with that value filled in; else it is used without a question.
	Confirm bool
	// Default is filled in when a person is asked.
	Default *Value
	// Options are the options of choice and choices: a list of texts or numbers, or of {value, title}; or from a tool.
	Options *Source
	// Pattern (RE2), Min and Max (numbers, or dates as texts), MinLength and MaxLength (characters or choices) limit a value.
	Pattern              *Text
	Min, Max             *Value
	MinLength, MaxLength int // 0 is unbounded
	// Rule must be true for the fields up to this one ("form") and its "value"; Message is the error if it or Pattern does not match.
	Rule    *Text
	Message string
}

// Source provides values: Value or Tool is set.
type Source struct {
	Value *Value
	// Tool is called once when the field is reached, and Output (over "output") picks from its result; nil is all of it.
	Tool   *Tool
	Output *Value
}

// Try runs steps; when one fails, Catch runs with the error as As ("error" by default: {kind, message, hint, step}), and its result is used instead; Finally always runs at the end, also after a cancellation.
type Try struct {
	Steps   []Step
	Catch   []Step // nil: the failure is not handled
	As      Text
	Finally []Step
}

func (*Tool) action()     {}
func (*Code) action()     {}
func (*Skill) action()    {}
func (*Plugin) action()   {}
func (*Task) action()     {}
func (*Nested) action()   {}
func (*Parallel) action() {}
func (*ForEach) action()  {}
func (*Switch) action()   {}
func (*While) action()    {}
func (*Wait) action()     {}
func (*Form) action()     {}
func (*Try) action()      {}

// Value is a JSON value of a definition. Its texts may contain expressions, as ${{ EXPRESSION }}: a text that is only one expression
// has the value of that expression, in others they are inserted as texts. "$${{" is a literal "${{".
type Value struct {
	Pos
	Kind Kind
	// Scalar is the value of Null, Bool and Number: nil, bool, int64 or float64.
	Scalar any
	// Text is the value of String.
	Text Text
	// Items are the items of List, Members the members of Map, in file order.
	Items   []Value
	Members []Member
}

// Kind is the kind of a value.
type Kind uint8

// The kinds. The zero Kind is a missing value.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	List
	Map
)

// Member is one member of a map.
type Member struct {
	Name  Text
	Value Value
}

// Text is a text of a definition with its position.
type Text struct {
	Pos
	Text string

	place place
}

// At returns the position of a byte of the text in the file.
func (t Text) At(offset int) Pos { return t.place.at(t.Pos, offset) }

func (t Text) String() string { return t.Text }
