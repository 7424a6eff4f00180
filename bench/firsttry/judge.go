package main

import (
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"sallyport/bench/firsttry/fixture"
)

// verdict is the result of a case.
type verdict string

// The verdicts, best first.
const (
	right      verdict = "right"
	taught     verdict = "taught"
	unteaching verdict = "error that does not teach"
	silent     verdict = "silent wrong"
)

// outcome is a judged case.
type outcome struct {
	Name     string   `json:"name"`
	Mistake  string   `json:"mistake"`
	Language string   `json:"language"`
	AfterFix bool     `json:"after_fix,omitempty"`
	Verdict  verdict  `json:"verdict"`
	Answer   string   `json:"answer"`
	Repairs  []string `json:"repairs,omitempty"` // why each repair failed
	// Tokens are those of the answer.
	Tokens int `json:"tokens"`
	// Noted has the notes of the program's own answer, or of that of its repair, if the program is right: a false alarm,
	// unless the mistake is there without harm.
	Noted string `json:"noted,omitempty"`
}

// runner runs programs and searches as a client does.
type runner interface {
	call(ctx context.Context, tool string, arguments map[string]any) (text string, failed bool, err error)
}

// judge judges cases, one after the other.
type judge struct {
	runner runner
	world  *fixture.World
	tasks  map[string]task
}

func (j *judge) judge(ctx context.Context, t trial) (outcome, error) {
	o := outcome{Name: t.Name, Mistake: t.mistake, Language: t.Language, AfterFix: t.AfterFix, Verdict: silent}
	ok, text, failed, err := j.try(ctx, t, t.Program, t.Arguments)
	if err != nil {
		return o, err
	}
	o.Answer = text
	switch {
	case ok:
		o.Verdict, o.Noted = right, notesOf(text)
		return o, nil
	case failed:
		o.Verdict = unteaching
	}
	for _, f := range t.Fixes {
		problem, answer, err := j.repair(ctx, t, f, text)
		if err != nil {
			return o, err
		}
		if problem == "" {
			o.Verdict, o.Repairs, o.Noted = taught, nil, notesOf(answer)
			return o, nil
		}
		o.Repairs = append(o.Repairs, problem)
	}
	return o, nil
}

// repair follows the answer, and returns why that does not help, "" and the new answer if it does.
func (j *judge) repair(ctx context.Context, t trial, f fix, answer string) (problem, repaired string, err error) {
	if !regexp.MustCompile(f.Says).MatchString(answer) {
		return "the answer does not say " + f.Says, "", nil
	}
	read := j.tasks[t.Task].prompt + "\n" + answer
	if f.Search != "" {
		found, _, err := j.runner.call(ctx, "search_tools", map[string]any{"query": f.Search, "language": t.Language})
		if err != nil {
			return "", "", err
		}
		read += "\n" + found
	}
	if f.Look != "" {
		if words := invented(f.Look, t.Program, read); len(words) > 0 {
			return "nothing says " + strings.Join(words, ", ") + ", to look", "", nil
		}
		shown, _, err := j.runner.call(ctx, "execute_code", map[string]any{"code": f.Look, "language": t.Language})
		if err != nil {
			return "", "", err
		}
		read += "\n" + shown
	}
	program, arguments := f.repaired(t.Program), f.Arguments
	if words := invented(program, t.Program, read, strings.Join(f.Known, " ")); len(words) > 0 {
		return "nothing says " + strings.Join(words, ", "), "", nil
	}
	ok, text, _, err := j.try(ctx, t, program, arguments)
	if err != nil || ok {
		return "", text, err
	}
	return "the repaired program answers " + text, "", nil
}

// try runs a program and compares what it answers and what it changes.
func (j *judge) try(ctx context.Context, t trial, program string, arguments map[string]any) (ok bool, text string, failed bool, err error) {
	task := j.tasks[t.Task]
	want := task.want
	if t.Want != nil {
		want = t.Want
	}
	all := map[string]any{"code": program}
	if arguments == nil {
		arguments = map[string]any{"language": t.Language}
	}
	maps.Copy(all, arguments)
	j.world.Reset()
	text, failed, err = j.runner.call(ctx, "execute_code", all)
	if err != nil {
		return false, "", false, err
	}
	ok = !failed && same(text, want) && slices.Equal(j.world.Writes(), task.writes)
	return ok, text, failed, nil
}

// remark matches lines of an answer that are not output of the program.
var remark = regexp.MustCompile(`(?m)^(note|types|hint|warning): .*\n?`)

// notesOf returns the lines of an answer that are not output of the program.
func notesOf(answer string) string {
	return strings.TrimSpace(strings.Join(remark.FindAllString(answer+"\n", -1), ""))
}

// same reports whether the answer gives the wanted value: as all of its output, as what was printed, or as its value.
func same(answer string, want any) bool {
	answer = remark.ReplaceAllString(answer, "")
	answer, _, _ = strings.Cut("\n"+answer, "\nstderr:\n")
	printed, value, _ := strings.Cut(answer, "\n=> ")
	expected := normal(text(want))
	return slices.ContainsFunc([]string{answer, printed, value}, func(s string) bool { return normal(s) == expected })
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

var (
	spaces  = regexp.MustCompile(`\s+`)
	inner   = regexp.MustCompile(`([\[{(]) | ([\])}])`)
	numbers = regexp.MustCompile(`-?\b\d+(\.\d+)?n?\b`)
	pythons = strings.NewReplacer("'", `"`, "None", "null", "True", "true", "False", "false")
)

// normal returns a form that is the same however the languages write a value.
func normal(s string) string {
	s = strings.ReplaceAll(spaces.ReplaceAllString(pythons.Replace(strings.TrimSpace(s)), " "), ", ", ",")
	s = strings.Trim(inner.ReplaceAllString(strings.ReplaceAll(s, ": ", ":"), "$1$2"), `"`)
	return numbers.ReplaceAllStringFunc(s, func(n string) string {
		n = strings.TrimSuffix(n, "n")
		r, ok := new(big.Rat).SetString(n)
		if !ok || strings.HasPrefix(n, "0") && len(n) > 1 && n[1] != '.' {
			return n // 007 is no number
		}
		return r.RatString()
	})
}
