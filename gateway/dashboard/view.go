package dashboard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/access"
	"sallyport/internal/tool"
)

// view is what templates see of a page. Templates use fields and functions, and call no methods: the program of a release
// has no methods that are found by name only, which saves much of its size.
type view struct {
	Title   string
	Crumbs  []Crumb
	Nav     []NavGroup
	Who     Who
	Flash   Flash
	Version string
	// Data is what the page's method returned.
	Data any
	// Live renders the template name with data, and updates it every so many seconds if it has changed, or with 0 no more. The name must be
	// unique on the page. Without scripts it is rendered once.
	Live func(name string, data any, seconds int) (template.HTML, error)
	// WaitingCount shows in the navigation of every page how many calls wait for a person.
	WaitingCount func() (template.HTML, error)

	d    *Dashboard
	ctx  func() context.Context // of the request
	url  *url.URL
	live map[string]livePart
}

// Crumb leads back to a page above.
type Crumb struct{ Label, Path string }

// NavGroup is a part of the navigation.
type NavGroup struct {
	Name  string
	Items []NavItem
}

// NavItem is one page in it.
type NavItem struct {
	Label, Path string
	// Here says that it is the page that is shown, or the one above it.
	Here bool
	// Counts says that it shows the number of pending approvals.
	Counts bool
}

// Who is the user.
type Who struct {
	// Name is "" without authentication.
	Name     string
	Operator bool
}

// livePart is a part of a page that the browser polls.
type livePart struct {
	html template.HTML
	mark string
}

// newView returns a view whose functions are set: templates call no methods.
func newView(v view) *view {
	v.Live = func(name string, data any, seconds int) (template.HTML, error) {
		return v.liveAt(v.url, name, data, seconds)
	}
	v.WaitingCount = func() (template.HTML, error) {
		return v.liveAt(&url.URL{Path: waitingPath}, "waiting-count", v.d.waiting(v.ctx()), waitingEvery)
	}
	return &v
}

// liveAt is Live for a part of a page at another address.
func (v *view) liveAt(at *url.URL, name string, data any, seconds int) (template.HTML, error) {
	var b bytes.Buffer
	if err := v.d.templates.ExecuteTemplate(&b, name, data); err != nil {
		return "", err
	}
	sum := sha256.Sum256(b.Bytes())
	mark := hex.EncodeToString(sum[:8])
	query := at.Query()
	query.Set("live", name)
	query.Set("seen", mark)
	again := url.URL{Path: at.Path, RawQuery: query.Encode()}
	head := fmt.Sprintf(`<div id="live-%s" class="live" hx-get="%s" hx-trigger="every %ds" hx-swap="outerHTML" hx-target="this">`,
		template.HTMLEscapeString(name), template.HTMLEscapeString(again.String()), seconds)
	if seconds <= 0 {
		head = fmt.Sprintf(`<div id="live-%s">`, template.HTMLEscapeString(name))
	}
	part := livePart{html: template.HTML(head + b.String() + "</div>"), mark: mark} // what is in it was escaped by its template
	if v.live == nil {
		v.live = map[string]livePart{}
	}
	v.live[name] = part
	return part.html, nil
}

// nav is the navigation of the caller.
func (d *Dashboard) nav(r *request) []NavGroup {
	var groups []NavGroup
	caller, _ := access.CallerFrom(r.Context())
	for _, name := range []string{groupHome, groupActivity, groupDecisions, groupTools, groupRecords} {
		group := NavGroup{Name: name}
		for _, p := range d.pages {
			if p.group != name || p.operator && tool.Operator(r.Context()) == "" || caller.Refuses(p.operation()) || !tool.May(r.Context(), p.scope) {
				continue
			}
			path := strings.TrimSuffix(p.path, "{$}")
			here := r.URL.Path == path || path != "/" && strings.HasPrefix(r.URL.Path, path+"/")
			group.Items = append(group.Items, NavItem{Label: p.label, Path: path, Here: here, Counts: path == approvalsPath})
		}
		if len(group.Items) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// Pager leads through a long list.
type Pager struct {
	// Prev and Next are where the pages before and after are, "" for none.
	Prev, Next string
	// Text says which part this is.
	Text string
}

// maxOffset is the maximum offset in a list.
const maxOffset = 1_000_000

// paginate returns the page of a list at a request's ?offset=, and its pager.
func paginate[T any](r *request, all []T, size int) ([]T, Pager) {
	at := min(max(r.number("offset"), 0), len(all))
	end := min(at+size, len(all))
	p := Pager{}
	if at > 0 {
		p.Prev = r.with("offset", strconv.Itoa(max(at-size, 0)))
	}
	if end < len(all) {
		p.Next = r.with("offset", strconv.Itoa(end))
	}
	if p.Prev != "" || p.Next != "" {
		p.Text = fmt.Sprintf("%s to %s of %s", groupDigits(int64(at+1)), groupDigits(int64(end)), groupDigits(int64(len(all))))
	}
	return slices.Clone(all[at:end]), p
}
