package httpserver

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"sallyport/internal/access"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// A browser logs in with a one-time code of the control socket or with a pasted token. Its session is in a cookie
// that scripts cannot read and pages of other sites cannot send.

// Pages are the dashboard.
type Pages interface {
	http.Handler
	// LoginPage shows the login form, with the error of the last attempt, "" for none, and for a person who has logged out the
	// page of the provider that ends the session there, "" for none.
	LoginPage(w http.ResponseWriter, r *http.Request, status int, problem, signOut string)
	// Public reports whether a path is served to browsers without a session.
	Public(path string) bool
}

// cookieLife is how long a browser keeps a cookie; sessions expire on their own.
const cookieLife = 7 * 24 * time.Hour

// signedOut is the parameter of the login page after a logout from a session that was begun at the provider.
const signedOut = "signed_out"

// revokeTimeout bounds the wait for the provider at a logout.
const revokeTimeout = 3 * time.Second

// cookieName returns the cookie name for the requested port: cookies ignore ports, and several gateways may run on this machine.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == "" {
		return "sallyport_" + port
	}
	return "sallyport"
}

// session returns the browser session of a request, or a refusal if it cannot be checked. Requests of pages of other origins, and
// requests with a token, have none.
func (e *authenticator) session(r *http.Request) (v access.Caller, known bool, no *refusal) {
	if isForeign(r) && r.Header.Get("Origin") != "null" || len(r.Header.Values("Authorization")) > 0 {
		return v, false, nil
	}
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return v, false, nil
	}
	if v, known, err = e.sessions.Lookup(r.Context(), cookie.Value); err != nil {
		e.log.WarnContext(r.Context(), "session not checked", "remote", r.RemoteAddr, "error", err)
	}
	if !v.GroupsAt.IsZero() { // the session may be of another gateway
		e.directory.Set(v.Principal, v.Groups, v.GroupsAt)
	}
	return v, known, unavailable(err)
}

// forPages authenticates requests for pages, and redirects to the login page without a session.
func (e *authenticator) forPages(public func(path string) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if public(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		visitor, known, no := e.session(r)
		if !known && no == nil {
			visitor, no = e.identify(r, e.allowAnonymous)
		}
		if no == nil && !visitor.May(tool.ScopeRead) {
			no = insufficientScope(string(tool.ScopeRead))
		}
		if no != nil && no.status == http.StatusUnauthorized && len(r.Header.Values("Authorization")) == 0 {
			redirectToLogin(w, r)
			return
		}
		e.admit(w, r, visitor, no, next)
	})
}

// redirectToLogin redirects a browser to the login form, which leads back; a request for a part of a page redirects the whole page.
func redirectToLogin(w http.ResponseWriter, r *http.Request) {
	target := "/login"
	if next := nextPage(r.URL.RequestURI()); r.Method == http.MethodGet && next != "/" {
		target += "?" + url.Values{"next": {next}}.Encode()
	}
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", "/login")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// maxNext bounds the address to open after a login, in bytes.
const maxNext = 2000

// nextPage returns the address of a page of the dashboard to open after a login, "/" for any other address.
func nextPage(address string) string {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxNext || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/ui/") || path.Clean(u.Path) != u.Path || strings.Contains(address, "\\") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

// login serves /login: the form, a submitted token, or a one-time code.
func (f *Server) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodPost:
		f.loginByToken(w, r)
	case http.MethodGet:
		if r.URL.Query().Has("code") {
			f.loginByCode(w, r)
			return
		}
		f.loginForm(w, r, http.StatusOK, "")
	case http.MethodHead: // a prefetch must not use up the code
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		refuse(w, refusal{status: http.StatusMethodNotAllowed, detail: "use GET or POST here", kind: tool.Invalid})
	}
}

// loginForm shows the login page.
func (f *Server) loginForm(w http.ResponseWriter, r *http.Request, status int, problem string) {
	visitor := access.Caller{Scopes: []tool.Scope{}}
	signOut := ""
	if f.provider != nil && status == http.StatusOK && r.URL.Query().Has(signedOut) {
		signOut = f.provider.SignOutPage(r.Context())
	}
	f.opts.Dashboard.LoginPage(w, r.WithContext(visitor.NewContext(r.Context())), status, problem, signOut)
}

// mayTry counts a login attempt, and shows an error if there were too many.
func (f *Server) mayTry(w http.ResponseWriter, r *http.Request) bool {
	if no := f.auth.rates.login(w.Header(), r); no != nil {
		f.loginForm(w, r, no.status, no.detail)
		return false
	}
	return true
}

func (f *Server) loginByCode(w http.ResponseWriter, r *http.Request) {
	if !f.mayTry(w, r) {
		return
	}
	visitor, ok := f.auth.sessions.Redeem(r.URL.Query().Get("code"))
	if !ok {
		f.auth.logins.recordRefusal(r.Context(), r)
		f.loginForm(w, r, http.StatusUnauthorized, "This code was used already, or is older than a minute: run sallyport dashboard again.")
		return
	}
	f.startSession(w, r, visitor, nil, r.URL.Query().Get("next"))
}

func (f *Server) loginByToken(w http.ResponseWriter, r *http.Request) {
	if !f.mayTry(w, r) {
		return
	}
	token := strings.TrimSpace(r.PostFormValue("token"))
	visitor, err := f.auth.verifyToken(r.Context(), token, "")
	if no := unavailable(err); no != nil {
		f.log.WarnContext(r.Context(), "token not checked at login", "remote", r.RemoteAddr, "error", err)
		f.loginForm(w, r, no.status, "The token cannot be checked at the moment: the store does not answer.")
		return
	}
	if err != nil {
		f.auth.logins.recordRefusal(r.Context(), r)
		f.log.WarnContext(r.Context(), "token refused at login", "remote", r.RemoteAddr, "reason", sanitize.Line(err.Error(), 200))
		f.loginForm(w, r, http.StatusUnauthorized, "This is an "+tokenError(err)+".")
		return
	}
	if !visitor.May(tool.ScopeRead) {
		f.loginForm(w, r, http.StatusForbidden, "This token may not see anything: the dashboard needs the scope read.")
		return
	}
	f.startSession(w, r, visitor, nil, r.URL.Query().Get("next"))
}

// startSession opens a session with a new secret, ends the browser's old one, and redirects to a page of the dashboard. The
// redirect removes the code from the address.
func (f *Server) startSession(w http.ResponseWriter, r *http.Request, v access.Caller, renewal *access.Renewal, next string) {
	_, _ = f.endSession(r) // it expires
	who := v.Principal
	if who == "" {
		who = v.Operator
	}
	f.auth.logins.record(r.Context(), who, r)
	cookie, err := f.auth.sessions.OpenRenewed(r.Context(), v, renewal)
	if err != nil {
		f.log.ErrorContext(r.Context(), "a session cannot be opened", "error", err)
		f.loginForm(w, r, http.StatusServiceUnavailable, "You cannot log in at the moment: the store does not answer.")
		return
	}
	setCookie(w, r, cookie, int(cookieLife.Seconds()))
	http.Redirect(w, r, nextPage(next), http.StatusSeeOther)
}

func setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: isSecure(r),
	})
}

// isSecure reports whether the browser uses TLS.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// endSession ends the browser session of a request, if any, and reports whether it was begun at a provider. After an error it may still be valid.
func (f *Server) endSession(r *http.Request) (signedIn bool, err error) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return false, nil // there is none
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), revokeTimeout)
	defer cancel()
	return f.auth.sessions.Close(ctx, cookie.Value)
}

// logout serves /logout.
func (f *Server) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		refuse(w, refusal{status: http.StatusMethodNotAllowed, detail: "use POST here", kind: tool.Invalid})
		return
	}
	page := "/login"
	signedIn, err := f.endSession(r)
	if err != nil {
		f.log.WarnContext(r.Context(), "a session cannot be ended", "error", err)
		refuse(w, refusal{status: http.StatusServiceUnavailable, detail: "you are not logged out: the store does not answer", hint: "retry later", kind: tool.Busy})
		return
	}
	if signedIn && f.provider != nil {
		page += "?" + signedOut
	}
	setCookie(w, r, "", -1)
	http.Redirect(w, r, page, http.StatusSeeOther)
}
