package lint

import (
	"fmt"
	"strings"

	"sallyport/gateway/workflow/spec"
	"sallyport/internal/expr"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// block plans steps in order. It sets f.last to the result of the last one.
func (p *planner) block(f *frame, steps []spec.Step) []PlannedStep {
	var out []PlannedStep
	for i := range steps {
		if p.made++; p.made > maxPlanned {
			break
		}
		out = append(out, p.step(f, &steps[i]))
	}
	return out
}

// step plans one step, and makes its known result visible to later steps.
func (p *planner) step(f *frame, s *spec.Step) PlannedStep {
	at := PlannedStep{Path: join(f.path, s.ID.Text), Line: s.Line}
	known := map[string]any{"output": nil, "status": "skipped", "error": nil}
	seen, _ := f.vars["steps"].(map[string]any)
	seen[s.ID.Text] = known
	unsure := false
	if s.If != nil {
		r := p.text(f, *s.If)
		at.Skipped, unsure = r.value == false, r.unsure
		if at.Problem = r.problem; unsure && r.problem == "" {
			at.If = s.If.Text
		}
	}
	at.Kind = kindOf(s.Do)
	if at.Skipped || at.Problem != "" {
		at.What = calleeName(s.Do)
		return at
	}
	output := p.action(f, s, &at)
	if s.Output != nil {
		in := f.inside(f.path, map[string]any{"output": output})
		output = p.value(in, *s.Output).value
	}
	p.notes(s, &at)
	known["output"], known["status"], known["error"] = output, any(expr.Unknown{}), any(expr.Unknown{})
	if unsure {
		known["output"] = expr.Unknown{}
	}
	f.last = known["output"]
	return at
}

func join(path, id string) string {
	if path == "" {
		return id
	}
	return path + "." + id
}

// notes adds remarks about cache, idempotency and retries.
func (p *planner) notes(s *spec.Step, at *PlannedStep) {
	if s.Cache != nil {
		at.Notes = append(at.Notes, fmt.Sprintf("reuses the output of a run in the last %v, if any", s.Cache.For))
	}
	if s.Idempotency != nil {
		at.Notes = append(at.Notes, "not repeated if another run has done it")
	}
	if s.Retry != nil {
		at.Notes = append(at.Notes, "made again up to "+times(s.Retry.Count, "time")+" after a failure")
	}
}

func kindOf(do spec.Action) string {
	switch do.(type) {
	case *spec.Tool:
		return "tool"
	case *spec.Code:
		return "code"
	case *spec.Skill:
		return "skill"
	case *spec.Plugin:
		return "plugin"
	case *spec.Task:
		return "task"
	case *spec.Nested:
		return "workflow"
	case *spec.Parallel:
		return "parallel"
	case *spec.ForEach:
		return "for_each"
	case *spec.Switch:
		return "switch"
	case *spec.While:
		return "while"
	case *spec.Wait:
		return "wait"
	case *spec.Form:
		return "form"
	}
	return "try"
}

// calleeName returns the name of the tool, skill or workflow that a step calls.
func calleeName(do spec.Action) string {
	switch do := do.(type) {
	case *spec.Tool:
		return do.Name.Text
	case *spec.Skill:
		return do.Name.Text
	case *spec.Plugin:
		return do.Name.Text
	case *spec.Nested:
		return do.Name.Text
	}
	return ""
}

// action plans the action of a step and returns its result.
func (p *planner) action(f *frame, s *spec.Step, at *PlannedStep) any {
	at.What = calleeName(s.Do)
	switch do := s.Do.(type) {
	case *spec.Tool:
		p.call(f, do, at)
	case *spec.Code:
		p.code(f, do, at)
	case *spec.Skill:
		p.arguments(f, do.With, at)
	case *spec.Plugin:
		p.arguments(f, do.With, at)
	case *spec.Task:
		p.task(f, do, at)
	case *spec.Nested:
		return p.planNested(f, do, at)
	case *spec.Parallel:
		return p.parallel(f, do, at)
	case *spec.ForEach:
		return p.forEach(f, do, at)
	case *spec.Switch:
		return p.choice(f, do, at)
	case *spec.While:
		return p.while(f, do, at)
	case *spec.Wait:
		return p.wait(f, do, at)
	case *spec.Form:
		return p.form(f, do, at)
	case *spec.Try:
		return p.try(f, do, at)
	}
	return expr.Unknown{}
}

func (p *planner) arguments(f *frame, with spec.Value, at *PlannedStep) result {
	r := p.value(f, with)
	at.With, at.Problem = r.show, r.problem
	return r
}

func (p *planner) call(f *frame, do *spec.Tool, at *PlannedStep) {
	args := p.arguments(f, do.With, at)
	id, err := tool.ParseID(do.Name.Text)
	if err != nil {
		at.Problem = tool.AsError(err).Error()
	}
	if at.Problem == "" {
		at.Verdict, at.Problem = p.askPolicy(id, args)
	}
	if at.Verdict != nil && at.Verdict.Action == policy.Deny && !at.Verdict.Unsure {
		at.Problem = "the call is denied"
	}
}

func (p *planner) code(f *frame, do *spec.Code, at *PlannedStep) {
	language := or(do.Language, "python")
	lines := times(strings.Count(strings.TrimRight(do.Text.Text, "\n"), "\n")+1, "line")
	at.What = language + ", " + lines
	if do.File != nil {
		at.What += " of " + do.File.Text
	}
	at.Notes = append(at.Notes, "the tools it calls are known only at run time")
	p.arguments(f, do.With, at)
}

func (p *planner) planNested(f *frame, do *spec.Nested, at *PlannedStep) any {
	args := p.value(f, do.With)
	at.With, at.Problem = args.show, args.problem
	d := p.o.Workflows[do.Name.Text]
	if d == nil || p.depth == maxNested || at.Problem != "" {
		if d == nil {
			at.Notes = append(at.Notes, "there is no such workflow here")
		}
		return expr.Unknown{}
	}
	inner := p.frame(d, at.Path)
	if err := p.inputs(inner, p.nestedInputs(f, do.With)); err != nil {
		at.Problem = tool.AsError(err).Message
		return expr.Unknown{}
	}
	p.depth++
	at.Steps = p.block(inner, d.Steps)
	p.depth--
	values, _ := p.outputs(inner)
	return values
}

// nestedInputs evaluates the inputs of a nested workflow individually, so that unknown ones do not hide known ones.
func (p *planner) nestedInputs(f *frame, with spec.Value) map[string]any {
	out := map[string]any{}
	for _, m := range with.Members {
		out[m.Name.Text] = p.value(f, m.Value).value
	}
	if all, ok := p.value(f, with).value.(map[string]any); ok {
		return all
	}
	return out
}

// planBlock plans a block of a step.
func (p *planner) planBlock(f *frame, at *PlannedStep, name, condition string, steps []spec.Step, vars map[string]any) any {
	in := f.inside(at.Path+"."+name, vars)
	at.Steps = append(at.Steps, PlannedStep{Path: in.path, Kind: "block", What: name, If: condition, Steps: p.block(in, steps)})
	return in.last
}

func (p *planner) parallel(f *frame, do *spec.Parallel, at *PlannedStep) any {
	out := map[string]any{}
	for _, b := range do.Branches {
		out[b.Name.Text] = p.planBlock(f, at, b.Name.Text, "", b.Steps, nil)
	}
	return out
}

func (p *planner) forEach(f *frame, do *spec.ForEach, at *PlannedStep) any {
	r := p.value(f, do.In)
	at.Problem = r.problem
	as, index := or(do.As.Text, "item"), or(do.Index.Text, "index")
	vars := map[string]any{as: any(expr.Unknown{}), index: any(expr.Unknown{})}
	items, known := r.value.([]any)
	switch {
	case at.Problem != "":
		return expr.Unknown{}
	case !known && !r.unsure:
		at.Problem = "it does not iterate over a list"
		return expr.Unknown{}
	case known && len(items) == 0:
		at.What = "no items"
		return []any{}
	case known:
		at.What, vars[as], vars[index] = times(len(items), "item"), items[0], int64(0)
		if len(items) > 1 {
			at.Notes = append(at.Notes, "shown for the first item")
		}
	default:
		at.What = fmt.Sprint("each item of ", compact(r.show))
	}
	if do.Concurrency > 1 {
		at.Notes = append(at.Notes, fmt.Sprintf("%d at a time", do.Concurrency))
	}
	in := f.inside(at.Path+"[0]", vars)
	at.Steps = p.block(in, do.Steps)
	if !known {
		return expr.Unknown{}
	}
	out := make([]any, len(items))
	for i := range out {
		out[i] = expr.Unknown{}
	}
	if len(items) == 1 {
		out[0] = in.last
	}
	return out
}

func (p *planner) choice(f *frame, do *spec.Switch, at *PlannedStep) any {
	certain := true
	for i, c := range do.Cases {
		r := p.text(f, c.When)
		if r.problem != "" {
			at.Problem = r.problem
			return expr.Unknown{}
		}
		name := fmt.Sprintf("case[%d]", i)
		switch {
		case r.unsure:
			certain = false
			p.planBlock(f, at, name, c.When.Text, c.Steps, nil)
		case r.value == true:
			out := p.planBlock(f, at, name, "", c.Steps, nil)
			if certain {
				return out
			}
			return expr.Unknown{}
		}
	}
	var out any
	if len(do.Default) > 0 {
		condition := ""
		if !certain {
			condition = "none of these"
		}
		out = p.planBlock(f, at, "default", condition, do.Default, nil)
	}
	if !certain {
		return expr.Unknown{}
	}
	return out
}

func (p *planner) while(f *frame, do *spec.While, at *PlannedStep) any {
	at.What = fmt.Sprintf("%s, at most %s", do.When.Text, times(do.Max, "time"))
	first := p.text(f.inside(at.Path, map[string]any{"index": int64(0), "last": nil}), do.When)
	if at.Problem = first.problem; at.Problem != "" {
		return expr.Unknown{}
	}
	if first.value == false {
		at.What = "no time"
		return nil
	}
	at.Steps = p.block(f.inside(at.Path+"[0]", map[string]any{"index": any(expr.Unknown{}), "last": any(expr.Unknown{})}), do.Steps)
	return expr.Unknown{}
}

func (p *planner) wait(f *frame, do *spec.Wait, at *PlannedStep) any {
	var r result
	switch {
	case do.For != nil:
		r = p.value(f, *do.For)
		at.What = fmt.Sprint("for ", compact(r.show))
	case do.Until != nil:
		r = p.value(f, *do.Until)
		at.What = fmt.Sprint("until ", compact(r.show))
	default:
		r = p.value(f, do.Approval.Message)
		at.What = fmt.Sprint("until a person agrees to ", compact(r.show))
		at.Problem = r.problem
		return expr.Unknown{}
	}
	at.Problem = r.problem
	return nil
}

// form plans a form: the known values of fields, and what is asked for.
func (p *planner) form(f *frame, do *spec.Form, at *PlannedStep) any {
	at.What = fmt.Sprint(compact(p.value(f, do.Title).show))
	fields := map[string]any{}
	in := f.inside(f.path, map[string]any{"form": any(expr.Unknown{})})
	for i := range do.Fields {
		field := &do.Fields[i]
		condition := ""
		if field.If != nil {
			r := p.text(in, *field.If)
			if r.value == false {
				continue
			}
			if r.unsure {
				condition = ", if " + field.If.Text
			}
		}
		fields[field.Name.Text] = p.field(in, field, condition, at)
	}
	at.With = fields
	return expr.Unknown{}
}

// field returns the value of a field if it is known, else a remark where it comes from.
func (p *planner) field(in *frame, field *spec.Field, condition string, at *PlannedStep) any {
	from := field.From
	for _, s := range []*spec.Source{field.From, field.Options} {
		if s != nil && s.Tool != nil {
			one := PlannedStep{Path: at.Path + "." + field.Name.Text, Kind: "tool", What: s.Tool.Name.Text}
			p.call(in, s.Tool, &one)
			at.Steps = append(at.Steps, one)
		}
	}
	if from != nil && from.Value != nil && !field.Confirm {
		switch r := p.value(in, *from.Value); {
		case r.unsure:
			return compact(r.show) + ", else asked for" + condition
		case r.value != nil && r.value != "":
			return r.value
		}
	}
	return "‹asked for" + condition + "›"
}

func (p *planner) try(f *frame, do *spec.Try, at *PlannedStep) any {
	out := p.planBlock(f, at, "try", "", do.Steps, nil)
	if len(do.Catch) > 0 {
		p.planBlock(f, at, "catch", "it fails", do.Catch, map[string]any{or(do.As.Text, "error"): any(expr.Unknown{})})
		out = expr.Unknown{}
	}
	if len(do.Finally) > 0 {
		p.planBlock(f, at, "finally", "", do.Finally, nil)
	}
	return out
}
