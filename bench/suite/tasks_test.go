package suite_test

import (
	"cmp"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/bench/suite"
)

// The kinds in the order of tables, and the least that there are to be of each.
var kinds = []suite.Kind{suite.OneCall, suite.FewCalls, suite.ManyCalls, suite.MuchData, suite.Join}

var least = map[suite.Kind]int{suite.OneCall: 5, suite.FewCalls: 4, suite.ManyCalls: 3, suite.MuchData: 4, suite.Join: 4}

func TestTasks(t *testing.T) {
	tasks := suite.Tasks()
	byKind, names, servers := map[suite.Kind]int{}, map[string]bool{}, map[string]bool{}
	for _, task := range tasks {
		byKind[task.Kind]++
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(task.Name) || names[task.Name] {
			t.Errorf("%q is a bad name, or there twice", task.Name)
		}
		names[task.Name] = true
		for _, name := range task.Upstreams {
			servers[name] = true
		}
	}
	if len(tasks) < 20 || len(servers) != 5 {
		t.Errorf("%d tasks of %d servers", len(tasks), len(servers))
	}
	if !slices.IsSortedFunc(tasks, func(a, b *suite.Task) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	}) {
		t.Error("tasks are not in the order of their kinds")
	}
	for kind, n := range least {
		if byKind[kind] < n {
			t.Errorf("%d tasks of %s, fewer than %d", byKind[kind], kind, n)
		}
	}
}

func TestTasksSayWhatTheyNeed(t *testing.T) {
	w, err := suite.NewWorld("world", "modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range suite.Tasks() {
		t.Run(task.Name, func(t *testing.T) {
			var upstreams []string
			for _, s := range w.Servers() {
				if slices.ContainsFunc(slices.Concat(task.Needs, wrappers(task)), func(id string) bool { return strings.HasPrefix(id, s.Name+".") }) {
					upstreams = append(upstreams, s.Name)
				}
			}
			if !slices.Equal(upstreams, task.Upstreams) {
				t.Errorf("uses %q, and says %q", upstreams, task.Upstreams)
			}
			prompt := w.Expand(task.Prompt)
			for _, id := range slices.Concat(task.Needs, wrappers(task)) {
				if _, name, _ := strings.Cut(id, "."); regexp.MustCompile(`\b`+name+`\b`).MatchString(prompt) && name != "query" {
					t.Errorf("the prompt names the tool %s", name)
				}
			}
			for _, query := range slices.Concat(slices.Concat(task.Queries...), slices.Concat(task.SearchQueries...)) {
				if strings.ContainsAny(query, "_.") {
					t.Errorf("the query %q has a name that nobody knows yet", query)
				}
			}
			if strings.ContainsAny(prompt, "{}") || !strings.Contains(prompt, "Answer ") {
				t.Errorf("prompt: %s", prompt)
			}
			if want := task.Want(w); want == "" || want != strings.TrimSpace(want) || len(want) > 400 {
				t.Errorf("wants %q", want)
			}
			if len(task.Queries) == 0 || len(task.Needs) == 0 || len(task.Programs) == 0 || task.Programs[len(task.Programs)-1].Fails != "" {
				t.Error("a script is missing, or ends with a mistake")
			}
		})
	}
}

func wrappers(task *suite.Task) (ids []string) {
	for _, p := range task.Programs {
		ids = append(ids, p.Needs...)
	}
	return ids
}

// What a program imports, by its language.
var imports = map[string]*regexp.Regexp{
	".py": regexp.MustCompile(`from servers\.(\w+) import (.+)()`),
	".ts": regexp.MustCompile(`import \{ (.+) \} from "servers/(\w+)"`),
}

// imported are the ids that a program imports.
func imported(file, text string) map[string]bool {
	ids := map[string]bool{}
	for _, m := range imports[path.Ext(file)].FindAllStringSubmatch(text, -1) {
		upstream, names := m[1], m[2]
		if path.Ext(file) == ".ts" {
			upstream, names = names, upstream
		}
		for name := range strings.SplitSeq(names, ",") {
			ids[upstream+"."+strings.TrimSpace(name)] = true
		}
	}
	return ids
}

// A program may import what a search had to show before it, nothing else; and no file is there for nothing.
func TestProgramsImportWhatWasSearched(t *testing.T) {
	left := map[string]bool{}
	entries, err := os.ReadDir("programs")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left[e.Name()] = true
	}
	mistakes, languages := 0, map[string]int{}
	for _, task := range suite.Tasks() {
		shown := map[string]bool{}
		for _, p := range task.Programs {
			data, err := os.ReadFile("programs/" + p.File)
			if err != nil {
				t.Errorf("%s: %v", task.Name, err)
			}
			delete(left, p.File)
			languages[path.Ext(p.File)]++
			if p.Fails != "" {
				mistakes++
			}
			for _, id := range p.Needs {
				shown[id] = true
			}
			checkProgram(t, p, string(data), shown)
		}
	}
	if len(left) > 0 {
		t.Errorf("programs of no task: %q", slices.Sorted(maps.Keys(left)))
	}
	if mistakes < 3 || languages[".ts"] < 3 || languages[".py"] < 3 {
		t.Errorf("%d mistakes, programs: %v", mistakes, languages)
	}
}

func checkProgram(t *testing.T, p suite.Program, text string, shown map[string]bool) {
	t.Helper()
	ids := imported(p.File, text)
	for id := range ids {
		if !shown[id] {
			t.Errorf("%s imports %s, which no search had to show", p.File, id)
		}
	}
	for _, id := range p.Needs {
		if !ids[id] {
			t.Errorf("%s needs %s and does not import it", p.File, id)
		}
	}
	for _, place := range []string{"{files}", "{repo}"} {
		if strings.Contains(text, "$"+place) {
			t.Errorf("%s: $%s would become a dollar and a path", p.File, place)
		}
	}
}

// Every mistake is one of a program that is then mended: what failed is not run again as it was.
func TestMistakesAreMended(t *testing.T) {
	for _, task := range suite.Tasks() {
		seen := map[string]bool{}
		for _, p := range task.Programs {
			if seen[p.File] {
				t.Errorf("%s runs %s twice", task.Name, p.File)
			}
			seen[p.File] = true
		}
	}
}
