package httpapi

import (
	"context"
	"net/http"
	"time"

	"sallyport/gateway/catalog"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Upstreams are the upstreams and their quarantined tool definitions.
type Upstreams interface {
	Upstreams() []catalog.Upstream
	HeldTools(ctx context.Context) ([]catalog.HeldTool, error)
	// ReviewHeld approves or rejects the definition with a digest, for operators only.
	ReviewHeld(ctx context.Context, id tool.ID, r catalog.HeldReview) error
}

// UpstreamList is what GET /upstreams gives.
type UpstreamList struct {
	// Upstreams are in the order of the settings, without those that are disabled.
	Upstreams []UpstreamState `json:"upstreams"`
}

// UpstreamState is the state of one upstream.
type UpstreamState struct {
	// ID is the module that programs import its tools from, Name its name in the settings.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Description is its description in the settings.
	Description string `json:"description,omitempty"`
	// Status is idle, connecting, ready, failed and so on, Since the time of the last change.
	Status string    `json:"status"`
	Since  time.Time `json:"since,omitzero"`
	// Reason says why it is not available; omitted if a call reaches or starts it.
	Reason string `json:"reason,omitempty"`
	// Login says that a login is required: sallyport auth login.
	Login bool `json:"login,omitempty"`
	// RetryAt is the time until which calls fail immediately.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Server is the name and version that it reports.
	Server string `json:"server,omitempty"`
	// Protocol is the negotiated protocol version.
	Protocol string `json:"protocol,omitempty"`
	// Tools is the number of known tools, Held that of further ones that wait for a review.
	Tools int `json:"tools"`
	Held  int `json:"held,omitempty"`
	// Cached says that its definitions are from an earlier run.
	Cached bool `json:"cached,omitempty"`
}

func (a *api) upstreams(*http.Request) (UpstreamList, error) {
	list := UpstreamList{Upstreams: []UpstreamState{}}
	for _, up := range a.service.Upstreams() {
		s := up.State
		list.Upstreams = append(list.Upstreams, UpstreamState{
			ID: up.ID, Name: up.Name, Description: sanitize.Line(up.Description, 300), Status: string(s.Status), Since: s.Since, Reason: up.Problem(), Login: s.Login, RetryAt: s.RetryAt,
			Server: sanitize.Line(s.ServerName+" "+s.ServerVersion, 200), Protocol: sanitize.Line(s.Protocol, 40), Tools: s.Tools, Held: up.Held, Cached: up.Cached,
		})
	}
	return list, nil
}

// HeldList is what GET /upstreams/held gives.
type HeldList struct {
	// Held are definitions of tools that cannot be called until an operator approves them.
	Held []catalog.HeldTool `json:"held"`
	// Rejected are those that an operator rejected. They can still be approved.
	Rejected []catalog.HeldTool `json:"rejected"`
}

// heldRoutes are the routes on quarantined definitions.
type heldRoutes struct{ service Upstreams }

func (h heldRoutes) list(r *http.Request) (HeldList, error) {
	all, err := h.service.HeldTools(r.Context())
	list := HeldList{[]catalog.HeldTool{}, []catalog.HeldTool{}}
	for _, one := range all {
		if one.Rejected == nil {
			list.Held = append(list.Held, one)
		} else {
			list.Rejected = append(list.Rejected, one)
		}
	}
	return list, err
}

// HeldApproval is what POST /upstreams/held/{tool} takes.
type HeldApproval struct {
	// Digest is the digest of the reviewed definition.
	Digest string `json:"digest"`
}

// HeldRejection is what POST /upstreams/held/{tool}/reject takes.
type HeldRejection struct {
	// Digest is the digest of the reviewed definition.
	Digest string `json:"digest"`
	// Reason is shown to programs that call the tool, one line of at most 300 characters.
	Reason string `json:"reason,omitempty"`
}

func (h heldRoutes) approve(r *http.Request, in HeldApproval) (HeldList, error) {
	return h.review(r, catalog.HeldReview{Digest: in.Digest})
}

func (h heldRoutes) reject(r *http.Request, in HeldRejection) (HeldList, error) {
	return h.review(r, catalog.HeldReview{Digest: in.Digest, Reject: true, Reason: in.Reason})
}

// review decides about a definition, and returns those still held.
func (h heldRoutes) review(r *http.Request, decision catalog.HeldReview) (HeldList, error) {
	id, err := tool.ParseID(r.PathValue("tool"))
	if err != nil {
		return HeldList{}, &tool.Error{Kind: tool.NotFound, Message: "there is no tool " + sanitize.Line(r.PathValue("tool"), 150), Hint: "GET /upstreams/held lists those that wait"}
	}
	if err := h.service.ReviewHeld(r.Context(), id, decision); err != nil {
		return HeldList{}, err
	}
	return h.list(r)
}
