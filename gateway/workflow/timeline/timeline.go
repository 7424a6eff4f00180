// Package timeline builds a timeline from the events of a run: when each step started, how long it took, what it waited for. Its main
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
	// ShownPasses limits the loop iterations that are shown. Of more, the first, the last and some failed ones are shown.
	ShownPasses = 10
	edgePasses  = 3
	wrongPasses = 5
)

// WaitInterval is a time interval in which a step waited.
type WaitInterval struct {
	// To is zero while it waits.
	From, To time.Time
	// What is time, approval, form or retry.
	What string
}

// Note is an action on a run as a whole.
type Note struct {
	At time.Time
	// What is resumed or canceled, By is the actor.
	What, By string
}

// Mark is a step in a timeline.
type Mark struct {
	// Path is the path of the step, Name its name relative to the parent.
	Path, Name string
	// Ended is zero and Outcome is "" while it is running.
	Began, Ended time.Time
	Attempts     int
	Outcome      string
	Fault        *workflow.Fault
	Waits        []WaitInterval
	// Executions are the ids of its programs, the newest last.
	Executions []string
	// Kids are the nested steps.
	Kids []*Mark
	// Pass says that it is a loop iteration.
	Pass bool
}

// Chart is the timeline of a run. It is not safe for concurrent use.
type Chart struct {
	// Notes are the actions on the run as a whole.
	Notes []Note
	// Start and Last are the times of the first and the last event, zero without events.
	Start, Last time.Time
	// Source is the run's definition, nil if it cannot be parsed.
	Source *spec.Definition

	marks map[string]*Mark
	order []*Mark
}

// New returns an empty chart.
func New() *Chart { return &Chart{marks: map[string]*Mark{}} }

// Add adds the next event.
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
		c.markOf(e).add(e)
	case runlog.Claimed, runlog.Over:
	}
}

// markOf returns the mark of an event's step, and adds it if it is new.
func (c *Chart) markOf(e workflow.Event) *Mark {
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
		if !m.Ended.IsZero() { // it runs again
			m.Began = e.Time
		}
		m.Attempts, m.Outcome, m.Fault, m.Ended = max(m.Attempts, e.Attempt), "", nil, time.Time{}
		if e.Execution != "" {
			m.Executions = append(m.Executions, e.Execution)
		}
	case runlog.Retrying:
		m.Fault = e.Error
		m.Waits = append(m.Waits, WaitInterval{From: e.Time, What: "retry"})
	case runlog.Waits:
		what := "something"
		if e.Pending != nil {
			what = e.Pending.For
		}
		m.Waits = append(m.Waits, WaitInterval{From: e.Time, What: what})
	case runlog.Ended:
		m.Ended, m.Outcome, m.Fault = e.Time, e.Outcome, e.Error
	}
}

// definitionOf parses a run's definition, which describes its steps; nil if that fails.
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

// parentPath returns the parent of a path; "" for a top-level step.
func parentPath(path string) string {
	if i := strings.LastIndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return ""
}

// Tree sets the Kids of all steps, and returns the top-level steps.
func (c *Chart) Tree() []*Mark {
	root := &Mark{}
	for _, m := range c.order {
		m.Kids = nil
	}
	for _, m := range c.order {
		up := parentPath(m.Path)
		for up != "" && c.marks[up] == nil {
			up = parentPath(up)
		}
		parent := cmp.Or(c.marks[up], root)
		m.Name = strings.TrimPrefix(strings.TrimPrefix(m.Path, parent.Path), ".")
		m.Pass = parent != root && strings.HasPrefix(m.Path[len(parent.Path):], "[") && strings.Count(m.Name, "[") == 1 && strings.HasSuffix(m.Name, "]")
		parent.Kids = append(parent.Kids, m)
		for m.Began.Before(parent.Began) && parent != root { // a nested step started first
			parent.Began = m.Began
		}
	}
	for _, m := range c.order {
		slices.SortStableFunc(m.Kids, compareMarks)
	}
	return root.Kids
}

// compareMarks orders the steps of one parent: iterations by number, others by start time.
func compareMarks(a, b *Mark) int {
	if a.Pass && b.Pass {
		return cmp.Or(len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
	}
	return a.Began.Compare(b.Began)
}

// Collapse merges an iteration and its only step into one mark; nil if that is not possible.
func (m *Mark) Collapse() *Mark {
	if !m.Pass || len(m.Kids) != 1 || len(m.Kids[0].Kids) > 0 || m.Outcome != m.Kids[0].Outcome {
		return nil
	}
	one := *m.Kids[0]
	one.Name = m.Name + " " + one.Name
	return &one
}

// Pick selects the steps to show. A nil mark in shown represents the hidden ones.
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
