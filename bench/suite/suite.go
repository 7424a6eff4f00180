// Package suite is the tasks that token counts and models are judged by: what is
// asked, the world that it is asked of, the answer, and how a model without
// faults gets there in each mode. Scripts are fixed, and what they call is real:
// a script sees only results, as a model does.
package suite

import (
	"encoding/json"

	"sallyport/bench/tokencount"
)

// Mode is how a model gets at tools.
type Mode string

// The modes.
const (
	// Direct shows all tools of all upstreams at every turn.
	Direct Mode = "direct"
	// Search shows a tool that finds tools; what it finds is defined from then on.
	Search Mode = "search"
	// Code is Sallyport: search_tools and execute_code.
	Code Mode = "code"
	// Words is Sallyport as well, which asks the model itself: `sallyport run`. Scripts do not play it.
	Words Mode = "task"
)

// Modes are all modes that scripts play, in the order of tables.
func Modes() []Mode { return []Mode{Direct, Search, Code} }

// Kind says what is hard in a task.
type Kind string

// The kinds, from what code mode should lose to what it should win.
const (
	// OneCall needs one call with a small result.
	OneCall Kind = "one call"
	// FewCalls needs two to six calls with small results.
	FewCalls Kind = "few calls"
	// ManyCalls needs a loop.
	ManyCalls Kind = "many calls"
	// MuchData needs a few calls with large results, and little of them.
	MuchData Kind = "much data"
	// Join needs the data of several calls or upstreams put together.
	Join Kind = "join"
)

// Task is one task with its answer and its scripts. It must not depend on what
// other tasks have left in the world, nor disturb what they read: what it
// writes has its name on it.
type Task struct {
	// Name is short, in lower case, with hyphens.
	Name string
	Kind Kind
	// Prompt is what the person asks. It says how the answer is to look, so that it
	// can be compared, and names no tool. [World.Expand] puts the world's paths into it.
	Prompt string
	// Upstreams are the names of the servers that it needs, in the order of [World.Servers].
	Upstreams []string
	// Want is the right answer, worked out from what the world was made of, never by a tool.
	Want func(w *World) string
	// Done checks what the task was to leave in the world; nil where it leaves nothing.
	Done func(w *World) error
	// Needs are the ids (upstream.tool as on the wire, "filesystem.read_text_file") that Direct calls.
	Needs []string
	// Queries are what a model asks for in a search, the first try and the next ones: one slice of
	// queries for each try. A try is made when those before did not show everything that is needed.
	Queries [][]string
	// SearchQueries are those of [Search], where Direct needs other tools than programs do; nil is Queries.
	SearchQueries [][]string
	// Direct plays the task by direct calls, the shortest way there is: calls that do
	// not depend on each other in one turn. It works the answer out of results, as a model without faults would.
	Direct Script
	// Programs are run one after the other by [Code]; the last one's output is the answer. None but those that fail takes for
	// granted what the prompt, a signature or the output of one before has not shown: to do so ends the script. What a signature
	// has left out is asked for by the way; a result of which a signature says nothing is looked at by a program first.
	Programs []Program
	// Answer makes the answer of the last program's output; nil where they are the same but for white space.
	Answer func(m *ScriptRun, output string) string
}

// Program is one execute_code of a script.
type Program struct {
	// File is its name in programs/, with .py or .ts at the end.
	File string
	// Fails is a part of the error that it is to end with: a mistake as models make it, which is counted. "" is none.
	Fails string
	// Needs are the wrappers that it imports, "servers.filesystem.read_text_file" written
	// as "filesystem.read_text_file": what a search must have shown before it can be written.
	Needs []string
}

// Script is the deterministic behaviour of a model: it makes calls, sees their results, and returns the answer. It
// gives up with [ScriptRun.Fail].
type Script func(m *ScriptRun) (answer string)

// Call is a direct call by the id "upstream.tool". args is encoded as JSON.
func Call(id string, args any) tokencount.Call {
	data, err := json.Marshal(args)
	if err != nil {
		panic(err) // scripts are ours
	}
	return tokencount.Call{Tool: id, Args: data}
}
