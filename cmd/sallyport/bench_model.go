package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
)

// modelOptions are what bench is told of a model.
type modelOptions struct {
	URL, Name, API, KeyEnv string
	Tasks, Modes, Servers  string
	Runs, Turns            int
	JSON                   bool
}

// flags are those that go with --model; runs and json are bench's own.
func (m *modelOptions) flags(flags *pflag.FlagSet) {
	flags.StringVar(&m.URL, "model", "", "have a model work on tasks, at the endpoint `URL`")
	flags.StringVar(&m.Name, "name", "", "ask for the model `NAME`")
}

// benchModel has a model work on the tasks.
func (a *app) benchModel(_ context.Context, _ modelOptions) error {
	return errors.New("bench --model: not there yet")
}
