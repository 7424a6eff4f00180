package cli

import (
	"context"
	"slices"

	"sallyport/gateway/approvals"
	"sallyport/gateway/httpapi"
	"sallyport/internal/approval"
	"sallyport/internal/tool"
)

// PendingApprovals returns the pending approvals of the gateways, the oldest first; with all, also those that are no longer pending.
func PendingApprovals(ctx context.Context, c *Gateways, all bool) ([]approvals.Approval, error) {
	list := []approvals.Approval{}
	err := GetFromAll(ctx, c, "/approvals", func(more httpapi.ApprovalList) { list = append(list, more.Approvals...) })
	if !all {
		list = slices.DeleteFunc(list, func(one approvals.Approval) bool { return one.State != approval.Waiting && one.State != approval.Lost })
	}
	slices.SortStableFunc(list, func(x, y approvals.Approval) int { return x.Asked.Compare(y.Asked) })
	return list, err
}

// NeedDataDir returns the data directory, or an error if there is none.
func (a *App) NeedDataDir() (string, error) {
	dir := a.DataDir()
	if dir == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "there is no data directory", Hint: "say which with --data DIR, or set HOME"}
	}
	return dir, nil
}
