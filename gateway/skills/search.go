package skills

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sallyport/codegen"
	"sallyport/gateway/catalog"
	"sallyport/gateway/toolcall"
	"sallyport/gateway/toolsearch"
	"sallyport/index"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// Search also finds skills: the principal's own ones and the shared ones that it sees. Every
// principal has a separate index, so that skills do not affect the ranking of other principals'
// skills, or of tools.

// maxIndexes is how many principals have their skills in memory.
const maxIndexes = 64

// skillIndex is the index of one principal's skills.
type skillIndex struct {
	stamp  string
	skills map[string]foundSkill // by module
	index  *index.Index
}

// indexFor returns the index of a caller, and rebuilds it after changes of skills or of the caller's groups. It has no word of
// a skill that the caller does not see, so that the others rank as without it. It is called with mu held.
func (s *Library) indexFor(v view) (*skillIndex, error) {
	stamp := s.store.Stamp(v.principal) + "\x00" + s.store.SharedStamp() + "\x00" + v.stamp()
	old := s.indexes[v.key()]
	if old != nil && old.stamp == stamp {
		return old, nil
	}
	made := &skillIndex{stamp: stamp, skills: v.skills()}
	var docs []index.Doc
	for _, module := range slices.Sorted(maps.Keys(made.skills)) {
		if one := made.skills[module]; one.problem == nil {
			docs = append(docs, skillDocument(one.Skill))
		}
	}
	all, err := index.New(docs, nil)
	if err != nil {
		return nil, err
	}
	made.index = all
	if old == nil && len(s.indexes) >= maxIndexes {
		for other, gone := range s.indexes {
			_ = gone.index.Close()
			delete(s.indexes, other)
			break
		}
	}
	if old != nil {
		_ = old.index.Close()
	}
	s.indexes[v.key()] = made
	return made, nil
}

// skills returns the skills that the caller sees, by module.
func (v view) skills() map[string]foundSkill {
	all := map[string]foundSkill{}
	for _, name := range v.store.SharedNames() {
		if one, err := v.loadShared(name, 0); err == nil {
			all[skill.Module(name)] = foundSkill{Skill: one, shared: true}
		}
	}
	for _, name := range v.store.Names(v.principal) {
		one, err := v.own(name, 0)
		if errors.Is(err, skill.ErrNotFound) {
			continue
		}
		one.Name = name
		all[skill.Module(name)] = foundSkill{Skill: one, problem: err}
	}
	return all
}

func skillDocument(one skill.Skill) index.Doc {
	doc := index.Doc{ID: tool.ID{Upstream: toolcall.SkillsID, Name: one.Module()}, Kind: index.Skill, Wire: one.Name, Title: strings.ReplaceAll(one.Name, "-", " "), Description: sanitize.Text(one.Description, skill.MaxDescription)}
	for _, p := range one.Parameters {
		name, _, _ := strings.Cut(p, ":")
		doc.Params = append(doc.Params, index.Param{Name: sanitize.Line(name, 100)})
	}
	return doc
}

// Close closes the indexes.
func (s *Library) Close() error {
	s.background.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.indexes {
		_ = one.index.Close() // it is in memory
	}
	clear(s.indexes)
	return nil
}

// skillHit is a skill that matches a query.
type skillHit struct {
	foundSkill
	cover float64
	words int
	weak  bool
}

// findSkills returns the skills in a view that match a query, best first; all, by name, for "".
func (s *Library) findSkills(ctx context.Context, v view, query string, limit int) ([]skillHit, error) {
	if s.store == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	mine, err := s.indexFor(v)
	if err != nil {
		return nil, toolsearch.SearchError(err)
	}
	var found []skillHit
	if query == "" || len(mine.skills) == 0 {
		for _, module := range slices.Sorted(maps.Keys(mine.skills)) {
			found = append(found, skillHit{foundSkill: mine.skills[module], cover: 1})
		}
		return found, nil
	}
	results, err := mine.index.Search(ctx, index.Query{Text: query, Limit: limit})
	if err != nil {
		return nil, toolsearch.SearchError(err)
	}
	known := 1 - float64(len(results.Unmatched))/float64(max(results.Words, 1))
	for _, hit := range results.Hits {
		found = append(found, skillHit{mine.skills[hit.ID.Name], min(hit.Cover, known), results.Words, results.Weak})
	}
	return found, nil
}

// Find returns the skills of the caller that match a query.
func (s *Library) Find(ctx context.Context, query string, limit int) ([]toolsearch.Item, error) {
	hits, err := s.findSkills(ctx, viewOf(ctx, s), query, limit)
	if err != nil {
		return nil, err
	}
	items := make([]toolsearch.Item, len(hits))
	for i, hit := range hits {
		items[i] = toolsearch.Item{
			ID: tool.ID{Upstream: toolcall.SkillsID, Name: hit.Module()}, Name: hit.Name, Cover: hit.cover, Words: hit.words, Weak: hit.weak, Broken: hit.problem != nil,
			Describe: func(d toolsearch.Detail) toolsearch.FoundTool { return s.describeSkill(ctx, hit.foundSkill, d) },
		}
	}
	return items, nil
}

// Describe returns the full description of a skill of the caller.
func (s *Library) Describe(ctx context.Context, name string) (toolsearch.FoundTool, error) {
	one, err := s.skill(ctx, name, 0)
	if err != nil {
		return toolsearch.FoundTool{}, err
	}
	return s.describeSkill(ctx, one, toolsearch.Full), nil
}

// maxShownFunctions is how many signatures of one skill a search shows.
const maxShownFunctions = 3

func (s *Library) describeSkill(ctx context.Context, one foundSkill, detail toolsearch.Detail) toolsearch.FoundTool {
	found := toolsearch.FoundTool{ID: tool.ID{Upstream: toolcall.SkillsID, Name: one.Module()}, Kind: index.Skill}
	s.opts.Guard.ReadSkill(ctx, one.Name, one.shared)
	if detail == toolsearch.Names {
		return found
	}
	found.Summary = catalog.FirstSentence(one.Description, "")
	if detail == toolsearch.Summary {
		return found
	}
	compiler{s}.fillSignatures(ctx, &one.Skill)
	found.Import, found.Text = skillImport(one.Skill), skillText(one)
	found.Notes = s.skillFlags(one.Skill)
	if detail == toolsearch.Full {
		parts := []string{found.Import + "\n" + found.Text, codegen.QuoteLookalikes(sanitize.Text(one.Description, skill.MaxDescription))}
		for _, flag := range found.Notes {
			parts = append(parts, "warning: "+flag)
		}
		found.Text, found.Notes = strings.Join(append(parts, fmt.Sprintf("load_skill(%q) shows its code.", one.Name)), "\n"), nil
	}
	return found
}

// skillText returns the signatures of a skill, with a comment that marks it as one.
func skillText(one foundSkill) string {
	mark := " # skill"
	if one.Language == skill.TypeScript {
		mark = " // skill"
	}
	if one.shared {
		mark += ", shared"
	}
	lines := make([]string, 0, maxShownFunctions)
	for _, f := range one.Functions[:min(len(one.Functions), maxShownFunctions)] {
		lines = append(lines, sanitize.Line(f, maxSignature))
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("load_skill(%q)", one.Name))
	}
	lines[0] += " " + mark
	return strings.Join(lines, "\n  ")
}

var functionName = regexp.MustCompile(`^(?:async )?([\p{L}_$][\p{L}\p{Nd}_$]*)`)

// skillImport returns the line that imports a skill's functions.
func skillImport(one skill.Skill) string {
	var names []string
	for _, f := range one.Functions[:min(len(one.Functions), maxShownFunctions)] {
		if found := functionName.FindStringSubmatch(f); found != nil {
			names = append(names, found[1])
		}
	}
	switch {
	case one.Code() == "":
		return "from sallyport import load_skill"
	case one.Language == skill.TypeScript && len(names) == 0:
		return fmt.Sprintf("import * as %s from %q", one.Module(), toolcall.SkillsID+"/"+one.Module())
	case one.Language == skill.TypeScript:
		return fmt.Sprintf("import { %s } from %q", strings.Join(names, ", "), toolcall.SkillsID+"/"+one.Module())
	case len(names) == 0:
		return "import skills." + one.Module()
	}
	return "from skills." + one.Module() + " import " + strings.Join(names, ", ")
}

// importText returns the import on a line of its own, with the signatures below it.
func importText(one skill.Skill) string {
	if one.Code() == "" {
		return ""
	}
	lines := []string{"", skillImport(one)}
	for _, f := range one.Functions[:min(len(one.Functions), maxShownFunctions)] {
		lines = append(lines, sanitize.Line(f, maxSignature))
	}
	return strings.Join(lines, "\n")
}

// maxFlags is how many changed tools are reported.
const maxFlags = 3

// skillFlags returns warnings about called tools that have changed since the skill was saved.
func (s *Library) skillFlags(one skill.Skill) (flags []string) {
	for _, name := range slices.Sorted(maps.Keys(one.Tools)) {
		id, err := tool.ParseID(name)
		if err != nil {
			continue
		}
		switch digest := s.opts.Catalog.Digest(id); {
		case digest == one.Tools[name]:
		case digest != "":
			flags = append(flags, sanitize.Line(name, 120)+" changed since it was saved")
		case s.offersKnown(id.Upstream):
			flags = append(flags, sanitize.Line(name, 120)+" no longer exists")
		}
	}
	if more := len(flags) - maxFlags; more > 0 {
		flags = append(flags[:maxFlags], fmt.Sprintf("and %d more tools", more))
	}
	return flags
}

// offersKnown reports whether the upstream's offer is known, so that a missing tool is gone. It is true for an upstream that was removed from the settings.
func (s *Library) offersKnown(upstream string) bool {
	for _, up := range s.opts.Catalog.Upstreams() {
		if up.ID == upstream {
			return up.Known || up.State.Tools > 0
		}
	}
	return true
}

var (
	fromServers  = regexp.MustCompile(`\bfrom\s+servers\.(\w+)\s+import\s+(\([^)]*\)|[^\n;]*)`)
	tsServers    = regexp.MustCompile(`\bimport\s*\{([^}]*)\}\s*from\s*["']servers/(\w+)["']`)
	moduleCall   = regexp.MustCompile(`\b(\w+)\.(\w+)\s*\(`)
	importedName = regexp.MustCompile(`\w+`)
)

// toolDigests returns the digests of the tools that a program imports, as far as its text shows them.
func (s *Library) toolDigests(code string) map[string]string {
	tools := map[string]string{}
	add := func(upstream, name string) {
		id := tool.ID{Upstream: upstream, Name: name}
		if digest := s.opts.Catalog.Digest(id); digest != "" && len(tools) < maxSkillTools {
			tools[id.String()] = digest
		}
	}
	list := func(upstream, names string) {
		for entry := range strings.SplitSeq(names, ",") {
			add(upstream, importedName.FindString(entry)) // the name before "as"
		}
	}
	for _, found := range fromServers.FindAllStringSubmatch(code, -1) {
		list(found[1], found[2])
	}
	for _, found := range tsServers.FindAllStringSubmatch(code, -1) {
		list(found[2], found[1])
	}
	if strings.Contains(code, "servers") {
		for _, found := range moduleCall.FindAllStringSubmatch(code, -1) {
			add(found[1], found[2])
		}
	}
	return tools
}

// maxSkillTools is how many tools of one skill are recorded.
const maxSkillTools = 100
