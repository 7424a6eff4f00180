package rehearsal_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/gateway/auditor"
	"sallyport/gateway/catalog"
	"sallyport/gateway/guard"
	"sallyport/gateway/history"
	"sallyport/gateway/rehearsal"
	"sallyport/gateway/toolcall"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/policy"
	"sallyport/internal/tool"
)

// book is a record in memory.
type book struct {
	programs []history.Record
	journals map[string][]history.JournaledCall
	log      []audit.Event // the newest first
	noLog    bool
	peeked   int
}

func (b *book) Records(context.Context) iter.Seq2[history.Record, error] {
	return func(yield func(history.Record, error) bool) {
		for _, r := range b.programs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (b *book) JournalCalls(_ context.Context, id string, after, _ int) (history.JournaledCalls, error) {
	b.peeked++
	all, ok := b.journals[id]
	if !ok {
		return history.JournaledCalls{}, &tool.Error{Kind: tool.NotFound, Message: "it is not kept"}
	}
	return history.JournaledCalls{Calls: all[min(after, len(all)):min(after+2, len(all))], Total: len(all)}, nil
}

func (b *book) AuditLog(_ context.Context, f auditor.Filter) (page auditor.Page, err error) {
	if b.noLog {
		return page, &tool.Error{Kind: tool.NotFound, Message: "there is no audit log"}
	}
	for _, e := range b.log {
		if f.Before > 0 && e.Seq >= f.Before {
			continue
		}
		if len(page.Events) == 2 {
			page.Next = page.Events[1].Seq
			break
		}
		page.Events = append(page.Events, e)
	}
	return page, nil
}

var now = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func id(t *testing.T, text string) tool.ID {
	t.Helper()
	parsed, err := tool.ParseID(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func digest(args string) string {
	sum := sha256.Sum256([]byte(args))
	return hex.EncodeToString(sum[:])
}

// call is a call of a program so many minutes before now.
func call(t *testing.T, name, args, decision string, ago int) toolcall.RecordedCall {
	t.Helper()
	return toolcall.RecordedCall{Tool: id(t, name), Arguments: digest(args), Decision: decision, Begun: now.Add(-time.Duration(ago) * time.Minute)}
}

func journaled(args string) history.JournaledCall {
	return history.JournaledCall{Digest: digest(args), Arguments: args, ArgumentsSize: len(args)}
}

// run decides about a book by rules.
func run(t *testing.T, b *book, set policy.Settings, groups policy.Groups) rehearsal.Outcome {
	t.Helper()
	cfg := &config.Config{Policy: set, Upstreams: []config.Upstream{{ID: "crm", Labels: []string{"private"}}, {ID: "mail", Labels: []string{"external"}}}}
	g, err := guard.New(guard.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := g.Compile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	lookup := func(id tool.ID) (*catalog.Entry, bool) {
		return &catalog.Entry{Tool: tool.Tool{ID: id, Wire: id.Name, Annotations: tool.Annotations{ReadOnly: &yes}}}, id.Name == "get"
	}
	out, err := rehearsal.Run(tool.WithOperator(t.Context(), "op"), rehearsal.Options{Records: b, Lookup: lookup, Groups: groups}, rules, now.Add(-rehearsal.Span))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lines are the changes of an outcome, short.
func lines(o rehearsal.Outcome) (all []string) {
	for _, c := range o.Changes {
		all = append(all, fmt.Sprintf("%d %s %s: %s -> %s by %s", c.Calls, c.Tool, c.Principal, c.Was, c.Now, c.Rule))
	}
	return all
}

func check(t *testing.T, o rehearsal.Outcome, counts [5]int, want ...string) {
	t.Helper()
	if got := [5]int{o.Calls, o.Allowed, o.Refused, o.Asked, o.Unknown}; got != counts {
		t.Errorf("calls, allowed, refused, asked, unknown are %v, want %v", got, counts)
	}
	if got := lines(o); !reflect.DeepEqual(got, want) {
		t.Errorf("the changes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRun: calls of programs and others are decided by their arguments, labels and numbers, in the order in which they were made.
func TestRun(t *testing.T) {
	b := &book{
		programs: []history.Record{
			{ID: "e-old", Principal: "ann", Started: now.Add(-30 * time.Hour), Calls: []toolcall.RecordedCall{call(t, "crm.delete", "{}", "allow", 1790)}},
			{
				ID: "e-1", Principal: "ann", Started: now.Add(-time.Hour), Duration: time.Hour, Made: 7,
				Calls: []toolcall.RecordedCall{
					call(t, "sallyport.search_tools", "{}", "", 59), call(t, "crm.get", "{}", "allow", 58), call(t, "bank.pay", `{"amount":5}`, "allow", 57),
					call(t, "bank.pay", `{"amount":5000}`, "allow", 56), call(t, "mail.send", "{}", "allow", 55), call(t, "mail.send", "{}", "deny", 54),
				},
				Read: []toolcall.Origin{{Label: "private", Time: now.Add(-58 * time.Minute).Add(time.Second)}, {Label: "untrusted", Time: now.Add(-54*time.Minute - time.Second)}},
			},
			{ID: "e-2", Principal: "bob", Remote: true, Started: now.Add(-time.Hour), Duration: time.Minute, Made: 2, Calls: []toolcall.RecordedCall{
				call(t, "bank.pay", `{"amount":7}`, "allow", 60), {Tool: id(t, "crm.set"), Decision: "allow", Approval: "a-1", Begun: now.Add(-time.Hour)},
			}},
		},
		journals: map[string][]history.JournaledCall{"e-1": {journaled("{}"), journaled(`{"amount":5}`), journaled(`{"amount":5000}`)}},
		log: []audit.Event{
			{Seq: 5, Tool: "crm.delete", Principal: "carl", Decision: "allow", Time: now.Add(-time.Minute)},
			{Seq: 4, Tool: "crm.get", Execution: "e-1", Decision: "allow", Time: now.Add(-58 * time.Minute)},
			{Seq: 3, Tool: "crm.delete", Principal: "carl", Decision: "allow", Time: now.Add(-time.Hour)},
			{Seq: 2, Tool: "broken", Time: now.Add(-time.Hour)},
			{Seq: 1, Tool: "docs.resources/read", Execution: "r-1", Decision: "ask", Time: now.Add(-time.Hour)},
		},
	}
	set := policy.Settings{On: true, Default: policy.Allow, Rules: []policy.Rule{
		{Name: "big", Tools: []string{"bank.*"}, When: "args.amount > 1000", Then: policy.Deny},
		{Name: "no deletes", Tools: []string{"crm.delete"}, Then: policy.Ask},
		{Name: "sets", Tools: []string{"crm.set"}, When: "remote", Then: policy.Deny},
	}}
	o := run(t, b, set, nil)
	check(t, o, [5]int{10, 4, 2, 3, 1},
		"1 bank.pay ann: allow -> deny by big",
		"1 crm.set bob: ask -> deny by sets",
		"2 crm.delete carl: allow -> ask by no deletes",
		"1 mail.send ann: deny -> ask by flow",
		"1 docs.resources/read : ask -> allow by read-only",
		"1 bank.pay bob: allow -> unknown by big",
	)
	if o.Differ != 6 || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "1 calls of the program e-1") {
		t.Errorf("%d differ; %q", o.Differ, o.Notes)
	}
	if b.peeked != 4 { // two pages and the end of one journal, and one that is gone
		t.Errorf("journals were read %d times", b.peeked)
	}
}

// TestRunLimits: limits count the calls in the order in which they were made, and nothing of it counts in force.
func TestRunLimits(t *testing.T) {
	var calls []toolcall.RecordedCall
	for i := range 5 {
		calls = append(calls, call(t, "crm.set", "{}", "", 50-i))
	}
	b := &book{noLog: true, programs: []history.Record{{ID: "e-1", Started: now.Add(-time.Hour), Duration: time.Hour, Calls: calls}}}
	set := policy.Settings{On: true, Default: policy.Allow, Flow: policy.FlowOff, Rules: []policy.Rule{
		{Name: "third", When: `calls["crm.set"] == 2`, Then: policy.Ask},
		{Name: "few", Then: policy.Limit, Limit: &policy.Limits{Calls: 2, Per: "execution"}},
	}}
	for range 2 {
		o := run(t, b, set, nil)
		check(t, o, [5]int{5, 2, 2, 1, 0}, "2 crm.set : allow -> deny by few", "1 crm.set : allow -> ask by third")
		if !reflect.DeepEqual(o.Notes, []string{"There is no audit log, so only calls of programs were decided again."}) {
			t.Errorf("%q", o.Notes)
		}
	}
}

// TestRunGroups: groups that are not known leave a call undecided.
func TestRunGroups(t *testing.T) {
	b := &book{log: []audit.Event{
		{Seq: 2, Tool: "crm.set", Principal: "oauth:ann", Decision: "deny", Time: now}, {Seq: 1, Tool: "crm.set", Principal: "oauth:bob", Decision: "deny", Time: now},
	}}
	set := policy.Settings{On: true, Default: policy.Deny, Rules: []policy.Rule{{Name: "ops", When: `"ops" in groups`, Then: policy.Allow}}}
	o := run(t, b, set, func(principal string) ([]string, bool) { return []string{"ops"}, principal == "oauth:ann" })
	check(t, o, [5]int{2, 1, 0, 0, 1}, "1 crm.set oauth:ann: deny -> allow by ops", "1 crm.set oauth:bob: deny -> unknown by default")
}

// TestRunMany: a long list of changes is cut, and says so.
func TestRunMany(t *testing.T) {
	b := &book{programs: []history.Record{{ID: "e-1", Started: now.Add(-time.Hour), Duration: time.Hour}}}
	for i := range 300 {
		b.programs[0].Calls = append(b.programs[0].Calls, call(t, fmt.Sprintf("crm.set_%d", i), "{}", "allow", 50))
	}
	o := run(t, b, policy.Settings{On: true, Default: policy.Deny}, nil)
	if o.Refused != 300 || len(o.Changes) != 200 || o.More != 100 {
		t.Errorf("%d refused, %d changes and %d more", o.Refused, len(o.Changes), o.More)
	}
	var empty book
	check(t, run(t, &empty, policy.Settings{}, nil), [5]int{})
}
