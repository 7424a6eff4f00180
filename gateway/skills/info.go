package skills

import (
	"context"
	"errors"
	"maps"
	"slices"

	"sallyport/gateway/toolcall"
	"sallyport/internal/sanitize"
	"sallyport/internal/skill"
	"sallyport/internal/tool"
)

// SkillInfo is a skill in a list.
type SkillInfo struct {
	Name string `json:"name"`
	// Description, Functions and Parameters are untrusted text of its author.
	Description string `json:"description,omitempty"`
	// Language is python or typescript.
	Language string `json:"language"`
	Version  int    `json:"version"`
	// Scope is private, shared (with everybody), or pending: an operator must approve sharing it.
	Scope string `json:"scope"`
	// Author is who asked for it to be shared.
	Author string `json:"author,omitempty"`
	// Groups restricts it to members of these groups, by its SKILL.md; empty: all principals see it.
	Groups []string `json:"groups,omitempty"`
	// Import is the line that imports it; "" where it has no code.
	Import string `json:"import,omitempty"`
	// Functions are the signatures of what it exports, the main one first; Parameters are those of the main one.
	Functions  []string `json:"functions,omitempty"`
	Parameters []string `json:"parameters,omitempty"`
	// Tested says that it has tests, which passed when it was saved by save_skill.
	Tested bool `json:"tested"`
	// Problem is why it cannot be imported, "" if it can. Warnings name the tools that have changed since it was saved.
	Problem  string   `json:"problem,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// SkillDetail is a skill with all its details.
type SkillDetail struct {
	SkillInfo
	// Versions are the stored versions, latest first; a pending skill has one.
	Versions []int `json:"versions,omitempty"`
	// Digest is the SHA-256 of all its files, which `sallyport skills approve NAME@DIGEST` takes.
	Digest string `json:"digest"`
	// Code and Tests are its programs, Text is what its SKILL.md says below the front matter.
	Code  string `json:"code,omitempty"`
	Tests string `json:"tests,omitempty"`
	Text  string `json:"text,omitempty"`
	// Files are all of its files but SKILL.md.
	Files []SkillFile `json:"files,omitempty"`
	// Tools are the tools that it calls, compared with those when it was saved.
	Tools []SkillTool `json:"tools,omitempty"`
}

// SkillFile is a file of a skill.
type SkillFile struct {
	Path string `json:"path"`
	// Size is in bytes.
	Size int `json:"size"`
}

// SkillTool is a tool that a skill calls.
type SkillTool struct {
	Tool string `json:"tool"`
	// State is same, changed (since the skill was saved), gone, or unknown where its upstream was never reached.
	State string `json:"state"`
}

const scopePending = "pending"

// SkillList returns the skills of the caller and the shared ones that it sees, by name; for an operator also the pending ones. It reads
// files and runs nothing. Errors are *tool.Error.
func (s *Library) SkillList(ctx context.Context) ([]SkillInfo, error) {
	if s.store == nil {
		return nil, noStoreError()
	}
	found, err := s.findSkills(ctx, pageView(ctx, s), "", 0)
	if err != nil {
		return nil, err
	}
	list := make([]SkillInfo, 0, len(found))
	for _, hit := range found {
		list = append(list, s.skillInfo(hit.foundSkill))
	}
	if tool.Operator(ctx) == "" {
		return list, nil
	}
	for _, name := range s.store.Pending() {
		one, err := s.store.LoadPending(name)
		one.Name = name
		info := s.skillInfo(foundSkill{Skill: one, problem: err})
		info.Scope = scopePending
		list = append(list, info)
	}
	return list, nil
}

func (s *Library) skillInfo(one foundSkill) SkillInfo {
	info := SkillInfo{
		Name: one.Name, Description: one.Description, Language: one.Language, Version: one.Version, Scope: scopePrivate, Author: one.Author, Groups: one.Groups,
		Functions: one.Functions, Parameters: one.Parameters, Tested: one.Tests() != "",
	}
	if one.shared {
		info.Scope = scopeShared
	}
	if one.problem != nil {
		info.Problem = sanitize.Line(one.problem.Error(), 200)
		return info
	}
	if one.Code() != "" {
		info.Import = skillImport(one.Skill)
	}
	info.Warnings = s.skillFlags(one.Skill)
	return info
}

// SkillOf returns a skill that the caller can import, a version of it, the current one for 0. Errors are *tool.Error.
func (s *Library) SkillOf(ctx context.Context, name string, version int) (SkillDetail, error) {
	one, err := pageView(ctx, s).skill(ctx, name, version)
	if err != nil {
		return SkillDetail{}, err
	}
	d := s.skillDetail(one)
	if !one.shared {
		d.Versions = s.store.Versions(tool.Principal(ctx), one.Name)
		slices.Sort(d.Versions)
		slices.Reverse(d.Versions)
	}
	return d, nil
}

// PendingSkill returns a skill that waits to be shared, for operators only. Errors are *tool.Error.
func (s *Library) PendingSkill(ctx context.Context, name string) (SkillDetail, error) {
	switch {
	case s.store == nil:
		return SkillDetail{}, noStoreError()
	case tool.Operator(ctx) == "":
		return SkillDetail{}, toolcall.OperatorsOnly("a pending skill")
	}
	one, err := s.store.LoadPending(name)
	if errors.Is(err, skill.ErrNotFound) {
		return SkillDetail{}, &tool.Error{Kind: tool.NotFound, Message: "no pending skill " + sanitize.Line(name, 80)}
	}
	one.Name = name
	d := s.skillDetail(foundSkill{Skill: one, problem: err})
	d.Scope = scopePending
	return d, nil
}

func (s *Library) skillDetail(one foundSkill) SkillDetail {
	d := SkillDetail{SkillInfo: s.skillInfo(one), Digest: one.Digest(), Code: one.Code(), Tests: one.Tests(), Text: one.Body}
	for _, path := range slices.Sorted(maps.Keys(one.Files)) {
		d.Files = append(d.Files, SkillFile{path, len(one.Files[path])})
	}
	for _, name := range slices.Sorted(maps.Keys(one.Tools)) {
		d.Tools = append(d.Tools, SkillTool{name, s.toolState(name, one.Tools[name])})
	}
	return d
}

// toolState compares a tool with its recorded digest.
func (s *Library) toolState(name, digest string) string {
	id, err := tool.ParseID(name)
	if err != nil {
		return "unknown"
	}
	switch now := s.opts.Catalog.Digest(id); {
	case now == digest:
		return "same"
	case now != "":
		return "changed"
	case s.offersKnown(id.Upstream):
		return "gone"
	}
	return "unknown"
}
