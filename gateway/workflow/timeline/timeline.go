// Package timeline makes of the events of a run what people look at: when each step began, how long it took, what it waited for. Its main
// type is [Chart]; the command line and the dashboard draw it.
package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/runlog"
	"sallyport/gateway/workflow/spec"
)

const (
	// ShownPasses is how many passes of a loop are shown at most; of more, the first, the last and those that went wrong.
	ShownPasses = 10
	edgePasses  = 3
	wrongPasses = 5
)

// Stretch is a time in which a step waited.
type Stretch struct {
	// To is zero as long as it waits.
	From, To time.Time
	// What is time, approval, form or retry.
	What string
}

// Note is what was done to a run as a whole.
type Note struct {
	At time.Time
	// What is resumed or canceled, By is who did it.
	What, By string
}

// Mark is a step in a timeline.
type Mark struct {
	// Path is the step's, Name what it is called where it stands.
	Path, Name string
	// Ended is zero, and Outcome "", as long as it is under way.
	Began, Ended time.Time
	Attempts     int
	Outcome      string
	Fault        *workflow.Fault
	Waits        []Stretch
	// Executions are the programs that it ran, the newest last.
	Executions []string
	// Kids are the steps that stand in it.
	Kids []*Mark
	// Pass says that it is one pass of a loop.
	Pass bool
}

// Chart is what the events of a run come to. It is for one goroutine.
type Chart struct {
	// Notes are what was done to the run as a whole.
	Notes []Note
	// Start and Last are the times of the first and the last event, zero where there is none.
	Start, Last time.Time
	// Source is the run's definition, nil where that cannot be read.
	Source *spec.Definition

	marks map[string]*Mark
	order []*Mark
}

// New returns a chart without events.
func New() *Chart { return &Chart{marks: map[string]*Mark{}} }

// Add takes the next event.
func (c *Chart) Add(e workflow.Event) {
	if c.Start.IsZero() {
		c.Start = e.Time
	}
	c.Last = e.Time
	switch e.Kind {
	case runlog.Created:
		c.Source = definitionOf(e.Start)
	case runlog.Reentered, runlog.Stopping:
		word := map[workflow.EventKind]string{runlog.Reentered: "resumed", runlog.Stopping: "canceled"}[e.Kind]
		c.Notes = append(c.Notes, Note{At: e.Time, What: word, By: e.By})
	case runlog.Began, runlog.Retrying, runlog.Waits, runlog.Answered, runlog.Ended:
		c.at(e).add(e)
	case runlog.Claimed, runlog.Over:
	}
}

// at is the mark of an event's step.
func (c *Chart) at(e workflow.Event) *Mark {
	m := c.marks[e.Path]
	if m == nil {
		m = &Mark{Path: e.Path, Began: e.Time}
		c.marks[e.Path] = m
		c.order = append(c.order, m)
	}
	return m
}

func (m *Mark) add(e workflow.Event) {
	if n := len(m.Waits); n > 0 && m.Waits[n-1].To.IsZero() {
		m.Waits[n-1].To = e.Time
	}
	switch e.Kind {
	case runlog.Began:
		if !m.Ended.IsZero() { // it is made again
			m.Began = e.Time
		}
		m.Attempts, m.Outcome, m.Fault, m.Ended = max(m.Attempts, e.Attempt), "", nil, time.Time{}
		if e.Execution != "" {
			m.Executions = append(m.Executions, e.Execution)
		}
	case runlog.Retrying:
		m.Fault = e.Error
		m.Waits = append(m.Waits, Stretch{From: e.Time, What: "retry"})
	case runlog.Waits:
		what := "something"
		if e.Pending != nil {
			what = e.Pending.For
		}
		m.Waits = append(m.Waits, Stretch{From: e.Time, What: what})
	case runlog.Ended:
		m.Ended, m.Outcome, m.Fault = e.Time, e.Outcome, e.Error
	}
}

// definitionOf reads a run's definition again, to say what its steps do; nil where that is not possible.
func definitionOf(s *workflow.Started) *spec.Definition {
	if s == nil {
		return nil
	}
	d, err := spec.Parse(s.Path, []byte(s.Source), func(name string) ([]byte, error) { return []byte(s.Files[name]), nil })
	if err != nil {
		return nil
	}
	return d
}

// above is the path that a path is the next part of; "" for one of the definition's own steps.
func above(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// Tree puts steps below those that they stand in, and returns the outermost.
func (c *Chart) Tree() []*Mark {
	root := &Mark{}
	for _, m := range c.order {
		m.Kids = nil
	}
	for _, m := range c.order {
		up := above(m.Path)
		for up != "" && c.marks[up] == nil {
			up = above(up)
		}
		parent := cmp.Or(c.marks[up], root)
		m.Name = strings.TrimPrefix(strings.TrimPrefix(m.Path, parent.Path), ".")
		m.Pass = parent != root && strings.HasPrefix(m.Path[len(parent.Path):], "[") && strings.Count(m.Name, "[") == 1 && strings.HasSuffix(m.Name, "]")
		parent.Kids = append(parent.Kids, m)
		for m.Began.Before(parent.Began) && parent != root { // what stands in it was first
			parent.Began = m.Began
		}
	}
	for _, m := range c.order {
		slices.SortStableFunc(m.Kids, before)
	}
	return root.Kids
}

// before is the order of steps that stand side by side: passes by their numbers, all others as they began.
func before(a, b *Mark) int {
	if a.Pass && b.Pass {
		return cmp.Or(len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
	}
	return a.Began.Compare(b.Began)
}

// Only is a pass and the one step in it as one; nil where there are more.
func (m *Mark) Only() *Mark {
	if !m.Pass || len(m.Kids) != 1 || len(m.Kids[0].Kids) > 0 || m.Outcome != m.Kids[0].Outcome {
		return nil
	}
	one := *m.Kids[0]
	one.Name = m.Name + " " + one.Name
	return &one
}

// Pick chooses which steps to show; nil is the hidden ones.
func Pick(marks []*Mark) (shown, hidden []*Mark) {
	passes := 0
	for _, m := range marks {
		if m.Pass {
			passes++
		}
	}
	if passes <= ShownPasses {
		return marks, nil
	}
	wrong, seen := 0, 0
	for i, m := range marks {
		bad := m.Outcome != "ok" && m.Outcome != "cached"
		switch {
		case !m.Pass || seen < edgePasses || i >= len(marks)-edgePasses:
			shown = append(shown, m)
		case bad && wrong < wrongPasses:
			wrong++
			shown = append(shown, m)
		default:
			if len(hidden) == 0 {
				shown = append(shown, nil)
			}
			hidden = append(hidden, m)
		}
		if m.Pass {
			seen++
		}
	}
	return shown, hidden
}
