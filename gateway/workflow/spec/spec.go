// Package spec is what a workflow's definition says: its main type is [Definition]. [Load] reads one from a file, in
// YAML or JSON, strictly: whatever is not understood is an error with the line, a caret, and what was probably meant.
// Nothing here runs anything, or knows which tools there are.
package spec

import "time"

// Pos is a place in a definition's file; line and column count from 1, columns in characters. The zero Pos is no place.
type Pos struct{ Line, Column int }

// Definition is one workflow. Who reads it must not change it.
type Definition struct {
	// Path is the file, as it was given to Load; Dir its absolute directory, where relative paths in it start.
	Path, Dir string
	// Source is the whole text; Files are those that it names, by their paths in it, as they were read; Digest is a SHA-256 of all, in hex.
	Source []byte
	Files  map[string][]byte
	Digest string

	// Name is a lower-case identifier (a-z, 0-9, "_"; at most 64), by default that of the file without its ending.
	Name        string
	Description string
	// Expose lets programs and other clients of the gateway find and call it.
	Expose bool
	// Timeout bounds a run, without what it waits for people and clocks; 0 is none.
	Timeout time.Duration
	// Concurrency bounds its runs at once.
	Concurrency Concurrency
	// Env are the environment variables that expressions may read, as env.NAME. Their values are in the run's log: none may be secret.
	Env []Text
	// Inputs and Outputs are in the order of the file.
	Inputs  []Input
	Outputs []Output
	On      Triggers
	Steps   []Step

	lines *lines
	named Pos // where the name stands, or the file begins
}

// Concurrency bounds the runs of one workflow.
type Concurrency struct {
	// Limit is how many may go on at once; 0 is any number.
	Limit int
	// Full is what becomes of one more: queue (default: it waits for its turn), refuse, or cancel (the oldest makes room).
	Full string
}

// Input is a value that a run is started with.
type Input struct {
	Name Text
	// Schema is its JSON Schema (draft 2020-12), without the keys that are ours.
	Schema []byte
	// Description is the schema's. Prompt is the question for a missing input, "" is the description.
	Description, Prompt string
	// Default is its value where it is not given; nil is none, and then it is required unless Optional (it is null then).
	Default  *Value
	Optional bool
}

// Output is a value that a run ends with.
type Output struct {
	Name        Text
	Description string
	// Schema is its JSON Schema; nil is any. A run fails if its output does not fit.
	Schema []byte
	Value  Value
}

// Triggers start runs by themselves, in a gateway that serves.
type Triggers struct {
	Schedules []Schedule
	Webhook   *Webhook
}

// Schedule starts runs by the clock.
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

// Webhook starts a run for each request to /hooks/NAME that is signed. The inputs are the body's members, an object in JSON, unless With says otherwise.
type Webhook struct {
	Pos
	// Secret names the secret that signs: an entry of workflows.secrets in upstreams.yaml.
	Secret Text
	// Scheme is standard (Standard Webhooks, https://www.standardwebhooks.com: default), or github (X-Hub-Signature-256).
	Scheme string
	// With, where it is set, are the inputs; expressions may use "request": {body, headers}, and env.
	With *Value
}

// Step is one step. Do says which kind it is.
type Step struct {
	Pos
	// ID is an identifier (letters, digits, "_"; at most 64), unique in the definition.
	ID          Text
	Description string
	// If skips the step where it is false: its output is null then; nil is always. Where the text of an expression is taken
	// (If, While, cases, rules), "${{" and "}}" around it may be left out, and are not in the Text.
	If *Text
	// Retry makes it again after failures; nil is never.
	Retry *Retry
	// Timeout bounds one attempt, without what it waits for people and clocks; 0 is none.
	Timeout time.Duration
	// Cache takes the output of an earlier run over, nil is never.
	Cache *Cache
	// Idempotency names what the step does once, whichever run it is in: the output of the first that went well is taken over,
	// for 30 days. nil is none.
	Idempotency *Value
	// Interrupted says what becomes of the step when the gateway was killed during it: retry, fail or ask (a person is asked whether
	// to make it again). "" is retry for what only reads, is idempotent by its tool's own word, or can be continued (code, skill); else ask.
	Interrupted string
	// Output is the value of steps.ID.output, where the step's own result, "output" in this expression, is not it. nil is that result.
	Output *Value
	Do     Action
}

// Retry says when a step is made again.
type Retry struct {
	// Count is how often at most, after the first time.
	Count int
	// Wait is the time before the first retry; it doubles up to Max. Load fills the defaults in: 1s and 1m.
	Wait, Max time.Duration
	// On are the kinds of errors (as in [sallyport/internal/tool.Kind]) after which it is; empty is timeout, upstream and limit.
	On []string
}

// Cache keeps a step's output for later runs of the workflow.
type Cache struct {
	// For is how long.
	For time.Duration
	// Key is what must be the same; nil is the resolved "with", and the definition of the tool or the text of the code.
	Key *Value
}

// Action is what a step does: one of the types below, by pointer.
type Action interface{ action() }

// Tool calls a tool of an upstream.
type Tool struct {
	// Name is "upstream.tool".
	Name Text
	With Value
}

// Code runs a program in a sandbox. What it leaves in "result" (Python), or its last expression or "export default" (TypeScript), as execute_code has it, is the output.
type Code struct {
	// Text is the program, where it is inline; File is the path of it, below Dir, read by Load into Text.
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

// Nested runs another workflow within the run.
type Nested struct {
	Name Text
	With Value
}

// Parallel runs branches side by side. Its result is a map of the branches' results; when one fails, the others are canceled.
type Parallel struct{ Branches []Branch }

// Branch is one of them.
type Branch struct {
	Name  Text
	Steps []Step
}

// ForEach runs its steps for each item of a list. Its result is the list of what each came to; when one fails, the others are canceled.
type ForEach struct {
	// In evaluates to a list.
	In Value
	// As names the item in expressions, "item" by default; Index the number of it, from 0: "index" by default.
	As, Index Text
	// Concurrency is how many go on at once; 1 by default, at most 64.
	Concurrency int
	Steps       []Step
}

// Switch runs the steps of the first case that holds, else those of Default; its result is theirs, null for none.
type Switch struct {
	Cases   []Case
	Default []Step
}

// Case is one of them.
type Case struct {
	When  Text
	Steps []Step
}

// While runs its steps as long as When holds. Max bounds how often; one more fails. "index" counts from 0, "last" is the result of the time before, null at first.
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

// Approval asks a person whether to go on. The result is {"approved": true, "by", "note"}; a refusal fails the step with kind denied.
type Approval struct {
	Message Value
	// Timeout is how long it can be answered, after which the step fails with kind timeout; default 24h.
	Timeout time.Duration
}

// Form asks a person for what is missing. Its result is an object of all fields that apply.
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
	// If leaves the field out where it is false; it may use "form", the fields before. nil is always.
	If *Text
	// From is where a value comes from before a person is asked: an expression over inputs, steps and "form", or what a tool says; null and "" are none.
	From *Source
	// Confirm asks a person even so, with that value as what is filled in; else a value from there is taken without a question.
	Confirm bool
	// Default is filled in where a person is asked.
	Default *Value
	// Options are those of choice and choices: a list of texts or numbers, or of {value, title}; or what a tool says.
	Options *Source
	// Pattern (RE2), Min and Max (of numbers, dates as texts; of characters or choices with Length) bound a value.
	Pattern              *Text
	Min, Max             *Value
	MinLength, MaxLength int // 0 is unbounded
	// Rule must hold for the form's fields up to this one ("form") and its "value"; Message says what is wrong where it or Pattern does not.
	Rule    *Text
	Message string
}

// Source is where values come from: one of the two is set.
type Source struct {
	Value *Value
	// Tool is called once when the field is reached, and Output (over "output") picks from its result; nil is all of it.
	Tool   *Tool
	Output *Value
}

// Try runs steps; when one fails, Catch runs with the error as As ("error" by default: {kind, message, hint, step}), and its result stands in; Finally runs in the end whatever happens, also after a cancellation.
type Try struct {
	Steps   []Step
	Catch   []Step // nil: the failure stays
	As      Text
	Finally []Step
}

func (*Tool) action()     {}
func (*Code) action()     {}
func (*Skill) action()    {}
func (*Nested) action()   {}
func (*Parallel) action() {}
func (*ForEach) action()  {}
func (*Switch) action()   {}
func (*While) action()    {}
func (*Wait) action()     {}
func (*Form) action()     {}
func (*Try) action()      {}

// Value is a JSON value of a definition. Its texts may hold expressions, as ${{ EXPRESSION }}: a text that is one expression and
// no other text has that expression's value, in others they are inserted as texts. "$${{" is a plain "${{".
type Value struct {
	Pos
	Kind Kind
	// Scalar is what Null, Bool and Number are: nil, bool, int64 or float64.
	Scalar any
	// Text is what String is.
	Text Text
	// Items are those of List, Members those of Map, in the order of the file.
	Items   []Value
	Members []Member
}

// Kind is the kind of a value.
type Kind uint8

// The kinds. The zero Kind is a value that is not there.
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

// Text is a text of a definition that knows where it stands.
type Text struct {
	Pos
	Text string

	place place
}

// At returns where a byte of the text stands in the file.
func (t Text) At(offset int) Pos { return t.place.at(t.Pos, offset) }

func (t Text) String() string { return t.Text }
