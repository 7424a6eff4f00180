package httpserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"sallyport/gateway/signin"
	"sallyport/internal/access"
	"sallyport/internal/continuepage"
	"sallyport/internal/identity"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// A person signs in at the provider in three steps. startPath sends the browser to the provider, with a cookie that only this
// browser has. The provider sends it back to the callback. As browsers send no SameSite=Strict cookie with a redirect of another
// site, the callback is a page of this site that opens finishPath, which checks the cookie and opens the session.
const (
	startPath  = "/login/start"
	finishPath = "/login/finish"
)

// openProvider returns the provider of the settings, nil without one or without pages.
func (f *Server) openProvider() *signin.Provider {
	settings := f.opts.Settings.Login
	if settings == nil || f.opts.Dashboard == nil {
		return nil
	}
	if f.opts.Site == "" {
		f.log.Warn("nobody can sign in: http.login needs http.url, the address of the dashboard")
		return nil
	}
	p, err := signin.New(signin.Options{Settings: *settings, Site: strings.TrimSuffix(f.opts.Site, "/"), Caller: f.auth.person, Subjects: f.opts.Subjects, Key: f.opts.Seal})
	if err != nil {
		f.log.Error("nobody can sign in", "error", err)
		return nil
	}
	f.auth.sessions.Use(p)
	return p
}

// person returns the caller of verified claims of a provider.
func (e *authenticator) person(ctx context.Context, claims signin.Claims) (access.Caller, error) {
	v, err := e.caller(ctx, access.BySession, claims)
	if err == nil && !v.May(tool.ScopeRead) {
		err = errScope
	}
	return v, err
}

// startSignIn sends the browser to the provider. It must be at the site, as the callback of the site is registered there.
func (f *Server) startSignIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	next := nextPage(r.URL.Query().Get("next"))
	if site, err := url.Parse(f.provider.Site()); err == nil && !strings.EqualFold(site.Host, r.Host) {
		http.Redirect(w, r, f.provider.Site()+startPath+"?"+url.Values{"next": {next}}.Encode(), http.StatusSeeOther)
		return
	}
	page, kept, err := f.provider.Begin(r.Context(), next)
	if err != nil {
		f.log.ErrorContext(r.Context(), "sign-in cannot begin", "error", err)
		f.loginForm(w, r, http.StatusBadGateway, "The provider cannot be reached. Try again, or tell the operator: the log says why.")
		return
	}
	setSignInCookie(w, r, kept, int(signin.AttemptLife.Seconds()))
	http.Redirect(w, r, page, http.StatusSeeOther)
}

func signInCookie(r *http.Request) string { return cookieName(r) + "_signin" }

func setSignInCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: signInCookie(r), Value: value, Path: "/login", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isSecure(r),
	})
}

// signInCallback serves the redirect of the provider.
func (f *Server) signInCallback(w http.ResponseWriter, r *http.Request) {
	continuepage.Serve(w, r, finishPath)
}

// finishSignIn opens the session after a sign-in.
func (f *Server) finishSignIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	kept := ""
	if cookie, err := r.Cookie(signInCookie(r)); err == nil {
		kept = cookie.Value
	}
	v, renewal, next, err := f.provider.Finish(r.Context(), kept, r.URL.Query())
	if !errors.Is(err, signin.ErrForeign) {
		setSignInCookie(w, r, "", -1) // a code is good once
	}
	if err != nil {
		f.refuseSignIn(w, r, err)
		return
	}
	f.startSession(w, r, v, renewal, next)
}

// refuseSignIn shows why a sign-in failed. Details are in the log only.
func (f *Server) refuseSignIn(w http.ResponseWriter, r *http.Request, err error) {
	f.auth.logins.recordRefusal(r.Context(), r)
	f.log.WarnContext(r.Context(), "sign-in refused", "remote", r.RemoteAddr, "reason", sanitize.Line(err.Error(), 300))
	status, text := http.StatusUnauthorized, "The sign-in failed. Try again, or tell the operator: the log says why."
	if refused, ok := errors.AsType[*signin.RefusedError](err); ok {
		text = "The provider refused the sign-in: " + refused.Code + "."
	}
	switch {
	case errors.Is(err, signin.ErrForeign):
		status, text = http.StatusForbidden, "This sign-in was not begun in this browser, or took longer than 10 minutes. Sign in again."
	case errors.Is(err, identity.ErrNoRole):
		status, text = http.StatusForbidden, "This account has no role here. Ask the operator for one."
	}
	f.loginForm(w, r, status, text)
}
