// Package agent runs a model, scripted or real, on a task with tools, and records what it reads and writes.
package agent

import (
	"context"
	"time"

	"sallyport/bench/tokencount"
)

// Model makes the next turn of a conversation: one of the scripts of package suite, or an endpoint.
type Model interface {
	// Next returns the next turn, without results. A turn without calls is the last one, and its text the answer.
	Next(ctx context.Context, t *tokencount.Transcript) (Move, error)
}

// Move is a turn that a model has made.
type Move struct {
	Text  string
	Calls []tokencount.Call
	Usage Usage
}

// Usage is what an endpoint reports as billed, in tokens. Scripts leave it empty.
type Usage struct {
	// Input is all tokens read, Cached the part that was read from a cache, Stored the tokens written to one.
	Input  int `json:"input"`
	Cached int `json:"cached,omitempty"`
	Stored int `json:"stored,omitempty"`
	Output int `json:"output"`
}

// Tools are the tools of a model in one mode. Definitions have the names that the model uses.
type Tools interface {
	Instructions() []string
	Definitions() []tokencount.Definition
	// Call makes one call. A failure of a tool or a program is a result; an error is one of the benchmark, and ends
	// the task.
	Call(ctx context.Context, call tokencount.Call) (tokencount.Result, error)
}

// Limits bound one task.
type Limits struct {
	Turns int
	Time  time.Duration
}
