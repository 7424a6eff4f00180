package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
)

const (
	// authorizeTimeout bounds one attempt to get an authorization.
	authorizeTimeout = 5 * time.Minute
	// scopePause is how long a failure to get a scope is remembered before the next
	// attempt; tokenPause is the same for a token, which is needed sooner.
	scopePause = time.Minute
	tokenPause = time.Second
	// maxAttempts bounds the attempts that are kept: an upstream can request any number of scopes.
	maxAttempts = 16
)

// guard adds the access token to requests, and gets a new one when the server refuses
// it: concurrent refusals share one attempt, and each request is retried once. It only
// sees requests to the upstream's own origin. It is safe for concurrent use.
type guard struct {
	auth     Authorizer // nil sends requests unchanged
	remedy   string     // what a user can do about a refusal
	redactor redactor
	// spawn runs f in a goroutine, with a context that ends with the link.
	spawn func(f func(ctx context.Context))
	// working counts the goroutines that get a token or an authorization.
	working atomic.Int32

	mu         sync.Mutex
	generation int // number of new authorizations so far
	// attempts holds the attempts in flight and the failed ones, by the scope they were
	// for: a failure for one scope does not apply to another, or to a token.
	attempts  map[string]*authAttempt
	denied    error  // why no further request is sent, a *loginError; nil if requests are
	lastToken string // the last token that was added to the redacted values
}

// headerOf returns the header with a token. An [Authorizer] with keys has one of its own.
func headerOf(auth Authorizer, token string) (name, value string) {
	if k, ok := auth.(interface {
		Header(key string) (string, string)
	}); ok {
		return k.Header(token)
	}
	return "Authorization", "Bearer " + token
}

// hideToken redacts a token, and the authorizer's other secrets, in what the upstream sends.
func (g *guard) hideToken(token string) {
	g.mu.Lock()
	known := g.lastToken == token && token != ""
	g.lastToken = token
	g.mu.Unlock()
	if known {
		return
	}
	if s, ok := g.auth.(interface{ Secrets() []string }); ok {
		g.redactor.learn(s.Secrets()...)
	}
	g.redactor.learn(token)
}

// loginRequired is an error of an [Authorizer] that only a user can resolve; its
// text says what to do.
type loginRequired interface {
	error
	NeedsLogin() bool
}

// authAttempt is one attempt to get an authorization, shared by all requests that wait for
// it. err and ended may be read once done is closed.
type authAttempt struct {
	done  chan struct{}
	pause time.Duration // how long a failure is remembered
	err   error
	ended time.Time
}

// expired reports whether the failure is too old to be reused.
func (f *authAttempt) expired() bool {
	select {
	case <-f.done:
		return time.Since(f.ended) >= f.pause
	default:
		return false
	}
}

// refusedError is why one request failed, as code and message of a JSON-RPC error.
type refusedError struct {
	code   int64
	reason string
}

func (e *refusedError) Error() string { return e.reason }

// remedyFor returns what a user can do when the upstream refuses the authorization. An [Authorizer] may have its own advice.
func remedyFor(s Settings, auth Authorizer) string {
	if hasKey(s) {
		return "check its Authorization header"
	}
	if r, ok := auth.(interface{ Remedy() string }); ok {
		return r.Remedy()
	}
	return "a person has to run: sallyport auth login " + s.ID
}

// send sends a request with its token, and retries once with a new one if that is
// refused. The error is a *loginError if no request can succeed until a user
// acts, a *refusedError if only this request was refused.
func (g *guard) send(req *http.Request, base http.RoundTripper) (*http.Response, error) {
	if err := g.refusal(); err != nil {
		return nil, err
	}
	resp, round, err := g.try(req, base)
	if err != nil || !refuses(resp) || req.Method == http.MethodDelete {
		return resp, err
	}
	reason := status(resp)
	if err := g.renew(req, resp, round); err != nil {
		return nil, g.giveUp(req.Context(), resp, reason, err)
	}
	again, err := rewind(req)
	if err != nil {
		return nil, err
	}
	resp, _, err = g.try(again, base)
	if err != nil || !refuses(resp) {
		return resp, err
	}
	_ = resp.Body.Close()
	return nil, g.giveUp(req.Context(), resp, status(resp), nil)
}

// try sends a request once, and returns the number of authorizations before it.
func (g *guard) try(req *http.Request, base http.RoundTripper) (*http.Response, int, error) {
	g.mu.Lock()
	round := g.generation
	g.mu.Unlock()
	token, err := g.token(req.Context())
	if err != nil {
		return nil, round, err
	}
	if token != "" {
		req.Header.Set(headerOf(g.auth, token))
	}
	resp, err := base.RoundTrip(req)
	return resp, round, err
}

// background runs f in a goroutine that gets a token or an authorization.
func (g *guard) background(f func(life context.Context)) {
	g.working.Add(1)
	g.spawn(func(life context.Context) {
		defer g.working.Add(-1)
		f(life)
	})
}

// authorizing reports whether requests wait for a token or an authorization.
func (g *guard) authorizing() bool { return g.working.Load() > 0 }

// token returns the access token, "" if there is none. A refresh may need a
// request, for which the caller waits at most until ctx ends.
func (g *guard) token(ctx context.Context) (string, error) {
	if g.auth == nil {
		return "", nil
	}
	type got struct {
		token *oauth2.Token
		err   error
	}
	result := make(chan got, 1)
	g.background(func(life context.Context) {
		source, err := g.auth.TokenSource(life)
		if err != nil || source == nil {
			g.hideToken("")
			result <- got{nil, err}
			return
		}
		token, err := source.Token()
		if err != nil {
			g.hideToken("") // the error response may repeat what was sent
		}
		result <- got{token, err}
	})
	select {
	case r := <-result:
		if _, refused := errors.AsType[*oauth2.RetrieveError](r.err); refused {
			return "", nil // the upstream refuses too, and Authorize handles that
		}
		if e, ok := errors.AsType[loginRequired](r.err); ok && e.NeedsLogin() {
			return "", g.close(&loginError{reason: r.err.Error()})
		}
		if r.err != nil {
			return "", &refusedError{codeHTTP - http.StatusUnauthorized, "get access token: " + r.err.Error()}
		}
		if r.token == nil {
			return "", nil
		}
		g.hideToken(r.token.AccessToken)
		return r.token.AccessToken, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// renew gets a new authorization after a refusal, unless another call got one since
// the request was sent. It closes the response's body and replaces it by its beginning.
func (g *guard) renew(req *http.Request, resp *http.Response, round int) error {
	if g.auth == nil {
		_ = resp.Body.Close()
		return errors.New("")
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // optional
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(head))
	f := g.joinAttempt(req, resp, round)
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return f.err
	case <-req.Context().Done():
		return req.Context().Err()
	}
}

// joinAttempt returns the flight to wait for, nil if there is a newer authorization already.
func (g *guard) joinAttempt(req *http.Request, resp *http.Response, round int) *authAttempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.generation != round {
		return nil
	}
	maps.DeleteFunc(g.attempts, func(_ string, f *authAttempt) bool { return f.expired() })
	want, pause := missingScope(resp)
	if f := g.attempts[want]; f != nil {
		return f
	}
	f := &authAttempt{done: make(chan struct{}), pause: pause}
	if g.attempts == nil {
		g.attempts = map[string]*authAttempt{}
	}
	if len(g.attempts) < maxAttempts {
		g.attempts[want] = f
	}
	g.background(func(life context.Context) {
		limited, cancel := context.WithTimeout(life, authorizeTimeout)
		defer cancel()
		g.finishAttempt(want, f, g.auth.Authorize(limited, req, resp))
	})
	return f
}

// missingScope returns a key for the scope that a refusal requires, "" for a token, and how long a failure is remembered.
func missingScope(resp *http.Response) (string, time.Duration) {
	if resp.StatusCode == http.StatusUnauthorized {
		return "", tokenPause
	}
	challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ",")
	return challenge[:min(len(challenge), 1000)], scopePause
}

func (g *guard) finishAttempt(want string, f *authAttempt, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.err, f.ended = err, time.Now(); err == nil {
		g.generation++
		if g.attempts[want] == f {
			delete(g.attempts, want)
		}
	}
	close(f.done)
}

// giveUp returns the error for a refused request that is not retried. If the server
// does not accept any token, and no attempt to get one failed temporarily, further
// requests are refused too. cause may be nil.
func (g *guard) giveUp(ctx context.Context, resp *http.Response, reason string, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cause != nil && cause.Error() != "" {
		reason += ": " + cause.Error()
	}
	login, ok := errors.AsType[loginRequired](cause)
	switch {
	case resp.StatusCode != http.StatusUnauthorized && ok && login.NeedsLogin():
		return &refusedError{codeScopeRemedy, reason}
	case resp.StatusCode != http.StatusUnauthorized:
		return &refusedError{codeScope, reason}
	case ok && login.NeedsLogin():
		return g.close(&loginError{reason: login.Error()}) // its text says what to do
	case g.auth != nil && cause != nil:
		return &refusedError{codeHTTP - http.StatusUnauthorized, reason}
	}
	return g.close(&loginError{reason: reason, remedy: g.remedy})
}

// close refuses all further requests, for the first reason given.
func (g *guard) close(why *loginError) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.denied == nil {
		g.denied = why
	}
	return g.denied
}

func (g *guard) refusal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.denied
}

// refuses reports whether a new authorization could change the response.
func refuses(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), ","), "insufficient_scope")
	}
	return false
}

// rewind returns a copy of a request with its body at the start.
func rewind(req *http.Request) (*http.Request, error) {
	again := req.Clone(req.Context())
	if req.GetBody == nil {
		return again, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("send request again: %w", err)
	}
	again.Body = body
	return again, nil
}

func status(resp *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
}
