package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"sallyport/gateway/task"
	"sallyport/internal/models"
	"sallyport/internal/sanitize"
)

// WordsModel is the model with which Sallyport does tasks in words.
type WordsModel struct {
	// API, URL and Name are as in the settings.
	API, URL, Name string
	// Key is its key, "" for none. The servers and the programs do not get it.
	Key   string
	Price models.Price
}

// keyVar is the environment variable with the key of the model.
const keyVar = "SALLYPORT_BENCH_KEY"

// answerTokens bounds an answer of the model, as an endpoint of the other modes does.
const answerTokens = 8192

// maxTokens is the largest limit of tokens in the settings: the other modes have none.
const maxTokens = 1_000_000_000

// RunInWords has Sallyport do a task in words with a model: `sallyport run`, with the settings of a new user. It returns
// the record of the task, also of one that failed.
func RunInWords(ctx context.Context, setup Setup, m WordsModel, words string, limits Limits) (done task.Task, err error) {
	servers, err := setup.servers()
	if err != nil {
		return done, err
	}
	c := &code{shared: setup.Cache}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err = c.prepare(setup, servers, m.settings(limits)); err != nil {
		return done, fmt.Errorf("open sallyport: %w", err)
	}
	command := exec.CommandContext(ctx, setup.Sallyport, "--config", c.config(), "--log-level", "error", "run", "--json", "--quiet", "--", words)
	command.Dir, command.Env = c.dir, append(c.environment(), keyVar+"="+m.Key)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 20 * time.Second
	var said, complaint bytes.Buffer
	command.Stdout, command.Stderr = &said, &complaint
	failed := command.Run() // its status says how the task ended, as the record does
	if err := contextCause(ctx, nil); err != nil {
		return done, err
	}
	if err := json.Unmarshal(said.Bytes(), &done); err != nil {
		return done, fmt.Errorf("run sallyport: %w: %s", errors.Join(failed, err), sanitize.Line(complaint.String(), 300))
	}
	return done, nil
}

// settings are those of the model and of the limits of a task.
func (m WordsModel) settings(limits Limits) map[string]any {
	model := map[string]any{
		"api": m.API, "url": literals(m.URL)[0], "model": literals(m.Name)[0], "answer": answerTokens,
		"price": map[string]float64{"input": m.Price.Input, "cached": m.Price.Cached, "output": m.Price.Output},
	}
	if m.Key != "" {
		model["key"] = "${" + keyVar + "}"
	}
	tasks := map[string]any{"tokens": maxTokens, "daily": map[string]any{"tokens": maxTokens}}
	if limits.Turns > 0 {
		tasks["turns"] = limits.Turns
	}
	if limits.Time > 0 {
		tasks["time"] = limits.Time.String()
	}
	return map[string]any{"models": map[string]any{"default": model}, "tasks": tasks}
}
