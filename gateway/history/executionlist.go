package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/gateway/execution"
	"sallyport/gateway/toolcall"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// Status is how a program ended.
type Status = sandbox.Status

// Brief is the summary of an execution in a list.
type Brief struct {
	ID        string `json:"id"`
	Principal string `json:"principal,omitempty"`
	Language  string `json:"language"`
	// Client, Title and Error are as in [Record].
	Client    string         `json:"client,omitempty"`
	Title     string         `json:"title,omitempty"`
	Error     string         `json:"error,omitempty"`
	Workspace string         `json:"workspace,omitempty"`
	Status    sandbox.Status `json:"status"`
	Started   time.Time      `json:"started"`
	Duration  time.Duration  `json:"duration"`
	// Made and Tokens are as in [Record].
	Made   int `json:"made,omitempty"`
	Tokens int `json:"tokens,omitempty"`

	revision uint64
	read     int64 // tokens of the results that it got
	partly   bool  // it made more calls than its record has
	grams    signature
}

// Filter selects executions. The zero value selects the newest of all.
type Filter struct {
	// ID is a part of the id; Status, Language and Principal are as in the record. "" is any.
	ID, Language, Principal string
	Status                  Status
	// Text is a part of the title, program, output, error, client or tools of a record, in any case; "" is any.
	Text string
	// Since is the earliest start; the zero time is all.
	Since time.Time
	// After is the id of the last execution of the previous page; "" starts at the newest. An unknown id selects nothing.
	After string
	// Offset is the number of newest ones to skip, Limit the maximum number to return; 0 is 50.
	Offset, Limit int
}

// Page is a part of the list of executions.
type Page struct {
	// Executions are sorted by start, the newest first.
	Executions []Brief
	// Total is the number of matches. Estimated says that it counts executions that only probably contain the text: of those after the
	// ones on the page, not all are read.
	Total     int
	Estimated bool
	// Principals are the principals of all executions that the caller may see, sorted.
	Principals []string
}

// Executions returns a page of the executions of the caller, or of all principals for an operator. Each record is read once per process,
// so a later list costs only the records that are new. Errors are *tool.Error.
func (h *History) Executions(ctx context.Context, f Filter) (Page, error) {
	all, err := h.briefsOf(ctx)
	if err != nil {
		return Page{}, err
	}
	page, principals := Page{Executions: []Brief{}}, map[string]bool{}
	if f.Limit <= 0 {
		f.Limit = defaultBriefs
	}
	look := &search{history: h, text: strings.ToLower(f.Text)}
	for _, b := range slices.Backward(all) {
		principals[b.Principal] = true
		if !f.matches(b) {
			continue
		}
		found, err := look.finds(ctx, b, len(page.Executions) >= f.Limit)
		if err != nil {
			return Page{}, toolcall.Unreadable(ctx, h.opts.Logger, err)
		}
		if !found {
			continue
		}
		if page.Total++; f.After == "" && page.Total > f.Offset && len(page.Executions) < f.Limit {
			page.Executions = append(page.Executions, b)
		}
		if b.ID == f.After {
			f.After = ""
		}
	}
	for name := range principals {
		page.Principals = append(page.Principals, name)
	}
	slices.Sort(page.Principals)
	page.Estimated = look.estimated
	return page, nil
}

// maxVerified is the number of records that a search reads before it only estimates how many more match.
const maxVerified = 500

// search looks for a text in records.
type search struct {
	history *History
	text    string // in lower case; "" is in all
	read    int
	// estimated says that records counted that were not read.
	estimated bool
}

// finds reports whether a record contains the text. When the page is full, it may report so of a record that only probably does.
func (s *search) finds(ctx context.Context, b Brief, full bool) (bool, error) {
	switch {
	case s.text == "":
		return true, nil
	case !b.grams.mayContain(s.text):
		return false, nil
	case full && s.read >= maxVerified:
		s.estimated = true
		return true, nil
	}
	s.read++
	r, err := s.history.recordOfBrief(ctx, b)
	if errors.Is(err, store.ErrNotFound) { // the store has removed it
		return false, nil
	}
	return err == nil && strings.Contains(r.lowerSearched(), s.text), err
}

// recordOfBrief returns the record of an execution that the caller may see.
func (h *History) recordOfBrief(ctx context.Context, b Brief) (Record, error) {
	h.mu.Lock()
	p := h.pending[b.ID]
	h.mu.Unlock()
	if p != nil && p.record.Principal == b.Principal {
		return h.withTokens(p), nil
	}
	entry, err := h.records.Get(ctx, KeyOf(b.Principal, b.ID))
	if err != nil {
		return Record{}, err
	}
	return recordOf(entry)
}

// searched returns the texts in which a search looks.
func (r Record) searched() string {
	texts := []string{r.ID, r.Title, r.Client, r.Error, r.Code}
	if r.Output != nil {
		texts = append(texts, r.Output.Stdout, r.Output.Stderr, r.Output.Value)
	}
	return strings.Join(append(texts, toolNames(r.Calls)...), "\n")
}

// briefsOf returns all executions of the caller, or of all principals for an operator, the oldest first. Errors are *tool.Error.
func (h *History) briefsOf(ctx context.Context) ([]Brief, error) {
	h.awaitRecovery(ctx)
	h.takeOver(ctx)
	known, operator := map[string]bool{}, tool.Operator(ctx) != ""
	late := h.pendingRecords(tool.Principal(ctx), operator) // first, so that records that are written now are found in the store
	all, err := h.briefs.read(ctx, h.records)
	if err != nil {
		return nil, toolcall.Unreadable(ctx, h.opts.Logger, err)
	}
	for _, b := range all {
		known[b.ID] = true
	}
	for _, r := range late {
		if !known[r.ID] {
			all = append(all, briefOf(r))
		}
	}
	slices.SortStableFunc(all, func(a, b Brief) int { return a.Started.Compare(b.Started) }) // those of other processes are recorded later
	return slices.DeleteFunc(all, func(b Brief) bool { return !operator && b.Principal != tool.Principal(ctx) }), nil
}

// Statuses returns all final statuses of executions.
func Statuses() []string {
	return []string{
		string(sandbox.OK), string(sandbox.Failed), string(sandbox.Exited), string(sandbox.TimedOut), string(sandbox.OutOfCPU), string(sandbox.OutOfMemory),
		string(sandbox.Flooded), string(sandbox.Canceled), string(sandbox.Crashed), string(execution.Held), string(execution.Interrupted),
	}
}

// defaultBriefs is the default number of executions per page.
const defaultBriefs = 50

func (f Filter) matches(b Brief) bool {
	return strings.Contains(b.ID, f.ID) && (f.Status == "" || b.Status == f.Status) && (f.Language == "" || b.Language == f.Language) &&
		(f.Principal == "" || b.Principal == f.Principal) && !b.Started.Before(f.Since)
}

func briefOf(r Record) Brief {
	return Brief{
		ID: r.ID, Principal: r.Principal, Language: r.Language, Client: r.Client, Title: r.Title, Error: r.Error, Workspace: r.Workspace, Status: r.Status, Started: r.Started, Duration: r.Duration, Made: r.Made, Tokens: r.Tokens,
		read: r.ReadTokens(), partly: r.Made > len(r.Calls), grams: newSignature(r.lowerSearched()),
	}
}

// briefs caches the summaries of the records in a store.
type briefs struct {
	mu   sync.Mutex
	all  []Brief // in the order in which they were written
	next uint64  // the first revision that was not read
	// damaged has the keys of records that cannot be read, by their ids.
	damaged map[string]store.Key
}

// read updates the cache from the store and returns the summaries of all records, the oldest first.
func (l *briefs) read(ctx context.Context, in *store.Bucket) ([]Brief, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.update(ctx, in)
	return slices.Clone(l.all), err
}

// keyOf updates the cache from the store and returns the key of the record with an id.
func (l *briefs) keyOf(ctx context.Context, in *store.Bucket, id string) (store.Key, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.update(ctx, in); err != nil {
		return nil, err
	}
	for _, b := range slices.Backward(l.all) {
		if b.ID == id {
			return KeyOf(b.Principal, id), nil
		}
	}
	if key, ok := l.damaged[id]; ok {
		return key, nil
	}
	return nil, store.ErrNotFound
}

// update reads what is new in the store. It is called with mu held.
func (l *briefs) update(ctx context.Context, in *store.Bucket) error {
	for entry, err := range in.Since(ctx, l.next) {
		if err != nil {
			return err
		}
		l.next = entry.Revision + 1
		r, err := recordOf(entry)
		if err != nil {
			l.addDamaged(entry.Key)
			continue // reading the execution itself reports the error
		}
		b := briefOf(r)
		b.revision = entry.Revision
		l.add(b)
	}
	oldest := l.next
	for entry, err := range in.Since(ctx, 0) { // older ones were removed by the store's limits
		if err != nil {
			return err
		}
		oldest = entry.Revision
		break
	}
	l.all = slices.DeleteFunc(l.all, func(b Brief) bool { return b.revision < oldest })
	return nil
}

// maxDamaged bounds the damaged records that are remembered.
const maxDamaged = 1000

func (l *briefs) addDamaged(key store.Key) {
	if l.damaged == nil {
		l.damaged = map[string]store.Key{}
	}
	if len(l.damaged) < maxDamaged {
		l.damaged[key[len(key)-1]] = key
	}
}

// load reads all records ahead of the first list, which takes seconds for very many.
func (l *briefs) load(ctx context.Context, in *store.Bucket) {
	_, _ = l.read(ctx, in) // a list reports the error
}

// add appends the newest one. It replaces an earlier one of the same record, which can only be among the last.
func (l *briefs) add(b Brief) {
	from := max(0, len(l.all)-maxPending)
	if at := slices.IndexFunc(l.all[from:], func(o Brief) bool { return o.ID == b.ID && o.Principal == b.Principal }); at >= 0 {
		l.all = slices.Delete(l.all, from+at, from+at+1)
	}
	l.all = append(l.all, b)
}
