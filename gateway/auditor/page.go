package auditor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

const (
	// defaultAudit is the default number of records per page, maxAudit the maximum.
	defaultAudit, maxAudit = 100, 1000
	// maxAuditScan is the maximum number of records that are scanned for one page.
	maxAuditScan = 50_000
)

// Filter selects records of the audit log. The zero value selects the newest of all.
type Filter struct {
	// Before is a record number: only earlier records match. 0 starts at the end.
	Before uint64
	// Since is the earliest time; the zero time is all.
	Since time.Time
	// Execution, Principal and Decision (allow, deny, ask) are as in the record; "" is any.
	Execution, Principal, Decision string
	// Tool and Kind are globs such as github.* and execution.*; "" is any.
	Tool, Kind string
	// Gateway selects the copies of gateways that share the store: a chain or the beginning of its name, a machine, an id, or "all". ""
	// is the log of this gateway. Before is a position in the store then.
	Gateway string
	// Limit is the maximum number of records; 0 is 100, more than 1,000 is 1,000.
	Limit int
}

// Page is a part of the audit log.
type Page struct {
	// Events are the matching records, the newest first.
	Events []audit.Event
	// Of are the copies that the events are from, one for each; nil for the log of this gateway.
	Of []audit.Copied
	// Next is the value of Before for the next page, 0 for none.
	Next uint64
	// Looked is the number of scanned records. If it reaches its limit, the page is not full, and Next continues.
	Looked int
	// Damaged is the number of invalid or modified lines among them, Unchained the number of records that do not follow the one before.
	Damaged, Unchained int
	// Head is the signed end of the log, as this process knows it.
	Head audit.Head
}

// Whole reports whether all scanned records are valid.
func (p Page) Whole() bool { return p.Damaged+p.Unchained == 0 }

// AuditLog reads a page of records from the end of the audit log, for operators only. It scans only what the page needs. Errors are *tool.Error.
func (a *Auditor) AuditLog(ctx context.Context, filter Filter) (Page, error) {
	if tool.Operator(ctx) == "" {
		return Page{}, toolcall.OperatorsOnly("the audit log")
	}
	if err := filter.check(); err != nil {
		return Page{}, err
	}
	if filter.Gateway != "" {
		return a.copiesPage(ctx, filter)
	}
	l, err := a.openLog()
	if err != nil {
		return Page{}, toolcall.Unreadable(ctx, a.opts.Logger, err)
	}
	if l == nil {
		return Page{}, noLog()
	}
	page := auditPage{filter: filter, Page: Page{Head: l.Head()}}
	for r, err := range audit.ReadBackward(a.dir, filter.Before) {
		if err != nil && !errors.Is(err, audit.ErrDamaged) {
			return Page{}, toolcall.Unreadable(ctx, a.opts.Logger, err)
		}
		if !page.add(r, err) || ctx.Err() != nil {
			break
		}
	}
	return page.Page, nil
}

// check sets defaults, and returns an error for unknown values.
func (f *Filter) check() error {
	if f.Limit <= 0 {
		f.Limit = defaultAudit
	}
	f.Limit = min(f.Limit, maxAudit)
	if f.Kind != "" && !slices.ContainsFunc(audit.Kinds(), func(k string) bool { return globMatch(f.Kind, k) }) {
		hint := "the kinds are " + strings.Join(audit.Kinds(), ", ")
		if near := suggest.Of(f.Kind, audit.Kinds()); near != "" {
			hint = "did you mean " + near + "?"
		}
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown kind %.40q", f.Kind), Hint: hint}
	}
	if f.Decision != "" && !slices.Contains([]string{"allow", "deny", "ask"}, f.Decision) {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("unknown decision %.40q", f.Decision), Hint: "use allow, deny or ask"}
	}
	return nil
}

func globMatch(glob, text string) bool {
	ok, err := path.Match(glob, text)
	return err == nil && ok
}

// matches reports whether a record matches.
func (f Filter) matches(e audit.Event) bool {
	same := func(want, has string) bool { return want == "" || want == has }
	like := func(want, has string) bool { return want == "" || globMatch(want, has) }
	return same(f.Execution, e.Execution) && same(f.Principal, e.Principal) && same(f.Decision, e.Decision) && like(f.Tool, e.Tool) && like(f.Kind, string(e.Kind))
}

// auditPage is a page that is being filled.
type auditPage struct {
	Page
	filter Filter
	after  audit.Record // the record that was scanned last
}

// add scans the next older record, and reports whether to continue.
func (p *auditPage) add(r audit.Record, damaged error) bool {
	if damaged == nil && r.Time.Before(p.filter.Since) {
		p.Next = 0
		return false
	}
	full := len(p.Events) == p.filter.Limit || p.Looked == maxAuditScan
	if full && p.after.Seq > 0 { // there is one more
		p.Next = p.after.Seq
		return false
	}
	p.Looked++
	if damaged != nil {
		p.Damaged++
		return true
	}
	if a := p.after; a.Seq > 0 && a.Kind != audit.LogGap && (a.Prev != r.Hash || a.Seq != r.Seq+1) {
		p.Unchained++
	}
	p.after = r
	if p.filter.matches(r.Event) {
		p.Events = append(p.Events, r.Event)
	}
	return true
}
