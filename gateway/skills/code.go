package skills

import (
	"context"
	_ "embed" // internal programs that run in sandboxes
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sallyport/codegen/bundle"
	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// The code of a skill is parsed, rewritten and tested in sandboxes, never here. The
// results are untrusted, as the code is.

//go:embed skillcode/analyse.py
var analysePython string

//go:embed skillcode/parameterise.py
var parameterisePython string

//go:embed skillcode/test.py
var testPython string

const (
	// analyseTime and testTime are the timeouts of the analysis and of the tests of a skill.
	analyseTime = 10 * time.Second
	testTime    = 30 * time.Second
	// maxSignature is the maximum length of a signature, maxSkillFunctions their number.
	maxSignature      = 300
	maxSkillFunctions = 20
	maxAnalyses       = 2000
)

// analysis has sanitized facts from the code of a skill.
type analysis struct {
	signatures, parameters []string
	doc                    string
}

// compiler analyses, compiles and tests the code of skills.
type compiler struct{ *Library }

// runPython runs an internal Python program on texts and decodes its value into answer.
func (s compiler) runPython(ctx context.Context, program string, texts map[string]string, answer any) error {
	pairs := make([]string, 0, 2*len(texts))
	for name, text := range texts {
		quoted, err := json.Marshal(strings.ToValidUTF8(text, "\uFFFD"))
		if err != nil {
			return fmt.Errorf("quote text: %w", err)
		}
		pairs = append(pairs, name, string(quoted))
	}
	limits := s.Executor.Limits(execution.Program{Timeout: analyseTime})
	limits.Value = 4 << 20
	job := sandbox.Job{ID: execution.NewID(), Interpreter: sandbox.Python, Code: strings.NewReplacer(pairs...).Replace(program), Limits: limits}
	outcome, err := s.Executor.RunWithoutTools(ctx, job)
	if err != nil {
		return err
	}
	if outcome.Status != sandbox.OK || outcome.Value == nil || outcome.Value.Kind != "json" || json.Unmarshal([]byte(outcome.Value.Text), answer) != nil {
		return &tool.Error{Kind: tool.Invalid, Message: "the code cannot be read: " + sanitize.Line(execution.Result{Outcome: outcome, Limits: limits}.Ending(), 200)}
	}
	return nil
}

// analyse returns what the code of a skill exports.
func (s compiler) analyse(ctx context.Context, one skill.Skill) (analysis, error) {
	code := one.Code()
	if code == "" {
		return analysis{}, nil
	}
	if one.Language == skill.TypeScript {
		return s.analyseTypeScript(ctx, one)
	}
	var answer struct {
		Error     string
		Line      int
		Doc       string
		Functions []struct {
			Name, Signature, Doc string
			Parameters           []string
		}
	}
	if err := s.runPython(ctx, analysePython, map[string]string{"SOURCE": code}, &answer); err != nil {
		return analysis{}, err
	}
	if answer.Error != "" {
		return analysis{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%s line %d: %s", skill.CodeFile(one.Language), answer.Line, sanitize.Line(answer.Error, 200))}
	}
	found := make([]exportedFunction, len(answer.Functions))
	for i, f := range answer.Functions {
		found[i] = exportedFunction{f.Name, f.Signature, f.Doc, f.Parameters}
	}
	return newAnalysis(one, found, answer.Doc), nil
}

// exportedFunction is one exported function of a skill.
type exportedFunction struct {
	name, signature, doc string
	parameters           []string
}

// newAnalysis sanitizes all texts, and puts the function first that has the name of the skill.
func newAnalysis(one skill.Skill, found []exportedFunction, doc string) analysis {
	slices.SortStableFunc(found, func(a, b exportedFunction) int {
		order := map[bool]int{true: 0, false: 1}
		return order[a.name == one.Module()] - order[b.name == one.Module()]
	})
	a := analysis{doc: doc}
	for i, f := range found[:min(len(found), maxSkillFunctions)] {
		a.signatures = append(a.signatures, sanitize.Line(f.signature, maxSignature))
		if i == 0 {
			for _, p := range f.parameters[:min(len(f.parameters), 50)] {
				a.parameters = append(a.parameters, sanitize.Line(p, maxSignature))
			}
			if f.doc != "" {
				a.doc = f.doc
			}
		}
	}
	return a
}

func (s compiler) analyseTypeScript(ctx context.Context, one skill.Skill) (analysis, error) {
	if err := s.compileSkill(ctx, one, fmt.Sprintf("import * as skill from %q;\nskill;\n", toolcall.SkillsID+"/"+one.Name)); err != nil {
		return analysis{}, err
	}
	functions, doc := bundle.Exports(one.Code())
	found := make([]exportedFunction, len(functions))
	for i, f := range functions {
		found[i] = exportedFunction{f.Name, f.Signature, f.Doc, f.Parameters}
	}
	return newAnalysis(one, found, doc), nil
}

// compileSkill returns the compile error of a program that imports a skill in TypeScript, nil if there is none.
func (s compiler) compileSkill(ctx context.Context, one skill.Skill, program string) error {
	_, err := s.Executor.Bundle(toolcall.WithCandidate(ctx, &one), sandbox.Job{}, program)
	if err == nil {
		return nil
	}
	wrong := &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(err.Error(), 300), Err: err}
	if e, ok := err.(*bundle.Error); ok { //nolint:errorlint // Compile returns it as it is
		wrong.Hint = sanitize.Line(e.Hint, 200)
		if e.File != "" {
			wrong.Message = sanitize.Line(fmt.Sprintf("%s line %d: %s", e.File, e.Line, err), 300)
		}
	}
	return wrong
}

// fillSignatures fills in the signatures of a skill that has none recorded.
func (s compiler) fillSignatures(ctx context.Context, one *skill.Skill) {
	if len(one.Functions) > 0 || one.Code() == "" {
		return
	}
	key := one.Digest()
	s.mu.Lock()
	found, known := s.analyses[key]
	s.mu.Unlock()
	if !known {
		made, err := s.analyse(ctx, *one)
		if err != nil && ctx.Err() != nil {
			return
		}
		found = made // empty for invalid code: importing it reports the error
		s.mu.Lock()
		if len(s.analyses) >= maxAnalyses {
			clear(s.analyses)
		}
		s.analyses[key] = found
		s.mu.Unlock()
	}
	one.Functions, one.Parameters = found.signatures, found.parameters
}

// testSkill runs the tests of a skill that is about to be saved, with the rights of the caller.
// The error says what failed.
func (s compiler) testSkill(ctx context.Context, one skill.Skill) error {
	if strings.TrimSpace(one.Tests()) == "" {
		return nil
	}
	job := sandbox.Job{ID: execution.NewID(), Interpreter: sandbox.Python, Limits: s.Executor.Limits(execution.Program{Timeout: testTime})}
	if err := s.opts.Environments.EnsureFor(ctx, &job, "", testTime); err != nil {
		return err
	}
	ctx = toolcall.WithCandidate(ctx, &one)
	job.Code = strings.ReplaceAll(testPython, "MODULE", one.Module())
	if one.Language == skill.TypeScript {
		job.Interpreter = sandbox.Node
		code, err := s.Executor.Bundle(ctx, job, testTypeScript(one))
		if err != nil {
			return failedTests(one, err.Error())
		}
		job.Code = code
	}
	e, err := s.Executor.RunTests(ctx, job, execution.Program{Code: job.Code, Language: string(one.Language)}, &one)
	if err != nil {
		return err
	}
	if e.Status == execution.Held {
		return failedTests(one, "they call a tool that needs approval, and nobody answered in time: let them do without it")
	}
	if e.Failed() || failedNodeTests(one, e) {
		return failedTests(one, e.Text())
	}
	return nil
}

// maxFailure is how much of the output of failed tests is returned, in characters.
const maxFailure = 3000

func failedTests(one skill.Skill, why string) error {
	message := "not saved: its tests fail\n" + sanitize.Text(strings.TrimSpace(why), maxFailure)
	if one.Version > 0 {
		message += "\nthe previous version stays"
	}
	return &tool.Error{Kind: tool.Failed, Message: message}
}

// importSkill returns the files of a skill that a Python program imports, as JSON.
func (s compiler) importSkill(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ Name, Language string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", toolcall.Invalid("arguments must be one JSON object of strings", "")
	}
	one, err := s.resolveImport(ctx, in.Name, in.Language)
	if err != nil {
		return "", err
	}
	sent := struct {
		Code  string            `json:"code"`
		Files map[string]string `json:"files"`
		Data  map[string][]byte `json:"data"`
	}{skill.CodeFile(one.Language), map[string]string{}, map[string][]byte{}}
	for path, data := range one.Files {
		if text := string(data); strings.ToValidUTF8(text, "") == text {
			sent.Files[path] = text
		} else {
			sent.Data[path] = data
		}
	}
	text, err := json.Marshal(sent)
	return string(text), err
}

// Files returns the files of a skill in TypeScript that a program of the caller imports.
func (s *Library) Files(ctx context.Context, name string) (map[string][]byte, error) {
	one, err := compiler{s}.resolveImport(ctx, name, skill.TypeScript)
	if err != nil {
		return nil, err
	}
	return maps.Clone(one.Files), nil
}

// resolveImport finds a skill by the last part of its import, in a language.
func (s compiler) resolveImport(ctx context.Context, module, language string) (skill.Skill, error) {
	one, err := s.skill(ctx, module, 0)
	if err != nil {
		return skill.Skill{}, err
	}
	if language == skill.TypeScript && one.Language != language || language == skill.Python && one.Language != language {
		return skill.Skill{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("skill %s is in %s", one.Name, one.Language), Hint: "import it from a program in " + one.Language}
	}
	if one.Code() == "" {
		return skill.Skill{}, &tool.Error{Kind: tool.Invalid, Message: "skill " + one.Name + " has no code, only instructions", Hint: fmt.Sprintf("read them: load_skill(%q)", one.Name)}
	}
	s.opts.Guard.ReadSkill(ctx, one.Name, one.shared)
	return one.Skill, nil
}
