package trigger

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sallyport/gateway/toolcall"
	"sallyport/gateway/workflow"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/expr"
	"sallyport/internal/policy"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/internal/webhook"
)

const (
	// maxBody limits a request body, in bytes.
	maxBody = 1 << 20
	// readTimeout is the timeout for reading it.
	readTimeout = 10 * time.Second
	// maxReads limits the bodies that are read concurrently: they are not authenticated yet.
	maxReads = 32
	// perSecond and burst are the rate limit of starts for one workflow.
	perSecond, burst = 5, 50
)

// Hooks handles POST /hooks/NAME: a request that is signed with the secret of workflow NAME starts it. A caller without the
// secret learns nothing, not even which workflows exist. It does not check access tokens. It is safe for concurrent use.
type Hooks struct {
	opts        Options
	mux         *http.ServeMux
	dummySecret string // the secret for unknown workflows, for constant work
	readSlots   chan struct{}
	logLimit    rate.Sometimes // limits the log of unauthenticated requests

	mu     sync.Mutex
	limits map[string]*rate.Limiter // by the names of workflows
}

// NewHooks returns the handler.
func NewHooks(opts Options) *Hooks {
	h := &Hooks{
		opts: opts.withDefaults(), mux: http.NewServeMux(), dummySecret: rand.Text(),
		readSlots: make(chan struct{}, maxReads), logLimit: rate.Sometimes{First: 10, Interval: 10 * time.Second}, limits: map[string]*rate.Limiter{},
	}
	h.mux.HandleFunc("POST /hooks/{name}", h.receive)
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// refusal is an error response.
type refusal struct {
	*tool.Error

	status          int
	unauthenticated bool // refused before authentication
}

func refuse(status int, kind tool.Kind, message string) *refusal {
	return &refusal{Error: &tool.Error{Kind: kind, Message: message}, status: status}
}

func (h *Hooks) receive(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	run, no := h.accept(w, r, name)
	if no != nil {
		h.logRefusal(name, no)
		respond(w, no.status, "application/problem+json", map[string]any{
			"title": http.StatusText(no.status), "status": no.status, "detail": no.Message, "hint": no.Hint, "kind": no.Kind,
		})
		return
	}
	h.opts.Logger.Info("a webhook started a run", "workflow", name, "run", run.ID)
	respond(w, http.StatusAccepted, "application/json", map[string]any{"run": run.ID})
}

func (h *Hooks) logRefusal(name string, no *refusal) {
	say := func() {
		h.opts.Logger.Warn("a webhook was refused", "workflow", name[:min(len(name), 64)], "status", no.status, "error", no.Error)
	}
	if no.unauthenticated {
		h.logLimit.Do(say)
		return
	}
	say()
}

func respond(w http.ResponseWriter, status int, kind string, body map[string]any) {
	if hint, has := body["hint"]; has && hint == "" {
		delete(body, "hint")
	}
	data, err := json.Marshal(body)
	if err != nil { // texts and a number
		data = []byte("{}")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "10")
	}
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client may have disconnected
}

// accept reads a request, authenticates it, and starts the run.
func (h *Hooks) accept(w http.ResponseWriter, r *http.Request, name string) (workflow.Run, *refusal) {
	body, no := h.read(w, r)
	var d *spec.Definition
	var id string
	if no == nil {
		d, id, no = h.authenticate(r, name, body)
	}
	if no != nil {
		no.unauthenticated = true
		return workflow.Run{}, no
	}
	if !h.limit(name).Allow() {
		return workflow.Run{}, refuse(http.StatusTooManyRequests, tool.Limit, "too many requests for this workflow")
	}
	inputs, no := h.inputs(r, d, body)
	if no != nil {
		return workflow.Run{}, no
	}
	// The signature proves the sender, but the content may come from others and stays untrusted.
	read := []toolcall.Origin{{Label: policy.Untrusted, Tool: "webhook " + name, Time: time.Now().UTC()}}
	run, err := h.opts.Starter.Start(r.Context(), workflow.Start{Workflow: name, Inputs: inputs, Trigger: "webhook", Key: "webhook " + id, Read: read})
	if err != nil {
		return workflow.Run{}, asRefusal(err)
	}
	return run, nil
}

func (h *Hooks) read(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	select {
	case h.readSlots <- struct{}{}:
		defer func() { <-h.readSlots }()
	default:
		return nil, refuse(http.StatusServiceUnavailable, tool.Limit, "too many concurrent requests")
	}
	if r.ContentLength > maxBody {
		return nil, refuse(http.StatusRequestEntityTooLarge, tool.Invalid, "the body is larger than 1 MiB")
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(readTimeout)) // fails in tests, without a connection
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		_ = conn.SetReadDeadline(time.Time{}) // the response may take longer
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, refuse(http.StatusRequestEntityTooLarge, tool.Invalid, "the body is larger than 1 MiB")
	}
	if err != nil {
		return nil, refuse(http.StatusRequestTimeout, tool.Timeout, "the body did not arrive")
	}
	return body, nil
}

// authenticate returns the workflow of a request and the request id if the signature is valid. It does the same work for an unknown workflow.
func (h *Hooks) authenticate(r *http.Request, name string, body []byte) (*spec.Definition, string, *refusal) {
	d, scheme, secret, known := h.opts.find(name), standard, h.dummySecret, false
	if d != nil && d.On.Webhook != nil {
		scheme = d.On.Webhook.Scheme
		if s := h.opts.Secrets[d.On.Webhook.Secret.Text]; s != "" {
			secret, known = s, true
		} else {
			h.opts.Logger.Error("a webhook has no secret: set it in workflows.secrets", "workflow", name, "secret", d.On.Webhook.Secret.Text)
		}
	}
	id, err := verify(scheme, secret, r.Header, body, time.Now())
	if err != nil || !known {
		return nil, "", refuse(http.StatusUnauthorized, tool.Denied, webhook.ErrSignature.Error())
	}
	return d, id, nil
}

// limit returns the rate limit of a workflow's starts.
func (h *Hooks) limit(name string) *rate.Limiter {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limits[name] == nil {
		h.limits[name] = rate.NewLimiter(perSecond, burst)
	}
	return h.limits[name]
}

// inputs returns the body's members, or the value of the webhook's "with".
func (h *Hooks) inputs(r *http.Request, d *spec.Definition, body []byte) (json.RawMessage, *refusal) {
	parsed, err := expr.Decode(body)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, tool.Invalid, "the body is not JSON: "+err.Error())
	}
	object, isObject := parsed.(map[string]any)
	if !isObject {
		return nil, refuse(http.StatusBadRequest, tool.Invalid, "the body is not a JSON object")
	}
	if d.On.Webhook.With == nil {
		return body, nil
	}
	inputs, err := h.opts.inputs(r.Context(), d, *d.On.Webhook.With, map[string]any{"request": map[string]any{"body": object, "headers": headers(r.Header)}})
	if err != nil {
		return nil, asRefusal(err)
	}
	return inputs, nil
}

// hiddenHeaders are headers that workflows and their logs must not see.
var hiddenHeaders = map[string]bool{"Authorization": true, "Cookie": true, "Proxy-Authorization": true, "Webhook-Signature": true, "X-Hub-Signature": true, "X-Hub-Signature-256": true}

// headers returns the headers of a request by lower-case name, without the withheld ones.
func headers(all http.Header) map[string]any {
	found := map[string]any{}
	for name, values := range all {
		if !hiddenHeaders[name] {
			found[strings.ToLower(name)] = strings.Join(values, ", ")
		}
	}
	return found
}

// asRefusal returns the response to an authenticated request that failed.
func asRefusal(err error) *refusal {
	e := tool.AsError(err)
	switch {
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrClosed), e.Kind == tool.Canceled:
		return refuse(http.StatusServiceUnavailable, tool.Limit, "no run can be started now")
	case e.Kind == tool.Invalid:
		return &refusal{Error: e, status: http.StatusUnprocessableEntity}
	case e.Kind == tool.Limit:
		return &refusal{Error: e, status: http.StatusTooManyRequests}
	case e.Kind == tool.Failed:
		return &refusal{Error: e, status: http.StatusConflict}
	case e.Kind == tool.NotFound: // it has been removed
		return &refusal{Error: e, status: http.StatusNotFound}
	case e.Kind == tool.Denied:
		return &refusal{Error: e, status: http.StatusForbidden}
	}
	return &refusal{Error: e, status: http.StatusInternalServerError}
}
