package guard

import (
	"context"

	"sallyport/gateway/toolcall"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/workspace"
)

// skillLabels returns the labels of the skills of one principal, or of the shared ones. A skill keeps the labels of all its versions.
func (f *flows) skillLabels(principal string, shared bool) *workspaceLabels {
	if shared {
		return f.labels.get(store.Key{"skills", "shared", "all"})
	}
	return f.labels.get(store.Key{"skills", workspace.Folder(principal), "private"})
}

// MarkSkill adds the labels of what the caller has read to a skill. Call it before the skill is saved.
func (g *Guard) MarkSkill(ctx context.Context, name string, shared bool) {
	origins := g.SessionOrigins(ctx)
	if len(origins) == 0 {
		return
	}
	if r := toolcall.ExecutionOf(ctx); r != nil {
		for i := range origins {
			origins[i].Execution = r.ID
		}
	}
	g.flows.skillLabels(tool.Principal(ctx), shared).set(func(m *marks) {
		var all toolcall.Trail
		all.Add(m.Files[name]...)
		all.Add(origins...)
		m.Files[name] = all.Origins()
	})
}

// ReadSkill records the labels of a skill as read, before the caller gets it.
func (g *Guard) ReadSkill(ctx context.Context, name string, shared bool) {
	if !g.policies.rules.Load().on {
		return
	}
	origins := g.flows.skillLabels(tool.Principal(ctx), shared).file(name)
	for i := range origins {
		origins[i].Tool, origins[i].File = "", "skills/"+name
	}
	g.AddOrigins(ctx, origins)
}
