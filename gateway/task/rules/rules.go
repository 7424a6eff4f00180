// Package rules makes a program for a task in words without a language model: it chooses a tool by the words of its name,
// finds arguments in the task by the tool's schema, and connects up to three calls. Its only function is [Make], which is
// deterministic. What it is not sure of it asks or refuses.
package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// Request is a task with the tools that may be meant.
type Request struct {
	Task string
	// Args are values for parameters by name, and the tool by the name "tool".
	Args  map[string]json.RawMessage
	Tools []Candidate
}

// Candidate is a tool that a search found; Rank is its place, from 0.
type Candidate struct {
	Tool tool.Tool
	Rank int
}

// Question is a value that is needed.
type Question struct {
	Name    string
	Text    string
	Choices []string
}

// Plan is a program, with what is missing for it. With Refusal, Program is a guess, or "".
type Plan struct {
	Program string
	Calls   []tool.ID
	Missing []Question
	Refusal string
}

// ToolArg is the argument that names the tool to use.
const ToolArg = "tool"

// maxChoices is the most tools that a question lists.
const maxChoices = 5

// Make plans a task.
func Make(r Request) Plan {
	t := read(r.Task)
	ranked := rank(t, r)
	if len(ranked) == 0 {
		return Plan{Refusal: "no tool matches the words of the task well"}
	}
	p := planner{task: t, request: r, ranked: ranked}
	if others := rivals(ranked); len(others) > 1 {
		if only := p.complete(others); only != nil {
			return *only
		}
		q := Question{Name: ToolArg, Text: "Which tool is meant?"}
		for _, m := range others[:min(len(others), maxChoices)] {
			q.Choices = append(q.Choices, m.tool.ID.String())
		}
		return Plan{Missing: []Question{q}}
	}
	return p.plan(ranked[0])
}

// complete returns the plan of the only one of several tools for which the task has all arguments, or the one that calls
// the others too; nil if there is no such plan.
func (p planner) complete(some []match) *Plan {
	var all []Plan
	for _, m := range some {
		if plan := p.plan(m); len(plan.Missing) == 0 && plan.Refusal == "" {
			all = append(all, plan)
		}
	}
	for _, one := range all {
		if !slices.ContainsFunc(all, func(other Plan) bool { return !slices.Contains(one.Calls, other.Calls[len(other.Calls)-1]) }) {
			return &one
		}
	}
	return nil
}

// rivals returns the tools that match about as well as the best one.
func rivals(ranked []match) []match {
	const margin = 0.18
	n := 1
	for n < len(ranked) && !ranked[0].named && ranked[0].score-ranked[n].score < margin {
		n++
	}
	return ranked[:n]
}

// planner makes the calls of a plan.
type planner struct {
	task    text
	request Request
	ranked  []match
}

// plan makes the program for a tool.
func (p planner) plan(best match) Plan {
	f := p.task.facts(p.request.Args)
	c := bind(best.tool, f)
	steps := []step{}
	for _, name := range c.missing {
		before, value, ok := p.chain(best.tool, name, f, 2)
		if ok {
			steps = append(steps, before...)
			c.args = append(c.args, arg{name: name, expr: value})
		}
	}
	c.missing = slices.DeleteFunc(c.missing, func(name string) bool { return slices.ContainsFunc(c.args, func(a arg) bool { return a.name == name }) })
	out := Plan{Missing: questions(best.tool, c)}
	for _, s := range steps {
		out.Calls = append(out.Calls, s.tool.ID)
	}
	out.Calls = append(out.Calls, best.tool.ID)
	out.Program = program(append(steps, step{tool: best.tool, args: c.args}), c.missing)
	if len(out.Missing) == 0 {
		out.Refusal = p.doubt(best, f, steps)
	}
	return out
}

// doubt says why a complete plan may not be what is meant, "" for no doubt.
func (p planner) doubt(best match, f *facts, steps []step) string {
	if word := p.task.beyond(best, steps); word != "" {
		return fmt.Sprintf("the task says %q, which needs more than a call of %s", word, best.tool.ID)
	}
	if left := f.unused(); len(left) > 0 && !best.named {
		return fmt.Sprintf("%s has no parameter for %s", best.tool.ID, strings.Join(left, ", "))
	}
	return ""
}

func questions(t tool.Tool, c call) (all []Question) {
	for _, name := range c.missing {
		p := c.schema.Properties[name]
		q := Question{Name: name, Text: fmt.Sprintf("What is %s of %s?", name, t.ID)}
		for _, v := range p.Enum {
			if s, ok := v.(string); ok {
				q.Choices = append(q.Choices, s)
			}
		}
		all = append(all, q)
	}
	return all
}
