package dashboard

import (
	"context"
	"fmt"
	"strings"

	"sallyport/gateway/skills"
	"sallyport/gateway/workflow"
	"sallyport/internal/skill"
)

// Skills are those of the caller and the shared ones, for an operator also those that wait to be shared.
type Skills interface {
	SkillList(ctx context.Context) ([]skills.SkillInfo, error)
	SkillOf(ctx context.Context, name string, version int) (skills.SkillDetail, error)
	PendingSkill(ctx context.Context, name string) (skills.SkillDetail, error)
}

// SkillsPage is the list of skills.
type SkillsPage struct {
	Skills []skills.SkillInfo
	// Waiting are those that wait for an operator.
	Waiting []skills.SkillInfo
}

func (d *Dashboard) skills(r *request) (any, error) {
	all, err := d.service.SkillList(r.Context())
	p := SkillsPage{}
	for _, s := range all {
		if s.Scope == "pending" {
			p.Waiting = append(p.Waiting, s)
		} else {
			p.Skills = append(p.Skills, s)
		}
	}
	return p, err
}

// SkillPage is one skill.
type SkillPage struct {
	skills.SkillDetail
	Code, Tests Source
	// Others are the other versions, with where they are.
	Others []Crumb
	// UsedBy are the workflows that have a step of it.
	UsedBy []string
}

func (d *Dashboard) skill(r *request) (any, error) {
	name, load := r.PathValue("name"), d.service.SkillOf
	if r.URL.Query().Get("scope") == "pending" {
		load = func(ctx context.Context, name string, _ int) (skills.SkillDetail, error) {
			return d.service.PendingSkill(ctx, name)
		}
	}
	detail, err := load(r.Context(), name, r.number("version"))
	if err != nil {
		return nil, err
	}
	r.setTitle(detail.Name, Crumb{"Skills", "/ui/skills"})
	p := SkillPage{SkillDetail: detail, Code: source("Code", detail.Code, 0), Tests: source("Tests", detail.Tests, 0)}
	for _, version := range detail.Versions {
		if version != detail.Version {
			p.Others = append(p.Others, Crumb{fmt.Sprint("version ", version), r.with("version", fmt.Sprint(version))})
		}
	}
	for _, w := range (workflowPages{d}).visibleWorkflows(r) {
		if usesSkill(w.Steps, detail.Name) {
			p.UsedBy = append(p.UsedBy, w.Name)
		}
	}
	return p, nil
}

// usesSkill reports whether one of the steps, or of those within, is a skill's.
func usesSkill(steps []workflow.Outline, name string) bool {
	for _, step := range steps {
		of, _, _ := strings.Cut(step.Of, ".") // and a function
		if named, err := skill.Name(of); step.Kind == "skill" && err == nil && named == name || usesSkill(step.Steps, name) {
			return true
		}
	}
	return false
}
