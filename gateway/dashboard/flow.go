package dashboard

import (
	"fmt"
	"strings"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/gateway/workflow/timeline"
)

// FlowStep is a step in the graph of a run.
type FlowStep struct {
	// Name is its id, Does its summary from the definition, State its state: that of its last pass in a loop.
	Name, Does, State string
	// Passes is how often it has run, if more than once; it is "" otherwise.
	Passes string
	// Blocks are the steps in it: of a loop one block, of others one for each branch, case and the like.
	Blocks []FlowBlock
}

// FlowBlock is one list of steps in a step.
type FlowBlock struct {
	// Name is that of the branch, or the condition of the case; it is "" for a loop.
	Name  string
	Steps []FlowStep
}

// maxFlowSteps is how many steps of a definition are drawn.
const maxFlowSteps = 300

// flow makes the graph of a run: the steps of its definition with what happened to them.
type flow struct {
	passes map[*spec.Step][]*timeline.Mark
	// rest is the state of steps that have not begun.
	rest string
	left int
}

// newFlow returns the graph of a run, nil if its definition is unknown.
func newFlow(c *timeline.Chart, moving bool) []FlowStep {
	if c.Source == nil {
		return nil
	}
	f := &flow{passes: map[*spec.Step][]*timeline.Mark{}, rest: "not run", left: maxFlowSteps}
	if moving {
		f.rest = "not started"
	}
	f.collect(c.Source, c.Tree())
	return f.steps(c.Source.Steps)
}

// collect finds the steps of marks.
func (f *flow) collect(source *spec.Definition, marks []*timeline.Mark) {
	for _, m := range marks {
		if step := source.Step(m.Path); step != nil && !m.Pass {
			f.passes[step] = append(f.passes[step], m)
		}
		f.collect(source, m.Kids)
	}
}

func (f *flow) steps(steps []spec.Step) (all []FlowStep) {
	for i := range steps {
		if f.left--; f.left < 0 {
			break
		}
		all = append(all, f.step(&steps[i]))
	}
	return all
}

func (f *flow) step(s *spec.Step) FlowStep {
	about := workflow.OutlineOf(s)
	step := FlowStep{Name: s.ID.Text, Does: strings.TrimSpace(about.Kind + " " + about.Of), State: f.rest}
	if passes := f.passes[s]; len(passes) > 0 {
		step.State = stateOf(passes)
		if len(passes) > 1 {
			step.Passes = fmt.Sprintf("%s times", groupDigits(int64(len(passes))))
		}
	}
	for _, b := range s.Blocks() {
		step.Blocks = append(step.Blocks, FlowBlock{blockName(s, b.Name), f.steps(b.Steps)})
	}
	return step
}

// blockName returns the condition of a case, and the name of another block.
func blockName(s *spec.Step, name string) string {
	var n int
	if _, err := fmt.Sscanf(name, "case[%d]", &n); err != nil {
		return name
	}
	return "if " + s.Do.(*spec.Switch).Cases[n].When.Text
}

// stateOf returns the state of a step: waiting or running if a pass is, else that of the last pass.
func stateOf(passes []*timeline.Mark) (state string) {
	for _, m := range passes {
		switch now := markState(m); {
		case now == "waiting":
			return now
		case now == "running" || state != "running":
			state = now
		}
	}
	return state
}

// markState returns the state of a mark.
func markState(m *timeline.Mark) string {
	n := len(m.Waits)
	switch {
	case !m.Ended.IsZero():
		return m.Outcome
	case n > 0 && m.Waits[n-1].To.IsZero():
		return "waiting"
	}
	return "running"
}
