package upstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/gateway/upstream/jsontext"
	"sallyport/internal/redact"
	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

const (
	// maxShownReason and maxShownAnswer bound, in runes, the text of an upstream in an error.
	maxShownReason = 300
	maxShownAnswer = 2000
	// maxInspected bounds the text that is cleaned before it is truncated, in bytes.
	maxInspected = 64 << 10
)

// errRejected is the SDK's error for a message that it could not send; it does not export it.
var errRejected = jsonrpc.Error{Code: -32005, Message: "rejected by transport"}

// redactor prepares text of an upstream for display: cleaned, bounded, and without the
// values of the settings' environment, headers and URL. It also redacts secrets in
// messages.
type redactor struct {
	values *strings.Replacer
	// mask redacts secrets in everything that an upstream sends. Unlike values, which are for
	// errors only, it has only values that look like secrets: a result may contain a path
	// or a mode of the environment.
	mask *redact.Mask // nil hides nothing
	book *redact.Book
	id   string
}

// learn adds tokens to the redacted values.
func (v redactor) learn(tokens ...string) {
	for _, token := range tokens {
		v.book.Learn(v.id, token)
	}
}

func newRedactor(s Settings, book *redact.Book) redactor {
	values := slices.Collect(maps.Values(s.Env))
	for _, value := range s.Headers {
		values = append(values, value)
		if _, token, ok := strings.Cut(value, " "); ok { // "Bearer TOKEN"
			values = append(values, token)
		}
	}
	values = append(slices.AppendSeq(values, maps.Values(s.Query)), string(s.Basic.Password))
	for _, address := range []string{s.URL, s.OpenAPI} {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		password, _ := u.User.Password()
		values = append(values, password)
		for _, of := range u.Query() {
			values = append(values, of...)
		}
	}
	if book == nil {
		book = &redact.Book{}
	}
	return redactor{replacer(values), book.For(s.ID, s.SecretValues()...), book, s.ID}
}

func replacer(secrets []string) *strings.Replacer {
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < redact.Shortest })
	// The longest first: the replacer uses the first match.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, redact.Hidden)
	}
	return strings.NewReplacer(pairs...)
}

// redactMessage redacts secrets in every message of an upstream: results, definitions,
// requests and notifications, before they are processed.
func (v redactor) redactMessage(msg jsonrpc.Message) {
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		msg.Result = v.mask.Hide(msg.Result)
		if e := rpcError(msg.Error); e != nil {
			e.Message, e.Data = v.mask.Text(e.Message), v.mask.Hide(e.Data)
		}
	case *jsonrpc.Request:
		msg.Params = v.mask.Hide(msg.Params)
	}
}

func (v redactor) line(s string, limit int) string { return sanitize.Line(v.clean(s), limit) }
func (v redactor) text(s string, limit int) string { return sanitize.Text(v.clean(s), limit) }

// clean redacts before and after cleaning, which removes invisible characters within secrets.
func (v redactor) clean(s string) string {
	s = s[:min(len(s), maxInspected)]
	return v.replaceSecrets(sanitize.Text(v.replaceSecrets(s), maxInspected))
}

func (v redactor) replaceSecrets(s string) string { return v.mask.Text(v.values.Replace(s)) }

// describe returns an error as one redacted line.
func (v redactor) describe(err error) string {
	if err == nil {
		return "unknown reason"
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Message
	}
	if e, ok := errors.AsType[*url.Error](err); ok { // its text has the URL, which may contain a key
		return v.line(e.Err.Error(), maxShownReason)
	}
	if e := rpcError(err); e != nil {
		return v.line(e.Message, maxShownReason)
	}
	if errors.Is(err, mcp.ErrSessionMissing) {
		return "the server no longer knows the session"
	}
	return v.line(err.Error(), maxShownReason)
}

// faults builds the errors of a session.
type faults struct{ *Session }

// callError turns the error of a call into one that a program can handle. ctx is
// the caller's context, limited the one with the time limit of the call.
func (s faults) callError(ctx, limited context.Context, name string, waited time.Duration, err error) *tool.Error {
	id := tool.ID{Upstream: s.settings.ID, Name: name}
	again := s.repeatable(id)
	switch {
	case ctx.Err() != nil:
		return s.contextError(ctx)
	case limited.Err() != nil:
		return &tool.Error{Kind: tool.Timeout, Err: err,
			Message: fmt.Sprintf("%s gave no answer within %s", id, seconds(waited)),
			Hint:    "it may still have taken effect", Retryable: again}
	}
	if _, deep := errors.AsType[*jsontext.DepthError](err); deep || isMalformed(err) {
		return s.badAnswerError(name, err)
	}
	if isTooLarge(err) {
		return &tool.Error{Kind: tool.Upstream, Err: err, Message: fmt.Sprintf("%s: upstream failed: %s", id, err),
			Hint: "it may have taken effect; ask for less: a page, a filter, fewer fields (or raise max_message of the upstream)"}
	}
	if e, ok := errors.AsType[*loginError](err); ok {
		return s.loginNeededError(e)
	}
	if e := s.scopeError(err); e != nil {
		return s.loginNeededError(e)
	}
	if e := rpcError(err); e != nil && httpStatus(err) == 0 {
		return &tool.Error{Kind: kindOf(e.Code), Message: fmt.Sprintf("%s: %s", id, s.redactor.text(e.Message, maxShownAnswer)), Err: err}
	}
	if errors.Is(err, errClosed) {
		return s.closedError()
	}
	hint := "the call may or may not have taken effect; the next call connects again"
	switch {
	case notBegun(err):
		hint, again = "the call has not taken effect; the next one connects again", true
	case httpStatus(err) == http.StatusTooManyRequests:
		hint, again = "the call has not taken effect; wait a while", true
	case !isTransient(err):
		again = false
	}
	return &tool.Error{Kind: tool.Upstream, Err: err, Hint: hint, Retryable: again,
		Message: fmt.Sprintf("%s: upstream failed: %s", id, s.redactor.describe(err))}
}

// isTransient reports whether a call that failed with err may succeed next time: not
// with too large a response, nor when the server refuses it.
func isTransient(err error) bool {
	status := httpStatus(err)
	return !errors.Is(err, errFlood) && !isTooLarge(err) && (status == 0 || status >= 500 || status == http.StatusRequestTimeout)
}

// rpcError returns the JSON-RPC error of an upstream's response, nil for any other
// error.
func rpcError(err error) *jsonrpc.Error {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code == errRejected.Code && e.Message == errRejected.Message {
		return nil
	}
	return e
}

// kindOf maps the code of a JSON-RPC error of tools/call to a kind.
func kindOf(code int64) tool.Kind {
	switch code {
	case jsonrpc.CodeInvalidParams:
		return tool.Invalid
	case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound:
		return tool.Upstream
	}
	return tool.Failed
}

// connectError is the error of a failed attempt. limited is the attempt's own context.
func (s faults) connectError(limited context.Context, err error) *tool.Error {
	if e, ok := errors.AsType[*loginError](err); ok {
		return s.loginNeededError(e)
	}
	if e := s.scopeError(err); e != nil {
		return s.loginNeededError(e)
	}
	reason := s.redactor.describe(err)
	if limited.Err() != nil {
		reason = "no answer within " + seconds(s.opts.ConnectTimeout)
		if p := s.dialer.process.Load(); p != nil {
			if words := p.Stderr.Headline(); words != "" {
				reason += "; stderr: " + s.redactor.line(words, maxShownReason)
			}
		}
	}
	kind, again := tool.Upstream, !s.cannotStart(err)
	switch e, ok := errors.AsType[*tool.Error](err); {
	case ok && e.Kind == tool.Invalid: // the upstream's settings are, not the caller's arguments
		again = false
	case ok:
		kind, again = e.Kind, again && e.Kind == tool.Upstream
	}
	// Nothing has been called yet.
	return &tool.Error{Kind: kind, Message: fmt.Sprintf("cannot connect to upstream %s: %s", s.settings.ID, reason), Err: err, Retryable: again}
}

// cannotStart reports whether the program cannot be started, and a retry would fail too.
func (s faults) cannotStart(err error) bool {
	return s.settings.Command != "" && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission))
}

// scopeError returns the login error of a call that lacks a scope, nil for any
// other error.
func (s faults) scopeError(err error) *loginError {
	switch e := rpcError(err); {
	case e == nil:
		return nil
	case e.Code == codeScopeRemedy:
		return &loginError{reason: e.Message, scope: true}
	case e.Code == codeScope:
		return &loginError{reason: e.Message, remedy: remedyFor(s.settings, s.opts.Auth), scope: true}
	}
	return nil
}

// lostError is the error of a lost link.
func (s faults) lostError(err error) *tool.Error {
	if e, ok := errors.AsType[*loginError](err); ok {
		return s.loginNeededError(e)
	}
	return &tool.Error{Kind: tool.Upstream, Err: err, Message: fmt.Sprintf("upstream %s is down: %s", s.settings.ID, s.redactor.describe(err))}
}

// loginNeededError is the error of a missing authorization. Its kind is denied: neither a program nor a retry can resolve it.
func (s faults) loginNeededError(e *loginError) *tool.Error {
	return &tool.Error{Kind: tool.Denied, Err: e, Hint: e.remedy,
		Message: fmt.Sprintf("upstream %s needs authorization: %s", s.settings.ID, s.redactor.line(e.reason, maxShownReason))}
}

func (s faults) closedError() *tool.Error {
	return &tool.Error{Kind: tool.Upstream, Message: "the session with upstream " + s.settings.ID + " is closed", Err: errClosed}
}

// contextError is the error of a caller after its ctx has ended.
func (s faults) contextError(ctx context.Context) *tool.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &tool.Error{Kind: tool.Timeout, Message: "time ran out waiting for upstream " + s.settings.ID, Err: ctx.Err()}
	}
	return &tool.Error{Kind: tool.Canceled, Message: "canceled while waiting for upstream " + s.settings.ID, Err: ctx.Err()}
}

func (s faults) badAnswerError(name string, err error) *tool.Error {
	return &tool.Error{Kind: tool.Upstream, Err: err,
		Message: fmt.Sprintf("%s.%s returned an invalid result: %s", s.settings.ID, name, s.redactor.describe(err))}
}

func (s faults) unknownToolError(name string, names []string) *tool.Error {
	e := &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("upstream %s has no tool %s", s.settings.ID, sanitize.Line(fmt.Sprintf("%q", name), 80))}
	if near := suggest.Of(name, names); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	return e
}

// seconds formats a duration in seconds: "0.2s", "60s".
func seconds(d time.Duration) string {
	return fmt.Sprintf("%.3gs", d.Seconds())
}
