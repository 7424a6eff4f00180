// Package agent has a model, scripted or real, work on a task with tools, and
// writes down what it read and wrote.
package agent

import (
	"context"
	"time"

	"sallyport/bench/tokencount"
)

// Model is what makes the next turn of a conversation: one of the scripts of
// package suite, or an endpoint.
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

// Usage is what an endpoint says that it bills, in tokens. Scripts leave it empty.
type Usage struct {
	// Input is everything that was read, Cached what of it came from a cache, Stored what was written to one.
	Input  int `json:"input"`
	Cached int `json:"cached,omitempty"`
	Stored int `json:"stored,omitempty"`
	Output int `json:"output"`
}

// Tools are what a model gets at in one mode. Definitions are named as the model calls them.
type Tools interface {
	Instructions() []string
	Definitions() []tokencount.Definition
	// Call makes one call. What a tool or a program did wrong is a result; an error is ours, and ends the task.
	Call(ctx context.Context, call tokencount.Call) (tokencount.Result, error)
}

// Limits bound one task.
type Limits struct {
	Turns int
	Time  time.Duration
}
