package spec

import (
	"fmt"
	"strings"
)

// Block is one list of steps within a step.
type Block struct {
	// Name is the path element between the ids of the step and of its inner steps: a branch's name, "case[0]", "default",
	// "try", "catch", "finally"; "" for a loop: its iterations have numbers.
	Name  string
	Steps []Step
}

// Blocks returns the blocks of nested steps of s, in the order in which they may run; nil if it has none.
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

// Walk calls do for all steps and nested steps, in file order, with the enclosing steps, outermost first. do
// must not retain or modify that slice.
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
		if steps, parts = s.findBlock(parts); len(parts) == 0 {
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

// findBlock returns the block in which a path continues, and the rest of the path.
func (s *Step) findBlock(parts []string) ([]Step, []string) {
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
