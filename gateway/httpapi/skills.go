package httpapi

import (
	"context"
	"net/http"

	"sallyport/gateway/skills"
)

// Skills are the skills of the caller and the shared ones; for an operator also those waiting to be shared.
type Skills interface {
	SkillList(ctx context.Context) ([]skills.SkillInfo, error)
	SkillOf(ctx context.Context, name string, version int) (skills.SkillDetail, error)
}

// SkillList is what GET /skills gives.
type SkillList struct {
	// Skills are sorted by name.
	Skills []skills.SkillInfo `json:"skills"`
}

func (a *api) skills(r *http.Request) (SkillList, error) {
	list, err := a.service.SkillList(r.Context())
	if list == nil {
		list = []skills.SkillInfo{}
	}
	return SkillList{Skills: list}, err
}

func (a *api) skill(r *http.Request) (skills.SkillDetail, error) {
	return a.service.SkillOf(r.Context(), r.PathValue("name"), queryOf(r).number("version"))
}
