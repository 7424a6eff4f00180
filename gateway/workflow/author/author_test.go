package author_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/gateway/history"
	"sallyport/gateway/workflow/author"
	"sallyport/gateway/workflow/library"
	"sallyport/gateway/workflow/lint"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/access"
	"sallyport/internal/audit"
	"sallyport/internal/tool"
)

// desk is an author with a real folder and a real library.
type desk struct {
	*author.Author
	dir   string
	files *library.Library
	notes []string
	fails error // of the audit log
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{dir: filepath.Join(t.TempDir(), "workflows")}
	d.files = library.Open(d.dir, nil)
	d.Author = author.New(author.Options{
		Dir: d.dir, Definitions: d.files.Definitions, Reload: func() { d.files.Reload() },
		Lint: func(context.Context) lint.Options { return lint.Options{Environments: []string{"default", "data"}} },
		Record: func(_ context.Context, e audit.Event) error {
			d.notes = append(d.notes, string(e.Kind)+" "+e.Note)
			return d.fails
		},
	})
	return d
}

// names returns the files of the folder.
func (d *desk) names(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// as returns the context of a caller with a role.
func as(ctx context.Context, role access.Role) context.Context {
	return access.Caller{Principal: "ann", Operator: "ann"}.WithRole(role).NewContext(ctx)
}

func record(code string) history.Record {
	return history.Record{ID: "e-2f6qdmnhx3k4", Language: "python", Code: code, Environment: "data"}
}

// TestSave: a program becomes a workflow that is in force at once, with the program as it is.
func TestSave(t *testing.T) {
	d := newDesk(t)
	const about, code = "Counts: \"all\" # of\nthem ${{ no }}", "\n  # ${{ steps.a }} 'x' \"y\"\nif True:\n\tprint('ü: - {')\n\nlen([1])"
	if err := d.Save(as(t.Context(), access.Admin), "count_all", about, record(code)); err != nil {
		t.Fatal(err)
	}
	defs := d.files.Definitions()
	if len(defs) != 1 || defs[0].Name != "count_all" || defs[0].Description != about || len(defs[0].Steps) != 1 {
		t.Fatalf("%+v, %v", defs, d.files.Faults())
	}
	step, ok := defs[0].Steps[0].Do.(*spec.Code)
	if !ok || step.Text.Text != code || step.Environment.Text != "data" {
		t.Errorf("%+v", defs[0].Steps[0].Do)
	}
	if got := strings.Join(d.notes, "|"); got != "settings.changed added workflow count_all, from execution e-2f6qdmnhx3k4" {
		t.Errorf("the audit log: %s", got)
	}
}

// TestSaveRefused: nothing is written for others, over another workflow, under a name that is none, or what cannot be a workflow.
func TestSaveRefused(t *testing.T) {
	d := newDesk(t)
	if err := d.Save(as(t.Context(), access.Admin), "first", "", record("1")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "broken.yml"), []byte("steps: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := record("1")
	other.Environment = "nowhere"
	for name, test := range map[string]struct {
		role  access.Role
		done  history.Record
		kind  tool.Kind
		wants string
	}{
		"mine":             {access.RoleOperator, record("1"), tool.Denied, "only an administrator"},
		"ours":             {access.User, record("1"), tool.Denied, "only an administrator"},
		"first":            {access.Admin, record("2"), tool.Invalid, "there is a workflow first already"},
		"broken":           {access.Admin, record("2"), tool.Invalid, "there is a workflow broken already"},
		"../out":           {access.Admin, record("1"), tool.Invalid, "the name of a workflow"},
		"a/b":              {access.Admin, record("1"), tool.Invalid, "the name of a workflow"},
		"x: 1\nexpose":     {access.Admin, record("1"), tool.Invalid, "the name of a workflow"},
		"":                 {access.Admin, record("1"), tool.Invalid, ""},
		"count-all":        {access.Admin, record("1"), tool.Invalid, "the name of a workflow"},
		"large":            {access.Admin, record(strings.Repeat("x", 65<<10)), tool.Invalid, "64 KiB"},
		"wrongenvironment": {access.Admin, other, tool.Invalid, "nowhere"},
	} {
		err := d.Save(as(t.Context(), test.role), name, "", test.done)
		if e := tool.AsError(err); err == nil || e.Kind != test.kind || !strings.Contains(e.Message, test.wants) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if got := d.names(t); got != "broken.yml first.yaml" || len(d.notes) != 1 {
		t.Errorf("the folder has %s, the audit log %v", got, d.notes)
	}
	d.fails = &tool.Error{Kind: tool.Failed, Message: "the disk is full"}
	if err := d.Save(as(t.Context(), access.Admin), "second", "", record("1")); err == nil || d.names(t) != "broken.yml first.yaml" {
		t.Errorf("without a record: %v, %s", err, d.names(t))
	}
}
