//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// workflows are the definitions of the campaign, by their names.
var workflows = map[string]string{
	"tool_step": `inputs: {key: string}
steps:
  - id: inc
    tool: crm.inc
    with: {key: "${{ inputs.key }}"}
`,
	"python_step": `inputs: {key: string}
steps:
  - id: inc
    code: |
      from servers.crm import inc
      result = inc(key=key)
    with: {key: "${{ inputs.key }}"}
`,
	"typescript_step": `inputs: {key: string}
steps:
  - id: inc
    language: typescript
    code: |
      import { inc } from "servers/crm";
      export default await inc({ key });
    with: {key: "${{ inputs.key }}"}
`,
}

func (c *chaos) writeWorkflows() error {
	dir := filepath.Join(c.dir, "workflows")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, definition := range workflows {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(definition), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run has a step of a workflow call the tool; each try is a process of its own.
type run struct {
	*chaos
	key, workflow string
	before, id    string // the run of before, and its own, "" until it is on record
}

var runID = regexp.MustCompile(`\br-[a-z0-9]{10,}\b`)

// latest returns the id of the last run, "" if there is none.
func (r *run) latest(ctx context.Context) (string, error) {
	out, err := r.command(ctx, "workflow", "runs").Output()
	return runID.FindString(string(out)), err
}

func (r *run) try(ctx context.Context, first, kill bool) (a attempt, err error) {
	if first {
		if r.before, err = r.latest(ctx); err != nil {
			return a, err
		}
	}
	args := []string{"workflow", "run", r.workflow, "--input", "key=" + r.key}
	if r.id != "" {
		args = []string{"workflow", "resume", r.id}
	}
	cmd := r.command(ctx, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return a, err
	}
	var failed error
	if a.killed, err = r.runAndKill(r.key, kill, func() *os.Process { return cmd.Process }, func() { failed = cmd.Wait() }); err != nil {
		return a, err
	}
	if r.id == "" {
		latest, err := r.latest(ctx)
		if err != nil {
			return a, err
		}
		if latest != r.before {
			r.id = latest
		}
	}
	a.output = said.String()
	if exit, ok := errors.AsType[*exec.ExitError](failed); ok && !a.killed && exit.ExitCode() == 2 {
		if !strings.Contains(a.output, "it succeeded") { // it had ended when it was killed
			return a, errors.New(a.output)
		}
		a.ended = true
	}
	a.ended = a.ended || failed == nil && !a.killed
	return a, nil
}
