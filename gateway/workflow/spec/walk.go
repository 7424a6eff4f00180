package spec

import (
	"fmt"
	"strings"
)

// Block is one list of steps within a step.
type Block struct {
	// Name is what stands between the step's and its inner steps' ids in the path of an event: a branch's name, "case[0]", "default",
	// "try", "catch", "finally"; "" for a loop, where passes have a number.
	Name  string
	Steps []Step
}

// Blocks returns what steps stand within s, in the order in which they may run; nil for one that is not made of steps.
func (s *Step) Blocks() (all []Block) {
	add := func(name string, steps []Step) {
		if len(steps) > 0 {
			all = append(all, Block{name, steps})
		}
	}
	switch do := s.Do.(type) {
	case *Parallel:
		for _, b := range do.Branches {
			add(b.Name.Text, b.Steps)
		}
	case *ForEach:
		add("", do.Steps)
	case *While:
		add("", do.Steps)
	case *Switch:
		for i, c := range do.Cases {
			add(fmt.Sprintf("case[%d]", i), c.Steps)
		}
		add("default", do.Default)
	case *Try:
		add("try", do.Steps)
		add("catch", do.Catch)
		add("finally", do.Finally)
	}
	return all
}

// Walk calls do for each of the steps and all within them, in the order of the file, with the steps that it stands in, outermost first. It
// must not keep or change that slice.
func Walk(steps []Step, do func(s *Step, in []*Step)) { walk(steps, nil, do) }

func walk(steps []Step, in []*Step, do func(s *Step, in []*Step)) {
	for i := range steps {
		s := &steps[i]
		do(s, in)
		for _, b := range s.Blocks() {
			walk(b.Steps, append(in, s), do)
		}
	}
}

// Step returns the step at the path of an event, as in "each[3].fetch"; nil if there is none, as for the steps of a nested workflow.
func (d *Definition) Step(path string) *Step {
	steps, parts := d.Steps, strings.Split(path, ".")
	for {
		id, _, _ := strings.Cut(parts[0], "[")
		s := byID(steps, id)
		if parts = parts[1:]; s == nil || len(parts) == 0 {
			return s
		}
		if steps, parts = s.within(parts); len(parts) == 0 {
			return nil
		}
	}
}

func byID(steps []Step, id string) *Step {
	for i := range steps {
		if steps[i].ID.Text == id {
			return &steps[i]
		}
	}
	return nil
}

// within returns the block that a path continues in, and what is left of the path.
func (s *Step) within(parts []string) ([]Step, []string) {
	for _, b := range s.Blocks() {
		switch b.Name {
		case "":
			return b.Steps, parts
		case parts[0]:
			return b.Steps, parts[1:]
		}
	}
	return nil, nil
}
