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
	"time"

	"golang.org/x/oauth2"
)

const (
	// authorizeLimit bounds one try to get an authorization.
	authorizeLimit = 5 * time.Minute
	// scopePause is how long it stands that a scope cannot be had, before it is
	// tried again to get it; tokenPause the same of a token, which is needed sooner.
	scopePause = time.Minute
	tokenPause = time.Second
	// maxFlights bounds what is kept of tries: an upstream can ask for any number of scopes.
	maxFlights = 16
)

// guard gives requests their access token, and gets a new one when the server
// refuses: once for all who were refused, and once for each of them. It only
// sees requests to the upstream's own origin.
type guard struct {
	auth   Authorizer // nil: requests go as they are
	remedy string     // what somebody can do about a refusal
	veil   veil
	// spawn runs f in a goroutine, with a context that ends with the link.
	spawn func(f func(ctx context.Context))

	mu    sync.Mutex
	round int // how often a new authorization was got
	// flights are the tries to get one that are under way or have failed, by what
	// was wanted: that a scope cannot be had says nothing of another, or of a token.
	flights map[string]*flight
	denied  *loginError // why nothing is sent any more, nil while it is
	learned string      // the last token that was hidden
}

// secretive is an [Authorizer] that knows more secrets than the token of a request.
type secretive interface{ Secrets() []string }

// hide keeps a token out of what the upstream sends, with all that it belongs to.
func (g *guard) hide(token string) {
	g.mu.Lock()
	known := g.learned == token && token != ""
	g.learned = token
	g.mu.Unlock()
	if known {
		return
	}
	if s, ok := g.auth.(secretive); ok {
		g.veil.learn(s.Secrets()...)
	}
	g.veil.learn(token)
}

// loginWanted is an error of an [Authorizer] that only a person can mend; its
// text says what to do.
type loginWanted interface {
	error
	NeedsLogin() bool
}

// flight is one try to get an authorization, shared by all who wait for it. err
// and ended may be read once done is closed.
type flight struct {
	done  chan struct{}
	pause time.Duration // how long a failure stands
	err   error
	ended time.Time
}

// over reports whether it has failed so long ago that it says nothing any more.
func (f *flight) over() bool {
	select {
	case <-f.done:
		return time.Since(f.ended) >= f.pause
	default:
		return false
	}
}

// refusedError is why one request came to nothing, as a JSON-RPC error says it.
type refusedError struct {
	code   int64
	reason string
}

func (e *refusedError) Error() string { return e.reason }

// remedial is an [Authorizer] that knows better than we do what can be done
// about a refusal of what it has got.
type remedial interface{ Remedy() string }

// remedyFor returns what a user can do when the upstream refuses us.
func remedyFor(s Settings, auth Authorizer) string {
	if hasKey(s) {
		return "check its Authorization header"
	}
	if r, ok := auth.(remedial); ok {
		return r.Remedy()
	}
	return "a person has to run: sallyport auth login " + s.ID
}

// send sends a request with its token, and once more with a new one if that is
// refused. The error is a *loginError if the upstream is closed to us until
// the user acts, a *refusedError if only this request is.
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
	again, err := rewound(req)
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

// try sends a request once, and returns which round its token is of.
func (g *guard) try(req *http.Request, base http.RoundTripper) (*http.Response, int, error) {
	g.mu.Lock()
	round := g.round
	g.mu.Unlock()
	token, err := g.token(req.Context())
	if err != nil {
		return nil, round, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := base.RoundTrip(req)
	return resp, round, err
}

// token returns the access token, "" if there is none. To get a fresh one may
// take a request of its own, so it does not outlast ctx.
func (g *guard) token(ctx context.Context) (string, error) {
	if g.auth == nil {
		return "", nil
	}
	type got struct {
		token *oauth2.Token
		err   error
	}
	result := make(chan got, 1)
	g.spawn(func(life context.Context) {
		source, err := g.auth.TokenSource(life)
		if err != nil || source == nil {
			g.hide("")
			result <- got{nil, err}
			return
		}
		token, err := source.Token()
		if err != nil {
			g.hide("") // the refusal may say what was sent
		}
		result <- got{token, err}
	})
	select {
	case r := <-result:
		if _, refused := errors.AsType[*oauth2.RetrieveError](r.err); refused {
			return "", nil // the upstream refuses too, and then Authorize has its turn
		}
		if e, ok := errors.AsType[loginWanted](r.err); ok && e.NeedsLogin() {
			return "", g.close(&loginError{r.err.Error(), ""})
		}
		if r.err != nil {
			return "", &refusedError{codeHTTP - http.StatusUnauthorized, "get access token: " + r.err.Error()}
		}
		if r.token == nil {
			return "", nil
		}
		g.hide(r.token.AccessToken)
		return r.token.AccessToken, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// renew gets a new authorization after a refusal, unless another call has got one
// since the request was sent. It takes care of the response's body.
func (g *guard) renew(req *http.Request, resp *http.Response, round int) error {
	if g.auth == nil {
		_ = resp.Body.Close()
		return errors.New("")
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // of use, but not needed
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(head))
	f := g.join(req, resp, round)
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

// join returns the flight to wait for, nil if there is a newer authorization already.
func (g *guard) join(req *http.Request, resp *http.Response, round int) *flight {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.round != round {
		return nil
	}
	maps.DeleteFunc(g.flights, func(_ string, f *flight) bool { return f.over() })
	want, pause := wanted(resp)
	if f := g.flights[want]; f != nil {
		return f
	}
	f := &flight{done: make(chan struct{}), pause: pause}
	if g.flights == nil {
		g.flights = map[string]*flight{}
	}
	if len(g.flights) < maxFlights {
		g.flights[want] = f
	}
	g.spawn(func(life context.Context) {
		limited, cancel := context.WithTimeout(life, authorizeLimit)
		defer cancel()
		g.land(want, f, g.auth.Authorize(limited, req, resp))
	})
	return f
}

// wanted says in a word what a refusal wants, and how long it stands that it cannot be had.
func wanted(resp *http.Response) (string, time.Duration) {
	if resp.StatusCode == http.StatusUnauthorized {
		return "", tokenPause
	}
	challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ",")
	return challenge[:min(len(challenge), 1000)], scopePause
}

func (g *guard) land(want string, f *flight, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.err, f.ended = err, time.Now(); err == nil {
		g.round++
		if g.flights[want] == f {
			delete(g.flights, want)
		}
	}
	close(f.done)
}

// giveUp says why a refused request is not sent again. If the server does not
// know us at all, and no try to change that failed for a passing reason, nothing
// else is sent either. cause may be nil.
func (g *guard) giveUp(ctx context.Context, resp *http.Response, reason string, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if cause != nil && cause.Error() != "" {
		reason += ": " + cause.Error()
	}
	login, ok := errors.AsType[loginWanted](cause)
	switch {
	case resp.StatusCode != http.StatusUnauthorized && ok && login.NeedsLogin():
		return &refusedError{codeScopeSaid, reason}
	case resp.StatusCode != http.StatusUnauthorized:
		return &refusedError{codeScope, reason}
	case ok && login.NeedsLogin():
		return g.close(&loginError{login.Error(), ""}) // it says itself what to do
	case g.auth != nil && cause != nil:
		return &refusedError{codeHTTP - http.StatusUnauthorized, reason}
	}
	return g.close(&loginError{reason, g.remedy})
}

// close refuses everything from now on, for the first reason given.
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
	if g.denied != nil {
		return g.denied
	}
	return nil
}

// refuses reports whether a new authorization could change the answer.
func refuses(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		return strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), ","), "insufficient_scope")
	}
	return false
}

// rewound returns a request that can be sent again.
func rewound(req *http.Request) (*http.Request, error) {
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
