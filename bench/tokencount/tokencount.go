// Package tokencount counts what a model reads and writes in one task, token by
// token, as an endpoint without memory bills it: at every turn the model reads
// all that came before again, definitions of tools included.
//
// It knows no server and no model. Who plays a task fills a [Transcript]; what
// that comes to is said by [Transcript.Count].
package tokencount

import "encoding/json"

// Definition is a tool as clients put it into a model's context. What upstreams
// say of a tool's output, and its annotations, are not there: no client shows them.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Call is a tool call as the model writes it.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// Result is what the model reads of a call.
type Result struct {
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"`
	// Shows are definitions that come into the context with the result, and stay.
	Shows []Definition `json:"shows,omitempty"`
}

// Turn is one answer of the model, and what its calls gave.
type Turn struct {
	// Text is what the model says; the answer, in the last turn.
	Text  string `json:"text,omitempty"`
	Calls []Call `json:"calls,omitempty"`
	// Results has one for each call, in their order.
	Results []Result `json:"results,omitempty"`
}

// Transcript is a task as it was played, from the prompt to the answer.
type Transcript struct {
	Task string `json:"task"`
	Mode string `json:"mode"`
	// Instructions are what servers ask clients to show, Definitions the tools
	// that the model sees from the first turn.
	Instructions []string     `json:"instructions,omitempty"`
	Definitions  []Definition `json:"definitions"`
	Prompt       string       `json:"prompt"`
	Turns        []Turn       `json:"turns"`
	Answer       string       `json:"answer"`
}

// KnownTools returns the names of the tools that the model has seen so far.
func (t *Transcript) KnownTools() (names []string) {
	for _, def := range t.Definitions {
		names = append(names, def.Name)
	}
	for _, turn := range t.Turns {
		for _, r := range turn.Results {
			for _, def := range r.Shows {
				names = append(names, def.Name)
			}
		}
	}
	return names
}
