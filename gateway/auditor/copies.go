package auditor

import (
	"context"
	"slices"
	"time"

	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// copyDelay is how much later than its records a batch may be in the store before records that follow it are missed by Since.
const copyDelay = time.Hour

// copiesPage reads a page of the copies of gateways that share the store, in about the order in which they wrote them.
func (a *Auditor) copiesPage(ctx context.Context, filter Filter) (Page, error) {
	if !a.opts.Records.Shared() {
		return Page{}, &tool.Error{Kind: tool.Invalid, Message: "there is one gateway: the settings have no store that several share", Hint: "leave gateway out"}
	}
	all, err := audit.Copies(ctx, a.opts.Records, a.set.Keep)
	if err != nil {
		return Page{}, toolcall.Unreadable(ctx, a.opts.Logger, err)
	}
	chosen, err := audit.Choose(all, filter.Gateway)
	if err != nil {
		return Page{}, err
	}
	page := copiedPage{filter: filter}
	for batch, err := range audit.ReadCopiesBackward(ctx, a.opts.Records, chosen, filter.Before) {
		if err != nil {
			return Page{}, toolcall.Unreadable(ctx, a.opts.Logger, err)
		}
		if !page.add(batch) || ctx.Err() != nil {
			break
		}
	}
	return page.sorted(), nil
}

// copiedPage is a page of copies that is being filled.
type copiedPage struct {
	Page
	filter Filter
	events []copiedEvent
	after  uint64 // the position of the batch that was scanned last
}

// copiedEvent is an event of a copy.
type copiedEvent struct {
	audit.Event
	of audit.Copied
}

// add scans the next older batch, and reports whether to continue.
func (p *copiedPage) add(b audit.CopiedBatch) bool {
	if len(b.Records) > 0 && b.Records[0].Time.Before(p.filter.Since.Add(-copyDelay)) {
		return false
	}
	if len(p.events) >= p.filter.Limit || p.Looked >= maxAuditScan { // there is one more
		p.Next = p.after
		return false
	}
	p.after, p.Looked, p.Damaged = b.Position, p.Looked+len(b.Records)+b.Damaged, p.Damaged+b.Damaged
	for _, r := range b.Records {
		if p.filter.matches(r.Event) && !r.Time.Before(p.filter.Since) {
			p.events = append(p.events, copiedEvent{r.Event, b.Of})
		}
	}
	return true
}

// sorted returns the page with its events by time.
func (p *copiedPage) sorted() Page {
	slices.SortStableFunc(p.events, func(x, y copiedEvent) int { return y.Time.Compare(x.Time) })
	for _, e := range p.events {
		p.Events, p.Of = append(p.Events, e.Event), append(p.Of, e.of)
	}
	return p.Page
}
