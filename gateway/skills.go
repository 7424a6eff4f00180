package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/nearest"
	"sallyport/internal/plain"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// SkillDraft is what is to be saved as a skill. What is empty stays as it is in the version before.
type SkillDraft struct {
	// Name is read by skill.Name.
	Name        string
	Code        string
	Description string
	// Language is as in Program; "" is that of the version before, or of the execution, or python.
	Language string
	// From is the id of an execution of the caller's that went well, or "last": its program becomes a function.
	From string
	// Params are parameters of that function: each stands in place of the literals that equal its value, which is its default.
	Params map[string]json.RawMessage
	// Tests run before the skill is accepted.
	Tests string
	// Scope is "private" or "shared"; "" is private.
	Scope string
}

// skillsID is what skills are imported from; in search they stand under it.
const skillsID = "skills"

// skills are the skills of everybody, and what is known of them. Its zero value has none.
type skills struct {
	store *skill.Store // nil: nothing is kept

	mu       sync.Mutex
	indexes  map[string]*skillIndex // by principal
	analysed map[string]analysis    // of skills made by hand, by digest
	last     map[string]string      // the last execution that went well, by who ran it
}

func newSkills(dataDir string) *skills {
	s := &skills{indexes: map[string]*skillIndex{}, analysed: map[string]analysis{}, last: map[string]string{}}
	if dataDir != "" {
		s.store = skill.New(filepath.Join(dataDir, "skills"))
	}
	return s
}

func noSkills() error {
	return &tool.Error{Kind: tool.Denied, Message: "skills are not kept here", Hint: "the operator has set no data directory"}
}

// ended remembers the last execution that went well, for save_skill(from_execution="last").
func (s *skills) ended(ctx context.Context, e execution.Result) {
	if e.Failed() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= maxSessions {
		clear(s.last)
	}
	s.last[tool.Principal(ctx)+"\x00"+tool.Session(ctx)] = e.ID
}

// foundSkill is a skill as somebody finds it.
type foundSkill struct {
	skill.Skill
	shared  bool
	problem error // why it cannot be imported
}

// skill finds a skill for whoever asks: their own, else a shared one. Errors are *tool.Error.
func (g *Gateway) skill(ctx context.Context, name string, version int) (foundSkill, error) {
	if g.skills.store == nil {
		return foundSkill{}, noSkills()
	}
	asked := strings.TrimPrefix(toolcall.TrimName(name), skillsID+".")
	plainName, err := skill.Name(asked)
	if err != nil {
		return foundSkill{}, g.noSkill(ctx, asked)
	}
	if candidate := toolcall.ScopeOf(ctx).Candidate; candidate != nil && candidate.Name == plainName {
		return foundSkill{Skill: *candidate}, nil
	}
	one, err := g.skills.store.Load(tool.Principal(ctx), plainName, version)
	if err == nil {
		return foundSkill{Skill: one}, nil
	}
	if !errors.Is(err, skill.ErrNotFound) {
		return foundSkill{}, &tool.Error{Kind: tool.Invalid, Message: "skill " + plainName + " cannot be read: " + plain.Line(err.Error(), 200)}
	}
	one, err = g.skills.store.LoadShared(plainName, version)
	switch {
	case err == nil:
		return foundSkill{Skill: one, shared: true}, nil
	case errors.Is(err, skill.ErrNotFound):
		if version > 0 {
			if current, err := g.skill(ctx, name, 0); err == nil {
				return foundSkill{}, g.noVersion(ctx, current, version)
			}
		}
		return foundSkill{}, g.noSkill(ctx, asked)
	}
	return foundSkill{}, &tool.Error{Kind: tool.Denied, Message: "skill " + plainName + " cannot be used: " + plain.Line(err.Error(), 200), Hint: "an operator must approve it: sallyport skills review"}
}

func (g *Gateway) noVersion(ctx context.Context, current foundSkill, version int) error {
	hint := fmt.Sprintf("its version is %d", current.Version)
	if list := g.skills.store.Versions(tool.Principal(ctx), current.Name); len(list) > 1 {
		hint = plain.Line("there are: "+strings.Trim(fmt.Sprint(list), "[]"), 200)
	}
	return &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("skill %s has no version %d", current.Name, version), Hint: hint}
}

func (g *Gateway) noSkill(ctx context.Context, name string) error {
	err := &tool.Error{Kind: tool.NotFound, Message: "there is no skill " + plain.Line(name, 80), Hint: "list_skills() names those that there are"}
	if near := nearest.Of(skill.Module(name), g.skillModules(ctx)); near != "" {
		err.Hint = "did you mean skills." + near + "?"
	}
	return err
}

// skillModules are the modules below "skills" that somebody can import.
func (g *Gateway) skillModules(ctx context.Context) []string {
	if g.skills.store == nil {
		return nil
	}
	names := append(g.skills.store.Names(tool.Principal(ctx)), g.skills.store.Shared()...)
	slices.Sort(names)
	names = slices.Compact(names)
	for i, name := range names {
		names[i] = skill.Module(name)
	}
	return names
}

// SaveSkill keeps a new version of a skill for whoever asks and returns what is told to the model. Errors are *tool.Error.
func (g *Gateway) SaveSkill(ctx context.Context, d SkillDraft) (string, error) {
	switch {
	case g.skills.store == nil:
		return "", noSkills()
	case toolcall.ScopeOf(ctx).Candidate != nil:
		return "", &tool.Error{Kind: tool.Denied, Message: "a skill's tests cannot save skills"}
	}
	settings := g.cfg.Load().Skills
	if err := checkScope(d.Scope, settings.Shared); err != nil {
		return "", err
	}
	draft, notes, err := g.draft(ctx, d)
	if err != nil {
		return "", err
	}
	if err := g.testSkill(ctx, draft); err != nil {
		return "", err
	}
	g.Guard.MarkSkill(ctx, draft.Name, false)
	saved, err := g.skills.store.Save(tool.Principal(ctx), draft)
	if err != nil {
		return "", g.unsaved(ctx, err)
	}
	said := []string{fmt.Sprintf("saved %s, version %d", saved.Name, saved.Version) + importText(saved)}
	said = append(said, notes...)
	if d.Scope == scopeShared {
		told, err := g.shareSkill(ctx, saved, settings.Review)
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

func (g *Gateway) shareSkill(ctx context.Context, one skill.Skill, review bool) (string, error) {
	g.Guard.MarkSkill(ctx, one.Name, true)
	if _, err := g.skills.store.Propose(tool.Principal(ctx), one); err != nil {
		return "", g.unsaved(ctx, err)
	}
	if err := g.Auditor.Audit(ctx, audit.Event{Kind: audit.SkillShared, After: one.Digest(), Note: fmt.Sprintf("%s version %d, review %t", one.Name, one.Version, review)}); err != nil {
		return "", err
	}
	if review {
		return "it is yours; others see it when an operator has approved it (sallyport skills review)", nil
	}
	if _, err := g.skills.store.Approve(one.Name, ""); err != nil {
		return "", g.unsaved(ctx, err)
	}
	return "it is shared with everybody", nil
}

func (g *Gateway) unsaved(ctx context.Context, err error) error {
	if errors.Is(err, skill.ErrFull) || errors.Is(err, skill.ErrTooLarge) {
		return &tool.Error{Kind: tool.Limit, Message: err.Error(), Hint: "the operator can remove some: sallyport skills rm"}
	}
	g.log.ErrorContext(ctx, "skill is not saved", "error", err)
	return &tool.Error{Kind: tool.Internal, Message: "the skill could not be saved", Hint: "the operator's log says why", Err: err}
}

// draft makes the next version of a skill. notes tell what was done to its code.
func (g *Gateway) draft(ctx context.Context, d SkillDraft) (next skill.Skill, notes []string, err error) {
	name, err := skill.Name(strings.TrimSpace(d.Name))
	if err != nil {
		return next, nil, &tool.Error{Kind: tool.Invalid, Message: err.Error()}
	}
	before, err := g.skills.store.Load(tool.Principal(ctx), name, 0)
	known := err == nil
	next = skill.Skill{Front: skill.Front{Name: name, Description: cleanDescription(d.Description), Language: before.Language}, Files: map[string][]byte{}}
	if known {
		next.Adopt(before.Front)
		next.Version = before.Version // until it is saved
		maps.Copy(next.Files, before.Files)
		next.Description = cmp.Or(next.Description, before.Description)
	}
	if d.Language != "" {
		interpreter, err := execution.Interpreter(d.Language)
		if err != nil {
			return next, nil, err
		}
		next.Language = execution.LanguageName(interpreter)
	}
	code, notes, err := g.draftCode(ctx, d, &next)
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
	return next, notes, g.complete(ctx, &next)
}

// draftCode is the code of a draft, "" for that of the version before.
func (g *Gateway) draftCode(ctx context.Context, d SkillDraft, next *skill.Skill) (string, []string, error) {
	switch {
	case d.From != "" && d.Code != "":
		return "", nil, &tool.Error{Kind: tool.Invalid, Message: "code and from_execution cannot be given together"}
	case d.From != "":
		return g.fromExecution(ctx, d, next)
	case len(d.Params) > 0 && d.Code == "":
		return "", nil, &tool.Error{Kind: tool.Invalid, Message: "params are for from_execution", Hint: `from_execution="last" takes the last program that went well`}
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

// complete fills in what is known from the code: signatures, a description where none is given, the tools that it calls.
func (g *Gateway) complete(ctx context.Context, next *skill.Skill) error {
	found, err := g.analyse(ctx, *next)
	if err != nil {
		return err
	}
	next.Functions, next.Parameters = found.signatures, found.parameters
	next.Description = cmp.Or(next.Description, cleanDescription(found.doc))
	if next.Description == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "description is missing", Hint: "say in a line or two what the skill does; search finds it by that"}
	}
	next.Tools = g.toolDigests(next.Code())
	next.Body = skillBody(*next)
	if err := next.Check(); err != nil {
		return &tool.Error{Kind: tool.Invalid, Message: plain.Line(err.Error(), 200)}
	}
	return nil
}

// cleanDescription is a description without what does not show, of a length that fits.
func cleanDescription(text string) string {
	text = strings.TrimSpace(plain.Text(text, skill.MaxDescription))
	for len(text) > skill.MaxDescription {
		text = plain.Head(text, len([]rune(text))-1)
	}
	return text
}

func skillBody(s skill.Skill) string {
	return fmt.Sprintf("# %s\n\n%s\n\n```%s\n%s\n```\n", s.Name, s.Description, s.Language, strings.Join(append([]string{skillImport(s)}, s.Functions...), "\n"))
}

// LoadSkill tells of a skill all there is, its code too; version 0 is the current one. Errors are *tool.Error.
func (g *Gateway) LoadSkill(ctx context.Context, name string, version int) (string, error) {
	one, err := g.skill(ctx, name, version)
	if err != nil {
		return "", err
	}
	g.Guard.ReadSkill(ctx, one.Name, one.shared)
	g.lazily(ctx, &one.Skill)
	var b strings.Builder
	fmt.Fprintf(&b, "%s, version %d, %s", one.Name, one.Version, one.Language)
	if one.shared {
		b.WriteString(", shared by " + cmp.Or(plain.Line(one.Author, 60), "the operator"))
	}
	b.WriteString("\n" + plain.Text(one.Description, skill.MaxDescription) + importText(one.Skill))
	for _, flag := range g.skillFlags(one.Skill) {
		b.WriteString("\nwarning: " + flag)
	}
	if code := one.Code(); code != "" {
		b.WriteString("\n--- " + skill.CodeFile(one.Language) + "\n" + strings.TrimRight(execution.Visible(code), "\n"))
	} else {
		b.WriteString("\n---\n" + plain.Text(one.Body, maxSkillText))
	}
	var others []string
	for _, path := range slices.Sorted(maps.Keys(one.Files)) {
		if path != skill.CodeFile(one.Language) {
			others = append(others, plain.Line(path, 100))
		}
	}
	if len(others) > 0 {
		b.WriteString("\n--- also: " + strings.Join(others[:min(len(others), 20)], ", "))
	}
	return plain.Text(b.String(), maxSkillText), nil
}

// maxSkillText is how much is told of one skill, in characters.
const maxSkillText = 32 << 10

// ListSkills tells which skills there are for whoever asks, or which fit a query. Errors are *tool.Error.
func (g *Gateway) ListSkills(ctx context.Context, query string) (string, error) {
	if g.skills.store == nil {
		return "", noSkills()
	}
	found, err := g.findSkills(ctx, strings.TrimSpace(query[:min(len(query), maxQuery)]), maxLimit)
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
		g.Guard.ReadSkill(ctx, hit.Name, hit.shared)
		line := hit.Name
		if hit.shared {
			line += " (shared)"
		}
		if hit.problem != nil {
			lines = append(lines, line+": "+plain.Line(hit.problem.Error(), 120))
			continue
		}
		lines = append(lines, line+": "+firstSentence(hit.Description, ""))
	}
	if more := len(found) - maxListedSkills; more > 0 {
		lines = append(lines, fmt.Sprintf("(%d more; give a query)", more))
	}
	return strings.Join(lines, "\n"), nil
}

// maxListedSkills is how many skills are listed.
const maxListedSkills = 60
