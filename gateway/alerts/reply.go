package alerts

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"sallyport/internal/approval"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/webhook"
)

const (
	// maxReads bounds the bodies that are read at a time, as their senders are not known yet; maxReply the size of one, in
	// bytes, and readTimeout the time.
	maxReads    = 16
	maxReply    = 16 << 10
	readTimeout = 10 * time.Second
)

// reply is the body of an answer. The signature does not cover the path, so the body names the approval.
type reply struct {
	Approval string         `json:"approval"`
	Decision string         `json:"decision"`
	Scope    approval.Scope `json:"scope"`
	Note     string         `json:"note"`
}

// refused is an answer that is not taken.
type refused struct {
	status  int
	kind    tool.Kind
	message string
}

// errUnsigned is the same for all callers that do not prove who they are.
var errUnsigned = &refused{http.StatusUnauthorized, tool.Denied, webhook.ErrSignature.Error()}

// ServeHTTP answers POST /api/approvals/{id}/reply: a receiver's answer to an approval that it got, signed with its
// secret. It does not check access tokens.
func (a *Alerts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, no := a.accept(w, r)
	status, body, media := http.StatusOK, any(map[string]string{"approval": q.ID, "state": string(q.State)}), "application/json"
	if no != nil {
		a.opts.Logger.Debug("an answer of a receiver of alerts was refused", "status", no.status, "error", no.message)
		status, media = no.status, "application/problem+json"
		body = map[string]any{"title": http.StatusText(no.status), "status": no.status, "detail": no.message, "kind": no.kind}
	}
	data, err := json.Marshal(body)
	if err != nil { // texts and a number
		data = []byte("{}")
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have disconnected
}

// accept reads an answer, checks who sends it, and answers the approval.
func (a *Alerts) accept(w http.ResponseWriter, r *http.Request) (approval.Approval, *refused) {
	body, no := a.read(w, r)
	if no != nil {
		return approval.Approval{}, no
	}
	senders := a.sendersOf(r.Header, body)
	if len(senders) == 0 {
		return approval.Approval{}, errUnsigned
	}
	said, no := parseReply(body, r.PathValue("id"))
	if no != nil {
		return approval.Approval{}, no
	}
	for _, set := range senders {
		_, err := a.sent.Get(r.Context(), sentKey(set.Name, said.Approval))
		if err == nil {
			return a.answer(r, set.Name, said)
		}
		if !errors.Is(err, store.ErrNotFound) {
			a.opts.Logger.Error("cannot read which alerts were sent", "error", err)
			return approval.Approval{}, &refused{http.StatusServiceUnavailable, tool.Internal, "the records cannot be read"}
		}
	}
	return approval.Approval{}, &refused{http.StatusNotFound, tool.NotFound, "this receiver got no such approval"}
}

func (a *Alerts) answer(r *http.Request, name string, said reply) (approval.Approval, *refused) {
	answer := approval.Answer{Allow: said.Decision == "allow", Done: said.Decision == "done", Scope: said.Scope, By: "alert " + name, Note: said.Note}
	q, err := a.opts.Answer(tool.WithOperator(r.Context(), "alert "+name), said.Approval, answer)
	if err == nil {
		return q, nil
	}
	e := tool.AsError(err)
	status, known := map[tool.Kind]int{tool.NotFound: http.StatusNotFound, tool.Invalid: http.StatusConflict}[e.Kind]
	if !known {
		status = http.StatusServiceUnavailable
	}
	return q, &refused{status, e.Kind, e.Message}
}

func (a *Alerts) read(w http.ResponseWriter, r *http.Request) ([]byte, *refused) {
	select {
	case a.reads <- struct{}{}:
		defer func() { <-a.reads }()
	default:
		return nil, &refused{http.StatusServiceUnavailable, tool.Limit, "too many concurrent requests"}
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(readTimeout)) // fails in tests, without a connection
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReply))
	if err != nil {
		return nil, &refused{http.StatusRequestEntityTooLarge, tool.Invalid, "the body did not arrive, or is too large"}
	}
	_ = conn.SetReadDeadline(time.Time{})
	return body, nil
}

// sendersOf returns the receivers that have the secret of a signature. All secrets are tried, each in constant time.
func (a *Alerts) sendersOf(header http.Header, body []byte) (senders []config.Alert) {
	now := time.Now()
	for _, set := range a.opts.Settings.Load().Alerts {
		if set.Secret == "" || set.Problem != "" {
			continue
		}
		if _, err := webhook.Verify(string(set.Secret), header, body, now); err == nil && set.Wants(config.OnApproval) {
			senders = append(senders, set)
		}
	}
	return senders
}

// parseReply parses a body strictly; its approval must be that of the path.
func parseReply(body []byte, id string) (said reply, no *refused) {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&said)
	switch {
	case err != nil:
		return said, &refused{http.StatusBadRequest, tool.Invalid, sanitize.Line("the body is not an answer: "+err.Error(), 200)}
	case decoder.More():
		return said, &refused{http.StatusBadRequest, tool.Invalid, "the body has more than an answer"}
	case said.Approval != id:
		return said, &refused{http.StatusBadRequest, tool.Invalid, "approval must be the id in the path"}
	case said.Decision != "allow" && said.Decision != "deny" && said.Decision != "done":
		return said, &refused{http.StatusBadRequest, tool.Invalid, "decision must be allow, deny or done"}
	}
	return said, nil
}
