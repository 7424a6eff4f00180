// Package skills stores programs that were saved as functions: private ones, shared ones, and those that are pending review. Its main
// type is [Library].
package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/gateway/auditor"
	"sallyport/gateway/catalog"
	"sallyport/gateway/environments"
	"sallyport/gateway/execution"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/internal/access"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/store"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// SkillDraft is a skill to save. Empty fields keep the values of the previous version.
type SkillDraft struct {
	// Name is read by skill.Name.
	Name        string
	Code        string
	Description string
	// Language is as in Program; "" is that of the previous version, or of the execution, or python.
	Language string
	// From is the id of a successful execution of the caller, or "last": its program becomes a function.
	From string
	// Params are parameters of that function: each replaces the literals that equal its value, which is its default.
	Params map[string]json.RawMessage
	// Tests run before the skill is accepted.
	Tests string
	// Scope is "private" or "shared"; "" is private.
	Scope string
	// Groups are the groups that see the skill, an empty list for everybody; nil keeps them.
	Groups *[]string
}

// Options configure a library. All but DataDir are required.
type Options struct {
	// DataDir stores skills, in skills/; "" disables skills.
	DataDir string
	// Records is the store. If several gateways use it, it has the skills, and DataDir has copies of them; nil for none.
	Records *store.Store
	// Serving says that skills are brought to such a store, and that it is kept tidy.
	Serving      bool
	Settings     config.Source
	Logger       *slog.Logger
	Catalog      *catalog.Catalog
	Environments *environments.Environments
	History      *history.History
	Auditor      *auditor.Auditor
	Guard        *guard.Guard
	// Directory has the groups of principals.
	Directory *access.Directory
}

// Executor runs the code of skills in sandboxes.
type Executor interface {
	// Limits returns the limits of a program by the settings in force.
	Limits(program execution.Program) sandbox.Limits
	// Bundle compiles a program in TypeScript to JavaScript, with the skills that it imports.
	Bundle(ctx context.Context, job sandbox.Job, code string) (string, error)
	// RunWithoutTools runs an internal program of the gateway, without tools.
	RunWithoutTools(ctx context.Context, job sandbox.Job) (sandbox.Outcome, error)
	// RunTests runs the tests of a skill that is about to be saved, with the rights of the caller.
	RunTests(ctx context.Context, job sandbox.Job, program execution.Program, candidate *skill.Skill) (execution.Result, error)
}

// Library has the skills of all principals, and their search indexes. It is safe for concurrent use.
type Library struct {
	// Executor is set before the first call.
	Executor Executor

	opts       Options
	store      *skill.Store // nil: skills are disabled
	background background
	// shared are the groups of the shared skills.
	shared sharedGroups

	mu          sync.Mutex
	indexes     map[string]*skillIndex // by key of a view
	analyses    map[string]analysis    // of skills without recorded signatures, by digest
	lastSuccess map[string]string      // the last successful execution, by principal and session
}

// maxLastSuccess is how many sessions have their last execution recorded.
const maxLastSuccess = 4096

// New returns a library. Close it.
func New(opts Options) (*Library, error) {
	s := &Library{opts: opts, indexes: map[string]*skillIndex{}, analyses: map[string]analysis{}, lastSuccess: map[string]string{}}
	if opts.DataDir == "" {
		return s, nil
	}
	var err error
	if s.store, err = skill.Open(filepath.Join(opts.DataDir, "skills"), opts.Records, opts.Logger); err != nil {
		return nil, err
	}
	if opts.Serving && opts.Records.Shared() {
		s.background.start(s.store)
	}
	return s, nil
}

func noStoreError() error {
	return &tool.Error{Kind: tool.Denied, Message: "skills are disabled", Hint: "the operator has not set a data directory"}
}

// OnExecutionEnd records the last successful execution, for save_skill(from_execution="last").
func (s *Library) OnExecutionEnd(ctx context.Context, e execution.Result) {
	if e.Failed() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lastSuccess) >= maxLastSuccess {
		clear(s.lastSuccess)
	}
	s.lastSuccess[tool.Principal(ctx)+"\x00"+tool.Session(ctx)] = e.ID
}

// foundSkill is a skill that a caller can use.
type foundSkill struct {
	skill.Skill
	shared  bool
	problem error // why it cannot be imported
}

// skill finds a skill for a program of the caller: their own, else a shared one. Errors are *tool.Error.
func (s *Library) skill(ctx context.Context, name string, version int) (foundSkill, error) {
	return viewOf(ctx, s).skill(ctx, name, version)
}

func (v view) skill(ctx context.Context, name string, version int) (foundSkill, error) {
	if v.store == nil {
		return foundSkill{}, noStoreError()
	}
	asked := strings.TrimPrefix(toolcall.TrimName(name), toolcall.SkillsID+".")
	plainName, err := skill.Name(asked)
	if err != nil {
		return foundSkill{}, v.notFoundError(ctx, asked)
	}
	if candidate := toolcall.ScopeOf(ctx).Candidate; candidate != nil && candidate.Name == plainName {
		return foundSkill{Skill: *candidate}, nil
	}
	one, err := v.own(plainName, version)
	if err == nil {
		return foundSkill{Skill: one}, nil
	}
	if !errors.Is(err, skill.ErrNotFound) {
		return foundSkill{}, &tool.Error{Kind: tool.Invalid, Message: "skill " + plainName + " cannot be read: " + sanitize.Line(err.Error(), 200)}
	}
	one, err = v.sharedSkill(plainName, version)
	switch {
	case err == nil:
		return foundSkill{Skill: one, shared: true}, nil
	case errors.Is(err, skill.ErrNotFound):
		if version > 0 {
			if current, err := v.skill(ctx, name, 0); err == nil {
				return foundSkill{}, v.noVersionError(ctx, current, version)
			}
		}
		return foundSkill{}, v.notFoundError(ctx, asked)
	}
	return foundSkill{}, &tool.Error{Kind: tool.Denied, Message: "skill " + plainName + " cannot be used: " + sanitize.Line(err.Error(), 200), Hint: "an operator must approve it: sallyport skills review"}
}

func (s *Library) noVersionError(ctx context.Context, current foundSkill, version int) error {
	hint := fmt.Sprintf("its version is %d", current.Version)
	if list := s.store.Versions(tool.Principal(ctx), current.Name); len(list) > 1 {
		hint = sanitize.Line("there are: "+strings.Trim(fmt.Sprint(list), "[]"), 200)
	}
	return &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("skill %s has no version %d", current.Name, version), Hint: hint}
}

func (s *Library) notFoundError(ctx context.Context, name string) error {
	err := &tool.Error{Kind: tool.NotFound, Message: "there is no skill " + sanitize.Line(name, 80), Hint: "list_skills() lists the skills"}
	if near := suggest.Of(skill.Module(name), s.Modules(ctx)); near != "" {
		err.Hint = "did you mean skills." + near + "?"
	}
	return err
}

// Modules returns the modules below "skills" that the caller can import.
func (s *Library) Modules(ctx context.Context) []string {
	if s.store == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	mine, err := s.indexFor(viewOf(ctx, s))
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(mine.skills))
}

// SaveSkill saves a new version of a skill for the caller and returns text for the model. Errors are *tool.Error.
func (s *Library) SaveSkill(ctx context.Context, d SkillDraft) (string, error) {
	switch {
	case s.store == nil:
		return "", noStoreError()
	case toolcall.ScopeOf(ctx).Candidate != nil:
		return "", &tool.Error{Kind: tool.Denied, Message: "a skill's tests cannot save skills"}
	}
	settings := s.opts.Settings.Load().Skills
	if err := checkScope(d.Scope, settings.Shared); err != nil {
		return "", err
	}
	draft, notes, err := s.draft(ctx, d)
	if err != nil {
		return "", err
	}
	if err := (compiler{s}).testSkill(ctx, draft); err != nil {
		return "", err
	}
	s.opts.Guard.MarkSkill(ctx, draft.Name, false)
	saved, err := s.store.Save(tool.Principal(ctx), draft)
	if err != nil {
		return "", s.saveError(ctx, err)
	}
	said := []string{fmt.Sprintf("saved %s, version %d", saved.Name, saved.Version) + importText(saved)}
	said = append(said, notes...)
	if d.Scope == scopeShared {
		told, err := s.shareSkill(ctx, saved, settings.Review)
		if err != nil {
			return "", err
		}
		said = append(said, told)
	}
	return strings.Join(said, "\n"), nil
}

// The scopes of skills.
const (
	scopePrivate = "private"
	scopeShared  = "shared"
)

func checkScope(scope string, allowed bool) error {
	switch {
	case scope == "" || scope == scopePrivate || scope == scopeShared && allowed:
		return nil
	case scope == scopeShared:
		return &tool.Error{Kind: tool.Denied, Message: "skills cannot be shared here", Hint: "save it without scope; the operator decides that (skills.scope)"}
	}
	return toolcall.NotOneOf("scope", scope, "use private or shared")
}

func (s *Library) shareSkill(ctx context.Context, one skill.Skill, review bool) (string, error) {
	if err := viewOf(ctx, s).checkFree(one.Name, scopeShared); err != nil { // again: the tests took a while
		return "", err
	}
	s.opts.Guard.MarkSkill(ctx, one.Name, true)
	if _, err := s.store.Propose(tool.Principal(ctx), one); err != nil {
		return "", s.saveError(ctx, err)
	}
	if err := s.opts.Auditor.Audit(ctx, audit.Event{Kind: audit.SkillShared, After: one.Digest(), Note: fmt.Sprintf("%s version %d, for %s, review %t", one.Name, one.Version, audience(one.Groups), review)}); err != nil {
		return "", err
	}
	if review {
		return "it is yours; others see it when an operator has approved it (sallyport skills review)", nil
	}
	if _, err := s.store.Approve(one.Name, ""); err != nil {
		return "", s.saveError(ctx, err)
	}
	return "it is shared with " + audience(one.Groups), nil
}

func (s *Library) saveError(ctx context.Context, err error) error {
	if errors.Is(err, skill.ErrFull) || errors.Is(err, skill.ErrTooLarge) {
		return &tool.Error{Kind: tool.Limit, Message: err.Error(), Hint: "the operator can remove some: sallyport skills rm"}
	}
	if down := toolcall.Unavailable(err); down != nil {
		return down
	}
	s.opts.Logger.ErrorContext(ctx, "skill is not saved", "error", err)
	return &tool.Error{Kind: tool.Internal, Message: "the skill could not be saved", Hint: "the operator's log says why", Err: err}
}

// draft makes the next version of a skill. notes describe changes to its code.
func (s *Library) draft(ctx context.Context, d SkillDraft) (next skill.Skill, notes []string, err error) {
	name, err := skill.Name(strings.TrimSpace(d.Name))
	if err != nil {
		return next, nil, &tool.Error{Kind: tool.Invalid, Message: err.Error()}
	}
	v := viewOf(ctx, s)
	before, err := v.own(name, 0)
	known := err == nil
	next = skill.Skill{Front: skill.Front{Name: name, Description: cleanDescription(d.Description), Language: before.Language}, Files: map[string][]byte{}}
	if known {
		next.AdoptForeignKeys(before.Front)
		next.Version = before.Version // until it is saved
		maps.Copy(next.Files, before.Files)
		next.Description = cmp.Or(next.Description, before.Description)
	}
	if next.Groups, err = v.nextGroups(name, d, before); err != nil {
		return next, nil, err
	}
	if d.Language != "" {
		interpreter, err := execution.Interpreter(d.Language)
		if err != nil {
			return next, nil, err
		}
		next.Language = execution.LanguageName(interpreter)
	}
	code, notes, err := s.draftCode(ctx, d, &next)
	if err != nil {
		return next, nil, err
	}
	if code == "" && next.Code() == "" {
		return next, nil, &tool.Error{Kind: tool.Invalid, Message: "code is missing", Hint: `give code, or from_execution="last"`}
	}
	if code != "" {
		next.Files[skill.CodeFile(next.Language)] = []byte(code)
	}
	if d.Tests != "" {
		next.Files[skill.TestFile(next.Language)] = []byte(d.Tests)
	}
	return next, notes, s.complete(ctx, &next)
}

// draftCode returns the code of a draft, "" to keep that of the previous version.
func (s *Library) draftCode(ctx context.Context, d SkillDraft, next *skill.Skill) (string, []string, error) {
	switch {
	case d.From != "" && d.Code != "":
		return "", nil, &tool.Error{Kind: tool.Invalid, Message: "code and from_execution cannot be given together"}
	case d.From != "":
		return s.fromExecution(ctx, d, next)
	case len(d.Params) > 0 && d.Code == "":
		return "", nil, &tool.Error{Kind: tool.Invalid, Message: "params are for from_execution", Hint: `from_execution="last" takes the last successful program`}
	}
	next.Language = cmp.Or(next.Language, skill.Python)
	return d.Code, nil, checkSkillCode(d.Code)
}

func checkSkillCode(code string) error {
	if len(code) > skill.MaxBytes {
		return &tool.Error{Kind: tool.Invalid, Message: skill.ErrTooLarge.Error()}
	}
	return nil
}

// complete fills in fields from the code: signatures, the description if it is empty, the tools that it calls.
func (s *Library) complete(ctx context.Context, next *skill.Skill) error {
	found, err := compiler{s}.analyse(ctx, *next)
	if err != nil {
		return err
	}
	next.Functions, next.Parameters = found.signatures, found.parameters
	next.Description = cmp.Or(next.Description, cleanDescription(found.doc))
	if next.Description == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "description is missing", Hint: "say in a line or two what the skill does; search finds it by that"}
	}
	next.Tools = s.toolDigests(next.Code())
	next.Body = skillBody(*next)
	if err := next.Check(); err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: sanitize.Line(err.Error(), 200)}
	}
	return nil
}

// cleanDescription returns a description without invisible characters, cut to the maximum length.
func cleanDescription(text string) string {
	text = strings.TrimSpace(sanitize.Text(text, skill.MaxDescription))
	for len(text) > skill.MaxDescription {
		text = sanitize.Head(text, len([]rune(text))-1)
	}
	return text
}

func skillBody(s skill.Skill) string {
	return fmt.Sprintf("# %s\n\n%s\n\n```%s\n%s\n```\n", s.Name, s.Description, s.Language, strings.Join(append([]string{skillImport(s)}, s.Functions...), "\n"))
}

// LoadSkill returns the description and the code of a skill as text; version 0 is the current one. Errors are *tool.Error.
func (s *Library) LoadSkill(ctx context.Context, name string, version int) (string, error) {
	one, err := s.skill(ctx, name, version)
	if err != nil {
		return "", err
	}
	s.opts.Guard.ReadSkill(ctx, one.Name, one.shared)
	compiler{s}.fillSignatures(ctx, &one.Skill)
	var b strings.Builder
	fmt.Fprintf(&b, "%s, version %d, %s", one.Name, one.Version, one.Language)
	if one.shared {
		b.WriteString(", shared by " + cmp.Or(sanitize.Line(one.Author, 60), "the operator"))
	}
	if len(one.Groups) > 0 {
		b.WriteString(", for " + audience(one.Groups))
	}
	b.WriteString("\n" + sanitize.Text(one.Description, skill.MaxDescription) + importText(one.Skill))
	for _, flag := range s.skillFlags(one.Skill) {
		b.WriteString("\nwarning: " + flag)
	}
	if code := one.Code(); code != "" {
		b.WriteString("\n--- " + skill.CodeFile(one.Language) + "\n" + strings.TrimRight(execution.Visible(code), "\n"))
	} else {
		b.WriteString("\n---\n" + sanitize.Text(one.Body, maxSkillText))
	}
	var others []string
	for _, path := range slices.Sorted(maps.Keys(one.Files)) {
		if path != skill.CodeFile(one.Language) {
			others = append(others, sanitize.Line(path, 100))
		}
	}
	if len(others) > 0 {
		b.WriteString("\n--- also: " + strings.Join(others[:min(len(others), 20)], ", "))
	}
	return sanitize.Text(b.String(), maxSkillText), nil
}

// maxSkillText is how much of one skill is returned, in characters.
const maxSkillText = 32 << 10

// ListSkills returns the caller's skills, or those that match a query, as text. Errors are *tool.Error.
func (s *Library) ListSkills(ctx context.Context, query string) (string, error) {
	if s.store == nil {
		return "", noStoreError()
	}
	found, err := s.findSkills(ctx, viewOf(ctx, s), strings.TrimSpace(query[:min(len(query), toolsearch.MaxQuery)]), toolsearch.MaxLimit)
	if err != nil {
		return "", err
	}
	if len(found) == 0 && query != "" {
		return "No skill matches.", nil
	}
	if len(found) == 0 {
		return "No skills yet: save_skill keeps one.", nil
	}
	var lines []string
	for _, hit := range found[:min(len(found), maxListedSkills)] {
		s.opts.Guard.ReadSkill(ctx, hit.Name, hit.shared)
		line := hit.Name
		if hit.shared {
			line += " (shared)"
		}
		if hit.problem != nil {
			lines = append(lines, line+": "+sanitize.Line(hit.problem.Error(), 120))
			continue
		}
		lines = append(lines, line+": "+catalog.FirstSentence(hit.Description, ""))
	}
	if more := len(found) - maxListedSkills; more > 0 {
		lines = append(lines, fmt.Sprintf("(%d more; give a query)", more))
	}
	return strings.Join(lines, "\n"), nil
}

// maxListedSkills is how many skills are listed.
const maxListedSkills = 60
