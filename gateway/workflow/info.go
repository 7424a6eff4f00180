package workflow

import (
	"slices"
	"strings"
	"time"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/store"
)

// Definitions returns the current workflows, sorted by name.
func (e *Engine) Definitions() []Info {
	defs := e.opts.Definitions()
	list := make([]Info, 0, len(defs))
	for _, d := range defs {
		list = append(list, InfoOf(d, time.Now()))
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// InfoOf returns the list entry of a workflow. now is the time after which schedules are next due.
func InfoOf(d *spec.Definition, now time.Time) Info {
	info := Info{Name: d.Name, Description: d.Description, Path: d.Path, Digest: d.Digest, Exposed: d.Expose, Webhook: d.On.Webhook != nil,
		Inputs: spec.InputSchema(d), Outputs: spec.OutputSchema(d), Steps: outline(d.Steps)}
	for _, in := range d.Inputs {
		if in.Prompt == "" {
			continue
		}
		if info.Prompts == nil {
			info.Prompts = map[string]string{}
		}
		info.Prompts[in.Name.Text] = in.Prompt
	}
	for _, s := range d.On.Schedules {
		info.Schedules = append(info.Schedules, clockOf(s, now))
	}
	return info
}

func clockOf(s spec.Schedule, now time.Time) Clock {
	c := Clock{Cron: s.Cron.Text, Zone: s.Zone.Text}
	if s.Every > 0 {
		c.Every = s.Every.String()
		return c
	}
	if next, err := store.Next(c.Cron, c.Zone, now); err == nil {
		c.Next = next
	}
	return c
}

func outline(steps []spec.Step) []Outline {
	list := make([]Outline, 0, len(steps))
	for i := range steps {
		list = append(list, OutlineOf(&steps[i]))
	}
	return list
}

// OutlineOf returns the outline of a step.
func OutlineOf(s *spec.Step) Outline {
	o := Outline{ID: s.ID.Text, Description: s.Description}
	if s.If != nil {
		o.If = s.If.Text
	}
	o.setAction(s.Do)
	return o
}

// setAction sets the kind and target of a step.
func (o *Outline) setAction(do spec.Action) {
	switch do := do.(type) {
	case *spec.Tool:
		o.Kind, o.Of = "tool", do.Name.Text
	case *spec.Code:
		o.Kind, o.Of = "code", languageOf(do)
	case *spec.Skill:
		o.Kind, o.Of = "skill", do.Name.Text
	case *spec.Plugin:
		o.Kind, o.Of = "plugin", do.Name.Text
	case *spec.Task:
		o.Kind, o.Of = "task", do.Words.Text.Text
	case *spec.Nested:
		o.Kind, o.Of = "workflow", do.Name.Text
	case *spec.Wait:
		o.Kind, o.Of = "wait", waitTarget(do)
	case *spec.Form:
		o.Kind, o.Of = "form", do.Title.Text.Text
	default:
		o.setChildren(do)
	}
}

// setChildren sets the kind and the nested steps of a block step.
func (o *Outline) setChildren(do spec.Action) {
	switch do := do.(type) {
	case *spec.Parallel:
		o.Kind = "parallel"
		for _, b := range do.Branches {
			o.Steps = append(o.Steps, Outline{Kind: "branch", Of: b.Name.Text, Steps: outline(b.Steps)})
		}
	case *spec.ForEach:
		o.Kind, o.Of, o.Steps = "for_each", do.In.Text.Text, outline(do.Steps)
	case *spec.Switch:
		o.Kind = "switch"
		for _, c := range do.Cases {
			o.Steps = append(o.Steps, Outline{Kind: "case", Of: c.When.Text, Steps: outline(c.Steps)})
		}
		o.add("default", do.Default)
	case *spec.While:
		o.Kind, o.Of, o.Steps = "while", do.When.Text, outline(do.Steps)
	case *spec.Try:
		o.Kind, o.Steps = "try", outline(do.Steps)
		o.add("catch", do.Catch)
		o.add("finally", do.Finally)
	}
}

func (o *Outline) add(kind string, steps []spec.Step) {
	if len(steps) > 0 {
		o.Steps = append(o.Steps, Outline{Kind: kind, Steps: outline(steps)})
	}
}

func languageOf(do *spec.Code) string {
	if do.Language != "" {
		return do.Language
	}
	return "python"
}

func waitTarget(do *spec.Wait) string {
	switch {
	case do.Approval != nil:
		return "approval"
	case do.For != nil:
		return do.For.Text.Text
	case do.Until != nil:
		return "until " + do.Until.Text.Text
	}
	return ""
}
