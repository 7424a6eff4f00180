package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"sallyport/gateway/addition"
	"sallyport/gateway/catalog"
	"sallyport/internal/candidate"
	"sallyport/internal/presets"
	"sallyport/internal/registry"
	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// Adder adds servers to the settings. Errors are *tool.Error.
type Adder interface {
	Find(ctx context.Context, server string, choice candidate.Choice) (addition.Proposal, error)
	Search(ctx context.Context, words string) (found []registry.Entry, more bool, err error)
	Add(ctx context.Context, found candidate.Candidate, o addition.Options) (addition.Added, error)
}

// addPath is the page that adds an upstream. It is not below that of the upstreams, as one of them may be called add.
const addPath = "/ui/add-upstream"

// maxServer bounds the name of a server that is typed, maxInput a value of one, in bytes.
const maxServer, maxInput = 300, 8 << 10

// addPages add upstreams.
type addPages struct{ editPages }

// AddPage is the form that adds an upstream.
type AddPage struct {
	// Server is what was typed, and How which of its kinds is meant: package, remote, or "" for either.
	Server, How string
	Presets     []presets.Preset
	// Words is what was searched in the registry, Results the servers there, and More says that there are more.
	Words   string
	Results []registry.Entry
	More    bool
	// Found is the server; nil before one was found.
	Found *AddForm
	// Problem says what is wrong, Hint what to do; "" for nothing.
	Problem, Hint string
}

// AddForm is the form of a server that was found.
type AddForm struct {
	addition.Proposal
	About  []addition.Fact
	Digest string
	Fields []AddField
	// Name, Hosts and Bare are what was typed.
	Name, Hosts string
	Bare        bool
	// Process says that it runs here; Image that it does so in a sandbox only.
	Process, Image bool
}

// AddField is the field of a value that a server needs.
type AddField struct {
	candidate.Input
	// Field is the name of the field, Value what was typed: nothing for a secret.
	Field, Value string
}

// show shows the form, what a search has found, or a server.
func (d addPages) show(r *request) (any, error) {
	if err := d.begin(r); err != nil {
		return nil, err
	}
	query := r.URL.Query()
	p := &AddPage{Server: typed(query.Get("server")), How: query.Get("how"), Words: typed(query.Get("words")), Presets: presets.All()}
	var err error
	switch {
	case p.Server != "":
		var found addition.Proposal
		if found, err = d.find(r, p); err == nil {
			p.Found = newAddForm(found, url.Values{})
		}
	case p.Words != "":
		p.Results, p.More, err = d.opts.Adder.Search(r.Context(), p.Words)
	}
	return p, p.fail(r, err)
}

// find looks up the server of the page. For one at a URL, the form has a field for a token.
func (d addPages) find(r *request, p *AddPage) (addition.Proposal, error) {
	found, err := d.opts.Adder.Find(r.Context(), p.Server, choiceOf(p.How))
	found.Candidate = found.WithAuthorization()
	return found, err
}

// begin sets the title.
func (d addPages) begin(r *request) error {
	r.setTitle("Add an upstream", Crumb{"Upstreams", upstreamsPath})
	if d.opts.Adder == nil {
		return notEditable()
	}
	return nil
}

// typed returns a name or words that a person typed.
func typed(text string) string { return sanitize.Line(strings.TrimSpace(text), maxServer) }

func choiceOf(how string) candidate.Choice {
	return candidate.Choice{Remote: how == "remote", Package: how == "package"}
}

// fail shows an error on the page. It returns one that is none of the caller.
func (p *AddPage) fail(r *request, err error) error {
	if err == nil {
		return nil
	}
	e := tool.AsError(err)
	if e.Kind == tool.Denied || e.Kind == tool.Internal {
		return err
	}
	r.status = e.Kind.Status()
	p.Problem, p.Hint = sanitize.Text(e.Message, 1000), sanitize.Line(e.Hint, 300)
	return nil
}

func newAddForm(found addition.Proposal, form url.Values) *AddForm {
	f := &AddForm{
		Proposal: found, About: addition.About(found.Candidate), Digest: found.Digest(), Name: cmp.Or(typed(form.Get("name")), found.Name),
		Hosts: typed(form.Get("hosts")), Bare: form.Get("bare") != "", Process: found.Package() != "", Image: found.Image() != "",
	}
	for i, in := range found.Inputs {
		field := AddField{Input: in, Field: fmt.Sprintf("value.%d", i)}
		if !in.Secret {
			field.Value = sanitize.Text(form.Get(field.Field), maxInput)
		}
		f.Fields = append(f.Fields, field)
	}
	return f
}

// add adds the server of the form, if it is still the one that was shown.
func (d addPages) add(r *request) (string, error) {
	if err := d.begin(r); err != nil {
		return "", err
	}
	p := &AddPage{Server: typed(r.PostFormValue("server")), How: r.PostFormValue("how"), Presets: presets.All()}
	found, err := d.find(r, p)
	if err == nil {
		p.Found = newAddForm(found, r.PostForm)
		var added addition.Added
		if added, err = d.addFound(r, p.Found); err == nil {
			return d.added(r, added), nil
		}
	}
	r.again = p
	return "", p.fail(r, err)
}

func (d addPages) addFound(r *request, f *AddForm) (addition.Added, error) {
	if r.PostFormValue("seen") != f.Digest {
		return addition.Added{}, &tool.Error{Kind: tool.Invalid, Message: "what is known of this server has changed since you looked: look again, then add it"}
	}
	values := candidate.Values{}
	for _, field := range f.Fields {
		if given := field.values(r.PostFormValue(field.Field)); len(given) > 0 {
			values[field.Name] = given
		}
	}
	added, err := d.opts.Adder.Add(r.Context(), f.Candidate, addition.Options{Name: f.Name, Values: values, Hosts: strings.Fields(f.Hosts), Bare: f.Bare})
	if err != nil {
		e := tool.AsError(err)
		return added, &tool.Error{Kind: e.Kind, Message: e.Message, Err: err} // hints are about flags of the command line
	}
	return added, nil
}

// values returns the values of a field: each line is one, if there can be several.
func (f AddField) values(text string) (all []string) {
	lines := []string{text}
	if f.Repeated {
		lines = strings.Split(text, "\n")
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// added says what was done, and returns the next page.
func (d addPages) added(r *request, added addition.Added) string {
	name, id := sanitize.Line(added.Name, 100), tool.Identifier(added.Name)
	switch {
	case added.Existing:
		r.warn("Nothing was added: the settings have this server already, as " + name + ".")
		return upstreamsPath + "/" + url.PathEscape(id)
	case added.Force != "":
		r.sayForce("", added.Force)
		return upstreamsPath
	}
	r.say("Added: " + name + ".")
	return upstreamsPath + "/" + url.PathEscape(id) + "/test"
}

// TestPage is the result of the test of an upstream.
type TestPage struct {
	catalog.Upstream
	// Tools are its first tools, More the number of further ones.
	Tools []tool.Tool
	More  int
	// Ready says that it works, Waits that the result is not known yet.
	Ready, Waits bool
	// Fix says what to do about its error.
	Fix string
	// Every is the interval in seconds at which the result is read again; 0 is never.
	Every int
}

// maxTested bounds the listed tools of an upstream that is tested.
const maxTested = 40

// test shows whether a new upstream works.
func (d addPages) test(r *request) (any, error) {
	for _, up := range d.service.Upstreams() {
		if up.ID == r.PathValue("id") {
			r.setTitle("Test of "+up.ID, Crumb{"Upstreams", upstreamsPath}, Crumb{up.ID, upstreamsPath + "/" + url.PathEscape(up.ID)})
			return d.result(up), nil
		}
	}
	return nil, &tool.Error{Kind: tool.NotFound, Message: "there is no upstream " + sanitize.Line(r.PathValue("id"), 100), Hint: "it may have been taken out of the settings"}
}

func (d addPages) result(up catalog.Upstream) TestPage {
	p := TestPage{Upstream: up, Ready: up.Works()}
	p.Waits = !p.Ready && (up.State.Error == "" || addition.Installing(up.State.Error))
	switch {
	case p.Waits:
		p.Every = 2
	case !p.Ready:
		p.Fix = catalog.Remedy(up.State.Error)
	default:
		for _, t := range d.service.Tools() {
			if t.ID.Upstream == up.ID {
				p.Tools = append(p.Tools, t)
			}
		}
		if len(p.Tools)+up.Held < up.State.Tools { // they come shortly after the connection
			p.Every = 2
		}
		p.More = max(0, len(p.Tools)-maxTested)
		p.Tools = p.Tools[:min(len(p.Tools), maxTested)]
	}
	return p
}
