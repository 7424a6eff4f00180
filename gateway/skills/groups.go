package skills

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// view is what one caller sees: the skills without groups, and those with one of its groups. For the caller, other skills do not
// exist. The groups of the current version of a skill count for all of its versions.
type view struct {
	*Library
	principal string
	groups    []string
	// all is set for callers that see skills whatever their groups are.
	all bool
}

// viewOf returns what the caller's programs see. Local clients over stdio are the owner of the data directory, and see all.
func viewOf(ctx context.Context, s *Library) view {
	principal := tool.Principal(ctx)
	groups, _ := s.opts.Directory.Groups(principal) // unknown ones are none
	return view{Library: s, principal: principal, groups: groups, all: principal == "" && !tool.Remote(ctx)}
}

// pageView returns what the API and the dashboard show: an operator sees all there. Its programs see no more than its groups allow.
func pageView(ctx context.Context, s *Library) view {
	v := viewOf(ctx, s)
	v.all = v.all || tool.Operator(ctx) != ""
	return v
}

// key identifies an index of the caller. stamp changes with the groups of the caller.
func (v view) key() string   { return fmt.Sprintf("%t %s", v.all, v.principal) }
func (v view) stamp() string { return fmt.Sprintf("%q", v.groups) }

// admits reports whether the caller sees a skill with these groups.
func (v view) admits(groups []string) bool {
	return v.all || len(groups) == 0 || slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(v.groups, group) })
}

// own returns a skill of the caller. Errors are as those of [skill.Store.Load].
func (v view) own(name string, version int) (skill.Skill, error) {
	return v.load(version, func(version int) (skill.Skill, error) { return v.store.Load(v.principal, name, version) })
}

// sharedSkill returns a shared skill. Errors are as those of [skill.Store.LoadShared]. It opens no file of a skill that the caller
// does not see, so that the answer takes as long as for one that does not exist.
func (v view) sharedSkill(name string, version int) (skill.Skill, error) {
	if known, ok := v.shared.of(v.store)[name]; !ok || !v.all && (known.unreadable || !v.admits(known.groups)) {
		return skill.Skill{}, skill.ErrNotFound
	}
	return v.loadShared(name, version)
}

func (v view) loadShared(name string, version int) (skill.Skill, error) {
	one, err := v.load(version, func(version int) (skill.Skill, error) { return v.store.LoadShared(name, version) })
	if !v.all && unreadable(err) {
		return skill.Skill{}, skill.ErrNotFound
	}
	return one, err
}

func (v view) load(version int, load func(version int) (skill.Skill, error)) (skill.Skill, error) {
	current, err := load(0)
	switch {
	case !v.admits(current.Groups):
		return skill.Skill{}, skill.ErrNotFound
	case version == 0 || unreadable(err):
		return current, err
	}
	return load(version)
}

// unreadable reports whether a skill could not be loaded, so that its groups are unknown.
func unreadable(err error) bool { return err != nil && !errors.Is(err, skill.ErrChanged) }

// sharedGroups caches the groups of the shared skills. The zero value is ready to use.
type sharedGroups struct {
	mu    sync.Mutex
	stamp string
	known map[string]restriction // by name
}

// restriction has the groups of a shared skill. For one that cannot be read they are unknown; only views of all skills show it.
type restriction struct {
	groups     []string
	unreadable bool
}

// of returns the restrictions of the shared skills in a store, by name.
func (g *sharedGroups) of(store *skill.Store) map[string]restriction {
	g.mu.Lock()
	defer g.mu.Unlock()
	stamp := store.SharedStamp()
	if g.known != nil && g.stamp == stamp {
		return g.known
	}
	known := map[string]restriction{}
	for _, name := range store.SharedNames() {
		one, err := store.LoadShared(name, 0)
		known[name] = restriction{one.Groups, unreadable(err)}
	}
	g.stamp, g.known = stamp, known
	return known
}

// nextGroups returns the groups of the next version of a skill: those of the draft, else those that the skill has now.
func (v view) nextGroups(name string, d SkillDraft, before skill.Skill) ([]string, error) {
	if err := v.checkFree(name, d.Scope); err != nil {
		return nil, err
	}
	groups := before.Groups
	if d.Scope == scopeShared {
		if one, err := v.sharedSkill(name, 0); !unreadable(err) && len(one.Groups) > 0 {
			groups = one.Groups
		}
	}
	if d.Groups != nil {
		groups = *d.Groups
	}
	if err := skill.CheckGroups(groups); err != nil {
		return nil, &tool.Error{Kind: tool.Invalid, Message: err.Error()}
	}
	if !v.admits(groups) {
		return nil, &tool.Error{Kind: tool.Denied, Message: "you are in none of these groups: " + groupNames(groups), Hint: "a skill needs a group of its author; groups=[] is for all"}
	}
	return groups, nil
}

// checkFree returns an error if a new version would replace a skill that the caller does not see.
func (v view) checkFree(name, scope string) error {
	hidden := func(one skill.Skill, err error) bool {
		return !errors.Is(err, skill.ErrNotFound) && !v.admits(one.Groups)
	}
	taken := hidden(v.store.Load(v.principal, name, 0))
	if scope == scopeShared && !v.all {
		shared, err := v.store.LoadShared(name, 0)
		taken = taken || hidden(shared, err) || unreadable(err) && !errors.Is(err, skill.ErrNotFound)
		taken = taken || hidden(v.store.LoadPending(name))
	}
	if !taken {
		return nil
	}
	return &tool.Error{Kind: tool.Denied, Message: "the name " + name + " is taken", Hint: "choose another name"}
}

// groupNames returns groups as text.
func groupNames(groups []string) string { return sanitize.Line(strings.Join(groups, ", "), 300) }

// audience says who sees a skill, as "the groups a, b"; "everybody" without groups.
func audience(groups []string) string {
	if len(groups) == 0 {
		return "everybody"
	}
	return "the groups " + groupNames(groups)
}
