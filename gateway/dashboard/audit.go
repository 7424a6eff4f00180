package dashboard

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/internal/audit"
)

// AuditPage is a part of the audit log, the newest first.
type AuditPage struct {
	auditor.Page
	Filter AuditForm
	// Older and Newest are other parts, "" where there are none.
	Older, Newest string
	Kinds         []string
	// Shared says that several gateways share the store.
	Shared bool
	Spans  []string
}

// AuditForm is what the filter's fields hold.
type AuditForm struct{ Kind, Principal, Tool, Decision, Execution, Since, Gateway string }

// auditSize is how many records are on a page.
const auditSize = 100

// auditSpans are the times that can be chosen.
var auditSpans = map[string]time.Duration{"1 hour": time.Hour, "1 day": 24 * time.Hour, "7 days": 7 * 24 * time.Hour, "30 days": 30 * 24 * time.Hour}

// auditPages show and verify the audit log.
type auditPages struct{ *Dashboard }

// show shows a part of the log.
func (d auditPages) show(r *request) (any, error) {
	query := r.URL.Query()
	word := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	p := AuditPage{Filter: AuditForm{word("kind"), word("principal"), word("tool"), word("decision"), word("execution"), word("since"), word("gateway")}, Spans: []string{"1 hour", "1 day", "7 days", "30 days"}}
	p.Kinds, p.Shared = audit.Kinds(), d.opts.Cluster != nil
	f := auditor.Filter{Kind: p.Filter.Kind, Principal: p.Filter.Principal, Tool: p.Filter.Tool, Decision: p.Filter.Decision, Execution: p.Filter.Execution, Gateway: p.Filter.Gateway, Limit: auditSize}
	f.Before, _ = strconv.ParseUint(query.Get("before"), 10, 64) // what is no number is from the end
	if long, ok := auditSpans[p.Filter.Since]; ok {
		f.Since = time.Now().Add(-long)
	}
	var err error
	if p.Page, err = d.service.AuditLog(r.Context(), f); err != nil {
		return nil, err
	}
	if p.Next > 0 {
		p.Older = r.with("before", fmt.Sprint(p.Next))
	}
	if f.Before > 0 {
		p.Newest = r.with("before", "")
	}
	return p, nil
}

// VerifyPage is the result of a verification of the whole log.
type VerifyPage struct {
	audit.Report
	Took time.Duration
	// Problems are places where the log is not intact.
	Problems []BrokenPlace
	// Chains are those of all gateways that share the store.
	Chains []audit.Verified
}

// BrokenPlace is a place where the log is not intact.
type BrokenPlace struct {
	Text string
	// Around is the page with the records there.
	Around string
}

// verify verifies the whole log.
func (d auditPages) verify(r *request) (any, error) {
	r.setTitle("Verification", Crumb{"Audit log", auditHome})
	begun := time.Now()
	report, err := d.service.VerifyAudit(r.Context())
	if err != nil {
		return nil, err
	}
	p := VerifyPage{Report: report}
	for _, one := range report.Problems {
		p.Problems = append(p.Problems, BrokenPlace{one.String(), fmt.Sprintf("%s?before=%d", auditHome, one.Seq+auditSize/2)})
	}
	p.Chains, err = d.service.VerifyChains(r.Context())
	p.Took = time.Since(begun)
	return p, err
}

// auditHome is the address of the log.
const auditHome = "/ui/audit"

// auditMarks are the fields of a record that stand in its last column, in words.
func auditMarks(e audit.Event) (marks []Mark) {
	add := func(name, value string) {
		if value != "" {
			marks = append(marks, Mark{name, value})
		}
	}
	add("rule", e.Rule)
	add("by", e.By)
	add("from", e.From)
	if e.Kind == audit.ExecutionStart || e.Kind == audit.Login {
		add("client", e.Client)
	}
	add("lost gateway", e.Gateway)
	add("language", e.Language)
	add("environment", e.Environment)
	add("workspace", e.Workspace)
	add("limits", e.Limits)
	if e.Micros > 0 {
		add("took", duration(time.Duration(e.Micros)*time.Microsecond))
	}
	if e.Bytes > 0 {
		add("bytes", groupDigits(e.Bytes))
	}
	if e.Calls > 0 {
		add("calls", groupDigits(int64(e.Calls)))
	}
	if e.Through > 0 {
		add("through", fmt.Sprint(e.Through))
	}
	add("code", short(e.Code))
	add("before", short(e.Before))
	add("after", short(e.After))
	add("note", e.Note)
	return marks
}

// Mark is a field of a record.
type Mark struct{ Name, Value string }

// short is the beginning of a digest.
func short(digest string) string { return digest[:min(len(digest), 12)] }

// auditPath is the log of one execution.
func auditPath(execution string) string {
	return auditHome + "?" + url.Values{"execution": {execution}}.Encode()
}
