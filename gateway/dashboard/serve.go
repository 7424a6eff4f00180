package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"sallyport/gateway/connections"
	"sallyport/gateway/settingsedit"
	"sallyport/internal/access"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// request is a request for a page, with the title, breadcrumbs and message that the page's method sets.
type request struct {
	*http.Request
	title  string
	crumbs []Crumb
	flash  Flash
	// status is that of the page; 0 is OK.
	status int
	// again is what the template of a form shows, instead of going on to another page.
	again any
}

// setTitle sets the title and the breadcrumbs of the page.
func (r *request) setTitle(title string, above ...Crumb) {
	r.title, r.crumbs = sanitize.Line(title, 200), above
}

// say shows a message on the next page, warn an error message.
func (r *request) say(text string)  { r.flash = Flash{Text: text} }
func (r *request) warn(text string) { r.flash = Flash{Text: text, Bad: true} }

// isOperator reports whether the caller is one.
func (r *request) isOperator() bool { return tool.Operator(r.Context()) != "" }

// number is a number of the query, 0 where there is none.
func (r *request) number(name string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 0 || n > maxOffset {
		return 0
	}
	return n
}

// with returns the page's address with one query parameter set, or removed for "".
func (r *request) with(name, value string) string {
	query := r.URL.Query()
	query.Del("live")
	query.Del("seen")
	query.Set(name, value)
	if value == "" {
		query.Del(name)
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}

// serve answers for one page.
func (d *Dashboard) serve(w http.ResponseWriter, raw *http.Request, p page) {
	r := &request{Request: raw, title: p.title}
	if err := p.allows(r); err != nil {
		d.refuse(w, r, err)
		return
	}
	if p.do != nil || p.method == http.MethodPost {
		r.Body = http.MaxBytesReader(w, r.Body, cmp.Or(p.form, maxForm))
		if err := r.ParseForm(); err != nil {
			d.refuse(w, r, formError(err))
			return
		}
	}
	switch {
	case p.do != nil:
		d.act(w, r, p)
		return
	case p.data != nil:
		d.answerData(w, r, p)
		return
	}
	data, err := p.show(r)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	d.render(w, r, cmp.Or(r.status, http.StatusOK), p.template, data)
}

// allows returns an error if the caller may not use a page.
func (p page) allows(r *request) error {
	caller, _ := access.CallerFrom(r.Context())
	if caller.Refuses(p.operation()) {
		return &tool.Error{Kind: tool.Denied, Message: "the role " + string(caller.Role) + " may not do this", Hint: "http.identity.roles in the settings of the gateway assigns roles"}
	}
	if p.operator && !r.isOperator() {
		return &tool.Error{Kind: tool.Denied, Message: "only an operator may see this", Hint: operatorHint}
	}
	if p.configures && !caller.MayConfigure() {
		return settingsedit.Denied()
	}
	if !tool.May(r.Context(), p.scope) {
		return &tool.Error{Kind: tool.Denied, Message: "this needs the scope " + string(p.scope), Hint: "sallyport token create NAME --scope " + string(p.scope) + " makes a token that has it"}
	}
	return nil
}

// operatorHint says how to become one.
const operatorHint = "run sallyport dashboard on the gateway's machine, or log in with a token that has the scope operate"

// act processes a form and redirects to a page, so that a reload does not submit the form again.
func (d *Dashboard) act(w http.ResponseWriter, r *request, p page) {
	next, err := p.do(r)
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	if r.again != nil {
		d.render(w, r, cmp.Or(r.status, http.StatusOK), p.template, r.again)
		return
	}
	setFlash(w, r.flash)
	http.Redirect(w, r.Request, next, http.StatusSeeOther)
}

// answerData answers a script of a page, as JSON.
func (d *Dashboard) answerData(w http.ResponseWriter, r *request, p page) {
	data, err := p.data(r)
	var text []byte
	if err == nil {
		text, err = json.Marshal(data)
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}

func formError(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &tool.Error{Kind: tool.Limit, Message: "the form is too large"}
	}
	return &tool.Error{Kind: tool.Invalid, Message: "the form cannot be read"}
}

// render renders a template in the layout, or only the live part that the request asks for.
func (d *Dashboard) render(w http.ResponseWriter, r *request, status int, name string, data any) {
	v := newView(view{Title: r.title, Crumbs: r.crumbs, Nav: d.nav(r), Version: d.opts.Version, Data: data, d: d, ctx: r.Context, url: r.cleanURL()})
	v.Who = Who{Name: sanitize.Line(cmp.Or(tool.Principal(r.Context()), tool.Operator(r.Context())), 80), Operator: r.isOperator()}
	part := r.URL.Query().Get("live")
	if part == "" {
		v.Flash = takeFlash(w, r.Request)
	}
	var content bytes.Buffer
	if err := d.templates.ExecuteTemplate(&content, name, v); err != nil {
		d.templateError(w, r, err)
		return
	}
	if live, ok := v.live[part]; ok {
		writePart(w, live, r.URL.Query().Get("seen"))
		return
	}
	if part != "" { // the page has changed: reload it
		w.Header().Set("HX-Refresh", "true")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var page bytes.Buffer
	if err := d.templates.ExecuteTemplate(&page, "layout", struct {
		*view
		Content safe
	}{v, safe(content.String())}); err != nil {
		d.templateError(w, r, err)
		return
	}
	writePage(w, status, page.Bytes())
}

// cleanURL returns the page's address without the parameters for a live part.
func (r *request) cleanURL() *url.URL {
	query := r.URL.Query()
	query.Del("live")
	query.Del("seen")
	return &url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
}

// writePart answers with a live part of a page, or with no content if it is unchanged.
func writePart(w http.ResponseWriter, part livePart, seen string) {
	if seen == part.mark {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	writePage(w, http.StatusOK, []byte(part.html))
}

func writePage(w http.ResponseWriter, status int, page []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(status)
	_, _ = w.Write(page)
}

// Problem is what the page of an error shows.
type Problem struct {
	Status        int
	Title         string
	Message, Hint string
}

// refuse shows an error page.
func (d *Dashboard) refuse(w http.ResponseWriter, r *request, err error) {
	e := tool.AsError(err)
	status := e.Kind.Status()
	if status == http.StatusInternalServerError {
		d.log.ErrorContext(r.Context(), "page failed", "path", sanitize.Line(r.URL.Path, 100), "error", err)
	}
	d.problem(w, r, status, Problem{Message: sanitize.Text(e.Message, 1000), Hint: sanitize.Text(e.Hint, 1000)})
}

func (d *Dashboard) problem(w http.ResponseWriter, r *request, status int, p Problem) {
	p.Status, p.Title = status, http.StatusText(status)
	r.setTitle(p.Title)
	d.render(w, r, status, "problem", p)
}

// templateError answers if a template fails: nothing of the page is sent.
func (d *Dashboard) templateError(w http.ResponseWriter, r *request, err error) {
	d.log.ErrorContext(r.Context(), "page cannot be shown", "path", sanitize.Line(r.URL.Path, 100), "error", err)
	http.Error(w, "this page cannot be shown; the operator's log says why", http.StatusInternalServerError)
}

// notFound answers for unknown paths.
func (d *Dashboard) notFound(w http.ResponseWriter, r *http.Request) {
	d.problem(w, &request{Request: r}, http.StatusNotFound, Problem{Message: "There is no page at this address."})
}

// crossOrigin answers for forms that a page of another origin has sent.
func (d *Dashboard) crossOrigin(w http.ResponseWriter, r *http.Request) {
	d.problem(w, &request{Request: r}, http.StatusForbidden, Problem{Message: "This form was sent by a page of another origin, so nothing was done.",
		Hint: "open the dashboard itself, and send the form from there"})
}

// Public reports whether a path is served to browsers without a session: static files, and the redirect of a login at an
// upstream, which a page of another site begins.
func (*Dashboard) Public(path string) bool {
	return strings.HasPrefix(path, "/ui/static/") || path == connections.CallbackPath
}

// Login is what the login page shows.
type Login struct {
	// Problem is the error of the last attempt, "" for none.
	Problem string
	// Provider is the host name of the OpenID provider, Start the address where a sign-in begins; "" without one.
	Provider, Start string
	// SignOut is the page of the provider that ends the session there, for a person who has logged out here; "" without one.
	SignOut string
}

func (d *Dashboard) loginPage(r *http.Request, problem, signOut string) Login {
	p := Login{Problem: sanitize.Line(problem, 300), Provider: d.opts.Provider, SignOut: signOut}
	if p.Provider != "" {
		p.Start = "/login/start"
		if next := r.URL.Query().Get("next"); next != "" {
			p.Start += "?" + url.Values{"next": {next}}.Encode()
		}
	}
	return p
}

// LoginPage shows the login form, with the error of the last attempt, "" for none, and the provider's page that ends a session
// there, "" for none. It is for the server of /login, and sets the headers that every page has.
func (d *Dashboard) LoginPage(w http.ResponseWriter, r *http.Request, status int, problem, signOut string) {
	withHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.render(w, &request{Request: r, title: "Log in"}, status, "login", d.loginPage(r, problem, signOut))
	})).ServeHTTP(w, r)
}
