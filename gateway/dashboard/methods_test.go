package dashboard

import (
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// TestTemplatesCallNoMethods: no name in a template is that of a method of a type that pages show. Releases are built
// without the methods that only a template would call.
func TestTemplatesCallNoMethods(t *testing.T) {
	names := templateNames()
	if !slices.Contains(names, "Title") || !slices.Contains(names, "WaitingCount") {
		t.Fatalf("the names in templates are %q", names)
	}
	seen := map[reflect.Type]bool{}
	for _, data := range []any{
		view{}, safe(""), Problem{}, moment{}, longText{}, Overview{}, ExecutionsPage{}, ExecutionPage{}, LivePage{}, RunsPage{}, RunPage{}, RunLogPage{}, TasksPage{}, TaskPage{},
		WorkflowPage{}, ApprovalsPage{}, QuarantinePage{}, UpstreamsPage{}, UpstreamPage{}, CataloguePage{}, ToolPage{}, SkillsPage{}, SkillPage{}, PlaygroundPage{}, SavingsPage{}, AuditPage{}, VerifyPage{}, PolicyPage{}, EditPage{}, ConnectionsPage{}, ConnectionPage{}, ClusterPage{}, UsersPage{},
	} {
		checkMethods(t, reflect.TypeOf(data), names, seen)
	}
}

// templateNames returns the names behind a dot in all templates.
func templateNames() (names []string) {
	action, name := regexp.MustCompile(`{{[^}]*}}`), regexp.MustCompile(`\.([A-Z]\w*)`)
	for _, each := range parse().Templates() {
		if each.Tree == nil {
			continue
		}
		for _, text := range action.FindAllString(each.Tree.Root.String(), -1) {
			for _, found := range name.FindAllStringSubmatch(text, -1) {
				names = append(names, found[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fieldsOfOthers are methods whose names are in templates as those of fields of other types.
var fieldsOfOthers = []string{
	"time.Time.Day", "time.Time.Zone", "tool.Kind.Status", "tool.Tool.Digest", "audit.Event.Summary", "auditor.Page.Whole", "dashboard.AuditPage.Whole", "catalog.Upstream.Problem", "dashboard.UpstreamPage.Problem",
	"toolsearch.Found.Text", "task.Task.Resumable", "dashboard.TaskPage.Resumable", "dashboard.Field.Read", "forms.Question.Read", "models.Usage.Tokens",
}

// checkMethods checks a type, and those of its members.
func checkMethods(t *testing.T, typ reflect.Type, names []string, seen map[reflect.Type]bool) {
	t.Helper()
	if seen[typ] {
		return
	}
	seen[typ] = true
	for _, name := range names {
		if _, found := reflect.PointerTo(typ).MethodByName(name); found && !slices.Contains(fieldsOfOthers, typ.String()+"."+name) {
			t.Errorf("%s has the method %s, which is a name in a template: use a function of funcs.go, or a field", typ, name)
		}
	}
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		checkMethods(t, typ.Elem(), names, seen)
	case reflect.Struct:
		for field := range typ.Fields() {
			if field.IsExported() || field.Anonymous {
				checkMethods(t, field.Type, names, seen)
			}
		}
	}
}
