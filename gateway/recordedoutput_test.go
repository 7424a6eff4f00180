package gateway_test

import (
	"strings"
	"testing"

	"sallyport/gateway/execution"
	"sallyport/gateway/history"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// TestRecordedOutput: the record of an execution has its title, client, error and output, with tokens in place of personal data, and a
// principal finds its own by any of these texts.
func TestRecordedOutput(t *testing.T) {
	t.Parallel()
	g, _ := openPrivate(t, config.Privacy{Mode: config.PrivacyTokenize}, func(cfg *config.Config) {
		withRunsc(t, cfg).Records = config.Records{Output: 100}
	})
	ann := tool.WithClient(tool.WithPrincipal(t.Context(), "ann"), "desk 1.2")
	run := func(code string) history.Record {
		t.Helper()
		e, err := g.Executor.Execute(ann, execution.Program{Code: code})
		if err != nil {
			t.Fatal(err)
		}
		r, err := g.History.Record(ann, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	good := run("# Reads a person\nfrom servers.crm import get\np = get()\nprint(p['email'])\nprint('x' * 200)\np['id']")
	if good.Title != "Reads a person" || good.Client != "desk 1.2" || good.Error != "" {
		t.Errorf("%q %q %q", good.Title, good.Client, good.Error)
	}
	if o := good.Output; o == nil || !strings.HasPrefix(o.Stdout, "[EMAIL_1]\nx") || len(o.Stdout) != 100 || !o.Cut || o.Value != "7" {
		t.Errorf("output %+v", good.Output)
	}
	bad := run("from servers.crm import get\nimport sys\nget()\nprint('stern', file=sys.stderr)\nraise ValueError('no such invoice')")
	if bad.Title != "crm.get" || bad.Error != "ValueError: no such invoice" || bad.Output == nil || bad.Output.Stderr != "stern" || bad.Output.Cut {
		t.Errorf("%q %q %+v", bad.Title, bad.Error, bad.Output)
	}
	for text, want := range map[string]string{"INVOICE": bad.ID, "Stern": bad.ID, "reads a": good.ID, "p['id']": good.ID, "DESK": "both", "crm.get": "both", "ann@corp": "", "[email_1]": good.ID} {
		var got []string
		page, err := g.History.Executions(ann, history.Filter{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Executions {
			got = append(got, b.ID)
		}
		if all := strings.Join(got, " "); all != strings.ReplaceAll(want, "both", bad.ID+" "+good.ID) || page.Total != len(got) {
			t.Errorf("%s: %s, want %s", text, all, want)
		}
	}
	if page, err := g.History.Executions(tool.WithPrincipal(t.Context(), "bob"), history.Filter{Text: "invoice"}); err != nil || page.Total != 0 {
		t.Errorf("another principal finds %+v %v", page, err)
	}
}
