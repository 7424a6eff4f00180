package httpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"sallyport/gateway/signin"
	"sallyport/internal/access"
	"sallyport/internal/config"
	"sallyport/internal/identity"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// authenticator authenticates requests: by a token of the settings, one of sallyport token, an access token of the issuer for
// this audience, or a browser session. It never passes credentials on.
type authenticator struct {
	settings config.HTTP
	// allowAnonymous says that requests without a token are allowed.
	allowAnonymous bool
	tokens         map[string][sha256.Size]byte // digests of those of the settings, by name
	issued         *access.Tokens
	sessions       *access.Sessions
	issuer         *issuer // nil: none
	mapping        *identity.Mapping
	directory      *access.Directory
	subjects       *access.Subjects
	log            *slog.Logger
	logins         *logins
	rates          *rates
}

func newAuthenticator(opts *Options, open bool, log *slog.Logger) *authenticator {
	e := &authenticator{
		settings: opts.Settings, allowAnonymous: open, tokens: map[string][sha256.Size]byte{}, issued: opts.Tokens, sessions: opts.Sessions,
		directory: opts.Directory, subjects: opts.Subjects, log: log, logins: newLogins(opts.Auditor), rates: newRates(opts.Settings.Limits.Requests),
	}
	if e.sessions == nil {
		e.sessions = access.NewSessions(e.issued)
	}
	for name, token := range opts.Settings.Tokens {
		e.tokens[name] = sha256.Sum256([]byte(token))
	}
	if opts.Settings.OAuth != nil {
		e.issuer = newIssuer(*opts.Settings.OAuth)
	}
	var err error
	if e.mapping, err = identity.New(opts.Settings.Identity); err != nil { // the settings are checked when they are read
		log.Error("no access token is accepted", "error", err)
		e.mapping = nil
	}
	return e
}

// RequiresToken reports whether a listener requires a token from every client.
func RequiresToken(listener net.Listener, settings config.HTTP) bool {
	return !isOpen(settings) || !isLocal(listener.Addr())
}

// isOpen reports whether the settings allow requests without a token on a local listener.
func isOpen(settings config.HTTP) bool {
	return len(settings.Tokens) == 0 && settings.OAuth == nil && settings.Login == nil && !settings.RequireToken
}

// forMCP authenticates MCP requests, checks the caller's scope, and puts the caller into the context.
func (e *authenticator) forMCP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor, no := e.identify(r, e.allowAnonymous)
		if no == nil && !visitor.May(tool.ScopeMCP) {
			no = insufficientScope(string(tool.ScopeMCP))
		}
		e.admit(w, r, visitor, no, next)
	})
}

// forAPI authenticates API requests and puts the caller into the context. The API itself checks scopes. A page of another
// origin needs a token.
func (e *authenticator) forAPI(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visitor, session, no := e.session(r)
		switch {
		case no != nil:
		case session && isCrossOriginChange(r):
			no = originRefusal()
		case !session:
			visitor, no = e.identify(r, e.allowAnonymous && !isForeign(r))
		}
		if form := r.Header.Get("Content-Type"); no == nil && r.Method == http.MethodPost && isForm(form) {
			no = &refusal{status: http.StatusUnsupportedMediaType, detail: "the body must be application/json", kind: tool.Invalid}
		}
		e.admit(w, r, visitor, no, next)
	})
}

// isForm reports whether an HTML form can send a content type.
func isForm(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/x-www-form-urlencoded" || kind == "multipart/form-data" || kind == "text/plain")
}

// admit passes a request to next, or refuses it.
func (e *authenticator) admit(w http.ResponseWriter, r *http.Request, visitor access.Caller, no *refusal, next http.Handler) {
	if late := e.rates.take(w.Header(), r, visitor, no != nil); late != nil {
		no = late
	}
	if no != nil {
		refuse(w, *no)
		return
	}
	next.ServeHTTP(w, r.WithContext(visitor.NewContext(r.Context())))
}

// identify returns the caller of a request. Where no token is needed, the caller may be anonymous.
func (e *authenticator) identify(r *http.Request, open bool) (access.Caller, *refusal) {
	token, given, no := bearer(r)
	switch {
	case no != nil:
		return access.Caller{}, e.unauthorized(r, no.detail)
	case given:
		return e.admitToken(r, token)
	case open:
		return access.Caller{Scopes: append(tool.UserScopes(), tool.ScopeMetrics)}, nil // a local metrics scraper needs no token
	case public(r):
		return access.Caller{Scopes: []tool.Scope{}}, nil
	}
	return access.Caller{}, e.unauthorized(r, "no bearer token")
}

// public reports whether a request needs no authentication. The response depends on the caller's scopes.
func public(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch strings.TrimPrefix(r.URL.Path, "/api") {
	case "/health", "/readyz", "/openapi.json":
		return true
	}
	return false
}

// bearer returns the bearer token of a request. A malformed header is refused, a missing one is not.
func bearer(r *http.Request) (token string, given bool, no *refusal) {
	all := r.Header.Values("Authorization")
	if len(all) == 0 {
		return "", false, nil
	}
	fields := strings.Fields(all[0])
	if len(all) > 1 || len(fields) != 2 || !strings.EqualFold(fields[0], "Bearer") {
		return "", false, &refusal{detail: "no bearer token"}
	}
	return fields[1], true, nil
}

// admitToken returns the caller with a token, or the refusal.
func (e *authenticator) admitToken(r *http.Request, token string) (access.Caller, *refusal) {
	visitor, err := e.verifyToken(r.Context(), token, r.PathValue(endpointValue))
	if err == nil {
		e.logins.record(r.Context(), visitor.Principal, r)
		return visitor, nil
	}
	if no := unavailable(err); no != nil {
		e.log.WarnContext(r.Context(), "token not checked", "remote", r.RemoteAddr, "error", err)
		return access.Caller{}, no
	}
	e.logins.recordRefusal(r.Context(), r)
	e.log.WarnContext(r.Context(), "token refused", "remote", r.RemoteAddr, "reason", sanitize.Line(err.Error(), 200))
	if errors.Is(err, identity.ErrNoRole) {
		return access.Caller{}, &refusal{status: http.StatusForbidden, detail: "this account has no role here", kind: tool.Denied}
	}
	if errors.Is(err, errScope) {
		no := insufficientScope(strings.Join(e.issuer.Scopes, " "))
		no.challenge += `, resource_metadata="` + e.issuer.metadataURL(r.PathValue(endpointValue)) + `"`
		return access.Caller{}, no
	}
	return access.Caller{}, e.unauthorized(r, tokenError(err))
}

// unavailable returns the refusal of a request with a token that cannot be checked, nil for another error.
func unavailable(err error) *refusal {
	if !errors.Is(err, access.ErrUnavailable) {
		return nil
	}
	return &refusal{status: http.StatusServiceUnavailable, detail: "it cannot be checked who is calling: the store does not answer", hint: "retry later", kind: tool.Busy}
}

// tokenError returns the detail for an invalid token. The reason is only logged, so that guessing gets no help.
func tokenError(err error) string {
	if errors.Is(err, access.ErrMistyped) {
		return "invalid token: " + access.ErrMistyped.Error()
	}
	return "invalid token"
}

// errScope says that a valid access token lacks scopes that the settings require.
var errScope = errors.New("insufficient scope")

// verifyToken returns the owner of a token for /mcp or an endpoint of the settings, or why it is not accepted.
func (e *authenticator) verifyToken(ctx context.Context, token, endpoint string) (access.Caller, error) {
	if name := e.settingsToken(token); name != "" {
		caller := access.Caller{By: access.BySettings, Principal: "token:" + name, Scopes: tool.UserScopes()}
		if slices.Contains(e.settings.Metrics, name) {
			return caller.WithRole(access.Metrics), nil
		}
		return e.asOperator(caller), nil
	}
	if strings.HasPrefix(token, access.Prefix) {
		return e.verifyIssued(ctx, token)
	}
	if e.issuer == nil {
		return access.Caller{}, access.ErrUnknown
	}
	claimed, err := e.issuer.verify(ctx, token, endpoint)
	if err != nil {
		return access.Caller{}, err
	}
	for _, scope := range e.issuer.Scopes {
		if !slices.Contains(claimed.Scopes, scope) {
			return access.Caller{}, errScope
		}
	}
	return e.caller(ctx, access.ByOAuth, claimed)
}

// caller maps verified claims to a caller, and remembers its groups.
func (e *authenticator) caller(ctx context.Context, by access.AuthMethod, claimed signin.Claims) (access.Caller, error) {
	if e.mapping == nil {
		return access.Caller{}, access.ErrUnknown
	}
	who, err := e.mapping.Of(ctx, claimed.All)
	if err != nil {
		return access.Caller{}, err
	}
	e.directory.Set(who.Principal, who.Groups, claimed.Issued)
	e.subjects.Put(ctx, who.Principal, claimed.Tokens...)
	return e.asOperator(access.Caller{By: by, Principal: who.Principal, Expires: claimed.Expires, Groups: who.Groups, GroupsAt: claimed.Issued}.WithRole(who.Role)), nil
}

// verifyIssued returns the owner of a token that `sallyport token` made.
func (e *authenticator) verifyIssued(ctx context.Context, token string) (access.Caller, error) {
	visitor, err := e.issued.Check(ctx, token)
	if err != nil {
		return access.Caller{}, err
	}
	if _, taken := e.settings.Tokens[strings.TrimPrefix(visitor.Principal, "token:")]; taken {
		return access.Caller{}, errors.New("http.tokens has another token of its name")
	}
	return visitor, nil
}

// settingsToken returns the name of a token of the settings, "" for another token. It takes
// constant time.
func (e *authenticator) settingsToken(token string) string {
	digest := sha256.Sum256([]byte(token))
	found := ""
	for name, want := range e.tokens {
		if subtle.ConstantTimeCompare(digest[:], want[:]) == 1 {
			found = name
		}
	}
	return found
}

// asOperator gives a visitor operator rights, if the settings name it.
func (e *authenticator) asOperator(v access.Caller) access.Caller {
	if e.operates(v.Principal) {
		v.Role, v.Operator, v.Scopes = "", v.Principal, tool.Scopes()
	}
	return v
}

// operates reports whether a principal is among the operators of the settings, by the name of a token, or as oauth:SUBJECT.
func (e *authenticator) operates(principal string) bool {
	name, isToken := strings.CutPrefix(principal, "token:")
	if _, taken := e.settings.Tokens[name]; taken != isToken {
		return false // a token named oauth:ann is not the OAuth subject ann
	}
	return slices.Contains(e.settings.Operators, name) && (isToken || strings.HasPrefix(name, access.ProviderPrefix))
}

// unauthorized returns a 401 refusal, which requests a token.
func (e *authenticator) unauthorized(r *http.Request, detail string) *refusal {
	challenge := "Bearer"
	if e.issuer != nil {
		challenge += ` resource_metadata="` + e.issuer.metadataURL(r.PathValue(endpointValue)) + `"`
		if len(e.issuer.Scopes) > 0 {
			challenge += `, scope="` + strings.Join(e.issuer.Scopes, " ") + `"`
		}
	}
	return &refusal{status: http.StatusUnauthorized, detail: detail, challenge: challenge}
}

// insufficientScope returns a 403 refusal with the missing scope (RFC 6750, 3.1).
func insufficientScope(scope string) *refusal {
	return &refusal{status: http.StatusForbidden, detail: "insufficient scope: this needs " + scope, challenge: `Bearer error="insufficient_scope", scope="` + scope + `"`}
}
