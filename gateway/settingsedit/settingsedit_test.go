package settingsedit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway/settingsedit"
	"sallyport/internal/access"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

const settings = `# mine
upstreams:
  # the notes
  notes:
    command: npx # from npm
    env: {TOKEN: "${NOTES_TOKEN}"}
    timeout: 30s
  tickets:
    url: https://tickets.example.com/mcp

# who may do what
policy:
  default: ask
  rules:
    - {name: reads, tools: [notes.get_*], then: allow} # good
`

// desk is an editor of a file of a test, with what it has told others.
type desk struct {
	*settingsedit.Editor
	path    string
	audited []audit.Event
	reloads int
	refuse  error
	problem string
}

func open(t *testing.T, text string) *desk {
	t.Helper()
	d := &desk{path: filepath.Join(t.TempDir(), "upstreams.yaml")}
	if err := os.WriteFile(d.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Editor = settingsedit.New(settingsedit.Options{
		Path: func() string { return d.path }, Getenv: func(string) (string, bool) { return "", false },
		Record: func(_ context.Context, e audit.Event) error { d.audited = append(d.audited, e); return d.refuse },
		Reload: func() string { d.reloads++; return d.problem },
	})
	return d
}

func (d *desk) content(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// admin is a caller who may change the settings.
func admin(t *testing.T) context.Context {
	t.Helper()
	return access.Caller{Principal: "oauth:ann"}.WithRole(access.Admin).NewContext(t.Context())
}

// edit opens a part, and returns a draft of it with a text replaced.
func (d *desk) edit(t *testing.T, old, replacement string, keys ...string) settingsedit.Draft {
	t.Helper()
	part, err := d.Open(admin(t), keys...)
	if err != nil || !strings.Contains(part.Text, old) {
		t.Fatalf("%v is %+v, %v", keys, part, err)
	}
	return settingsedit.Draft{Keys: keys, Version: part.Version, Text: strings.ReplaceAll(strings.Replace(part.Text, old, replacement, 1), "\n", "\r\n")}
}

// TestSave: a part is written with its comments, the rest stays, and it is put on record and into force.
func TestSave(t *testing.T) {
	for _, test := range []struct {
		keys        []string
		old, edited string
	}{
		{[]string{"policy"}, "then: allow} # good", "then: deny} # better"},
		{[]string{"upstreams", "notes"}, "timeout: 30s", "timeout: 60s # slow\n  # the end"},
	} {
		d := open(t, settings)
		draft := d.edit(t, test.old, test.edited, test.keys...)
		checked, err := d.Check(admin(t), draft)
		if err != nil || len(checked.Problems) > 0 || checked.Config == nil {
			t.Fatalf("%+v, %v", checked, err)
		}
		if d.content(t) != settings || len(d.audited) > 0 {
			t.Error("a check has changed something")
		}
		problems, force, err := d.Save(admin(t), draft)
		want := strings.Replace(settings, test.old, strings.ReplaceAll(test.edited, "\n", "\n  "), 1)
		if err != nil || problems != nil || force != "" || d.content(t) != want {
			t.Errorf("%v, %q, %v; the file is\n%s\nwant\n%s", problems, force, err, d.content(t), want)
		}
		if len(d.audited) != 1 || d.audited[0].Kind != audit.SettingsChanged || d.audited[0].Note != "edited "+strings.Join(test.keys, ".") || d.reloads != 1 {
			t.Errorf("on record: %+v; %d reloads", d.audited, d.reloads)
		}
	}
}

// TestSaveNew: a section that the file does not have is added.
func TestSaveNew(t *testing.T) {
	d := open(t, "upstreams: {}\n# the end\n")
	part, err := d.Open(admin(t), "policy")
	if err != nil || part.Text != "" || part.Line != 3 {
		t.Fatalf("%+v, %v", part, err)
	}
	draft := settingsedit.Draft{Keys: part.Keys, Version: part.Version, Text: "policy:\n  default: allow\n  flow: of\n"}
	problems, _, err := d.Save(admin(t), draft)
	if err != nil || len(problems) != 1 || problems[0].Line != 3 || problems[0].Column != 9 {
		t.Errorf("%+v, %v", problems, err)
	}
	draft.Text = "policy:\n  default: allow"
	if problems, force, err := d.Save(admin(t), draft); err != nil || problems != nil || force != "" || d.content(t) != "upstreams: {}\n# the end\npolicy:\n  default: allow\n" {
		t.Errorf("%v %q %v %q", problems, force, err, d.content(t))
	}
}

// TestProblems: what is wrong is told at its place in the text that is edited, and nothing is written.
func TestProblems(t *testing.T) {
	for _, test := range []struct {
		keys         []string
		old, edited  string
		line, column int
		says         string
		snippet      string
	}{
		{[]string{"policy"}, "then: allow", "then: alow", 4, 49, `did you mean "allow"?`, "  4 |     - {name: reads, tools: [notes.get_*], then: alow} # good\n                                                      ^"},
		{[]string{"policy"}, "default: ask", "default: [", 0, 0, "", ""},
		{[]string{"policy"}, "notes.get_*", "note.get_*", 4, 29, `did you mean "notes"?`, ""},
		{[]string{"policy"}, "then: allow", "when: args.a >, then: allow", 4, 45, "", ""},
		{[]string{"policy"}, "policy:", "http: {require_token: false}\npolicy:", 0, 0, "nothing else", ""},
		{[]string{"policy"}, "# good", "# go\u202eod", 0, 0, "characters that do not show", ""},
		{[]string{"upstreams", "notes"}, "timeout: 30s", "timeout: soon", 4, 12, "", "  4 |   timeout: soon\n                 ^"},
		{[]string{"upstreams", "notes"}, "command:", "comand:", 2, 3, "command", ""},
		{[]string{"upstreams", "notes"}, "notes:", "tickets:", 0, 0, "", ""},
		{[]string{"upstreams", "notes"}, "notes:", "other:", 0, 0, "the key notes", ""},
	} {
		d := open(t, settings)
		draft := d.edit(t, test.old, test.edited, test.keys...)
		if test.says == "the key notes" { // no rule is about it
			d = open(t, strings.Replace(settings, "notes.get_*", "tickets.get_*", 1))
			draft = d.edit(t, test.old, test.edited, test.keys...)
		}
		before := d.content(t)
		problems, _, err := d.Save(admin(t), draft)
		if err != nil || len(problems) == 0 {
			t.Errorf("%q is accepted: %v", test.edited, err)
			continue
		}
		p := problems[0]
		if p.Line != test.line && test.says != "" || p.Column != test.column && test.says != "" || !strings.Contains(p.Message, test.says) || test.snippet != "" && p.Snippet != test.snippet {
			t.Errorf("%q: %+v\n%s", test.edited, p, p.Snippet)
		}
		if d.content(t) != before || len(d.audited) > 0 || d.reloads > 0 {
			t.Errorf("%q was written", test.edited)
		}
	}
}

// TestProblemElsewhere: an error in another part is told with its place in the file.
func TestProblemElsewhere(t *testing.T) {
	d := open(t, strings.Replace(settings, "timeout: 30s", "timeout: soon", 1))
	problems, _, err := d.Save(admin(t), d.edit(t, "default: ask", "default: deny", "policy"))
	if err != nil || len(problems) != 1 || problems[0].Line != 0 || !strings.Contains(problems[0].Message, "upstreams.yaml, line 7, column 14: ") {
		t.Errorf("%+v, %v", problems, err)
	}
	if problems, _, err := d.Save(admin(t), d.edit(t, "timeout: soon", "timeout: 1m", "upstreams", "notes")); err != nil || problems != nil {
		t.Errorf("the part with the error cannot be mended: %+v, %v", problems, err)
	}
}

// TestStale: a draft of a part that somebody else has changed since is refused; a change elsewhere is kept.
func TestStale(t *testing.T) {
	d := open(t, settings)
	draft := d.edit(t, "default: ask", "default: deny", "policy")
	changed := strings.Replace(settings, "default: ask", "default: allow", 1)
	if err := os.WriteFile(d.path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if problems, _, err := d.Save(admin(t), draft); err != nil || len(problems) != 1 || !problems[0].Stale || d.content(t) != changed {
		t.Errorf("%+v, %v", problems, err)
	}
	elsewhere := strings.Replace(settings, "30s", "40s", 1)
	if err := os.WriteFile(d.path, []byte(elsewhere), 0o600); err != nil {
		t.Fatal(err)
	}
	if problems, _, err := d.Save(admin(t), draft); err != nil || problems != nil || d.content(t) != strings.Replace(elsewhere, "default: ask", "default: deny", 1) {
		t.Errorf("%+v, %v: %s", problems, err, d.content(t))
	}
}

// TestNotWritten: an edit that cannot be put on record is not written, and one that does not come into force says why.
func TestNotWritten(t *testing.T) {
	d := open(t, settings)
	d.refuse = errors.New("no room")
	if _, _, err := d.Save(admin(t), d.edit(t, "default: ask", "default: deny", "policy")); !errors.Is(err, d.refuse) || d.content(t) != settings {
		t.Errorf("%v; %s", err, d.content(t))
	}
	d.refuse, d.problem = nil, "a key is missing"
	if _, force, err := d.Save(admin(t), d.edit(t, "default: ask", "default: deny", "policy")); err != nil || force != "a key is missing" {
		t.Errorf("%q, %v", force, err)
	}
	if err := os.Chmod(d.path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Save(admin(t), d.edit(t, "default: deny", "default: ask", "policy")); tool.AsError(err).Kind != tool.Failed || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("%v", err)
	}
}

func TestSetDisabled(t *testing.T) {
	d := open(t, settings)
	if force, err := d.SetDisabled(admin(t), "notes", true); err != nil || force != "" || d.content(t) != strings.Replace(settings, "timeout: 30s\n", "timeout: 30s\n    disabled: true\n", 1) {
		t.Errorf("%q, %v: %s", force, err, d.content(t))
	}
	if _, err := d.SetDisabled(admin(t), "notes", false); err != nil || d.content(t) != settings {
		t.Errorf("%v: %s", err, d.content(t))
	}
	if len(d.audited) != 2 || d.audited[0].Note != "disabled upstreams.notes" || d.reloads != 2 {
		t.Errorf("%+v", d.audited)
	}
	if _, err := d.SetDisabled(admin(t), "none", true); tool.AsError(err).Kind != tool.NotFound {
		t.Errorf("%v", err)
	}
}

// TestDenied: tokens, also those of operators, other roles, and callers that are not over HTTP change nothing.
func TestDenied(t *testing.T) {
	d := open(t, settings)
	draft := d.edit(t, "default: ask", "default: deny", "policy")
	for name, ctx := range map[string]context.Context{
		"nobody": t.Context(), "an operator in the settings": access.Caller{Principal: "test", Operator: "test", Scopes: tool.Scopes()}.NewContext(t.Context()),
		"a token": access.Caller{Principal: "token:ci", Operator: "token:ci", Token: "x"}.NewContext(t.Context()), "the role operator": access.Caller{Principal: "oauth:bob"}.WithRole(access.RoleOperator).NewContext(t.Context()),
	} {
		_, opened := d.Open(ctx, "policy")
		_, checked := d.Check(ctx, draft)
		_, _, saved := d.Save(ctx, draft)
		_, disabled := d.SetDisabled(ctx, "notes", true)
		for _, err := range []error{opened, checked, saved, disabled} {
			if tool.AsError(err).Kind != tool.Denied {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if d.content(t) != settings {
		t.Error("the file has changed")
	}
}

// TestOpen: what cannot be edited says why.
func TestOpen(t *testing.T) {
	for _, test := range []struct {
		text string
		keys []string
		says string
	}{
		{"upstreams: {a: {url: http://127.0.0.1:1/mcp}}\n", []string{"upstreams", "a"}, "braces"},
		{settings, []string{"upstreams", "none"}, "no upstreams.none"},
		{"upstreams:\n  a:\n    url: http://127.0.0.1:1/mcp # \u202e\n", []string{"upstreams", "a"}, "do not show"},
	} {
		d := open(t, test.text)
		if _, err := d.Open(admin(t), test.keys...); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v of %q: %v", test.keys, test.text, err)
		}
	}
	d := open(t, settings)
	d.path = filepath.Join(d.path, "none")
	if _, err := d.Open(admin(t), "policy"); err == nil {
		t.Error("a path below a file can be read")
	}
}
