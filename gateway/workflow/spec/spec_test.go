package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func load(t *testing.T, path string) *Definition {
	t.Helper()
	d, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// parse reads a text, which must be a definition.
func parse(t *testing.T, text string) *Definition {
	t.Helper()
	d, err := Parse("test.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFormats: a definition says the same in YAML and in JSON.
func TestFormats(t *testing.T) {
	yaml, json := load(t, "testdata/everything.yaml"), load(t, "testdata/everything.json")
	same := []cmp.Option{
		cmpopts.IgnoreFields(Definition{}, "Path", "Source", "Digest"), cmpopts.IgnoreUnexported(Definition{}), cmpopts.IgnoreTypes(Pos{}),
		cmp.Transformer("text", func(t Text) string { return t.Text }),
	}
	if diff := cmp.Diff(yaml, json, same...); diff != "" {
		t.Errorf("-YAML +JSON:\n%s", diff)
	}
	if yaml.Digest == json.Digest || len(yaml.Digest) != 64 {
		t.Errorf("digests %s, %s", yaml.Digest, json.Digest)
	}
}

// TestEverything looks at what came of each kind of step.
func TestEverything(t *testing.T) {
	d := load(t, "testdata/everything.yaml")
	if d.Name != "everything" || !d.Expose || d.Timeout != 2*time.Hour || d.Concurrency != (Concurrency{1, "queue"}) || len(d.Env) != 2 || !filepath.IsAbs(d.Dir) {
		t.Errorf("definition: %+v", d)
	}
	if string(d.Files["code/names.ts"]) == "" {
		t.Errorf("files: %v", d.Files)
	}
	want := `{"type":"object","properties":{"folder":{"default":"docs","description":"Which folder","minLength":1,"type":"string"},"count":{"type":"integer"},` +
		`"tags":{"items":{"enum":["a","b",null],"type":["string","null"]},"type":"array"},"home":{"type":"string"}},"additionalProperties":false,"required":["count"]}`
	if got := string(InputSchema(d)); got != want {
		t.Errorf("inputs: %s", got)
	}
	want = `{"type":"object","properties":{"files":{"description":"How many","type":"integer"},"all":{}},"additionalProperties":false,"required":["files","all"]}`
	if got := string(OutputSchema(d)); got != want {
		t.Errorf("outputs: %s", got)
	}
	code := d.Step("script").Do.(*Code)
	if code.Language != "typescript" || code.File.Text != "code/names.ts" || !strings.Contains(code.Text.Text, "export default") {
		t.Errorf("code: %+v", code)
	}
	loop := d.Step("each[3].inner").Do.(*ForEach)
	value, plain := loop.In.Plain()
	if diff := cmp.Diff([]any{"a", int64(1), 2.5, true, nil, map[string]any{"x": []any{"y"}}}, value); diff != "" || !plain || loop.As.Text != "item" || loop.Concurrency != 1 {
		t.Errorf("items: %s %+v", diff, loop)
	}
	if pick := d.Step("pick"); pick.If.Text != "size(steps.names.output) > 0" {
		t.Errorf("if: %q", pick.If.Text)
	}
	if try := d.Step("quiet").Do.(*Try); try.Catch == nil || len(try.Catch) != 0 || try.Finally != nil {
		t.Errorf("an empty catch: %+v", try)
	}
	if wait := d.Step("pick.case[0].many").Do.(*Wait); wait.For == nil || wait.For.Text.Text != "5m" {
		t.Errorf("wait: %+v", wait)
	}
	if retry := d.Step("each[0].fetch").Retry; retry.Count != 2 || retry.Wait != time.Second || retry.Max != time.Minute {
		t.Errorf("retry: %+v", retry)
	}
}

// TestStep finds steps by the paths of events, and Walk comes by all of them.
func TestStep(t *testing.T) {
	d := load(t, "testdata/everything.yaml")
	for _, path := range []string{"list", "each", "each[3]", "each[3].fetch", "each[3].inner[2].deep", "both.left.l", "both.right.r", "pick.case[1].one", "pick.default.none", "again[9].ok",
		"guard.try.risky", "guard.catch.report", "guard.finally.clean"} {
		id := path[strings.LastIndex(path, ".")+1:]
		id, _, _ = strings.Cut(id, "[")
		if s := d.Step(path); s == nil || s.ID.Text != id {
			t.Errorf("%s: %+v", path, s)
		}
	}
	for _, path := range []string{"", "no", "both.left", "both.l", "both.middle.l", "both.left.r", "list.x", "each[3].", "both.right.r.x", "pick.case[7].one", "."} {
		if s := d.Step(path); s != nil {
			t.Errorf("%q: %+v", path, s.ID)
		}
	}
	var walked []string
	Walk(d.Steps, func(s *Step, in []*Step) {
		for _, outer := range in {
			walked = append(walked, outer.ID.Text+"/")
		}
		walked = append(walked, s.ID.Text)
	})
	if got := strings.Join(walked, " "); !strings.HasPrefix(got, "list names script each each/ fetch each/ inner each/ inner/ deep both both/ l") || !strings.HasSuffix(got, "guard/ clean quiet quiet/ maybe words") {
		t.Errorf("walked %s", got)
	}
}

// TestPositions: each expression in a text is where it stands in the file, however the text is quoted.
func TestPositions(t *testing.T) {
	text := `
steps:
  - id: a
    tool: a.b
    with:
      plain: x ${{ one }} y
      over: x
        ${{ one }} y
      single: 'it''s ${{ one }}'
      double: "\u00e4\t\"ä\" ${{ one }}"
      broken: "a \
        b

        c ${{ one }}"
      literal: |
        x

          ${{ one }}
      indented: |2
          ${{ one }}
      folded: >-
        a
        b

        ${{ one }}
      wide: 日本 ${{ one }}
      "in a list": [x, "${{ one }}"]
`
	d := parse(t, text)
	lines := strings.Split(text, "\n")
	check := func(name string, v Text) {
		at := v.At(strings.Index(v.Text, "one"))
		if at.Line < 1 || at.Line > len(lines) || at.Column < 1 || !strings.HasPrefix(string([]rune(lines[at.Line-1])[at.Column-1:]), "one") {
			t.Errorf("%s: %q is at %v", name, v.Text, at)
		}
		if e := d.Error(at, "here"); e.Line != at.Line || e.Column != at.Column || !strings.HasSuffix(e.Snippet, "^") {
			t.Errorf("%s: %v", name, e)
		}
	}
	for _, m := range d.Steps[0].Do.(*Tool).With.Members {
		v := m.Value.Text
		if m.Value.Kind == List {
			v = m.Value.Items[1].Text
		}
		check(m.Name.Text, v)
	}
}

// TestPositionsOfJSON: the same, with what JSON has for escapes.
func TestPositionsOfJSON(t *testing.T) {
	text := "{\"steps\": [{\"id\": \"a\", \"if\": \"\\\"\\u00e4\\ud83d\\ude00\\/\\\" != ${{one\",\n\t \"tool\": \"a.b\", \"with\": {\"ü\": \"\\n🎉 ${{ two }}\"}}]}"
	text = strings.Replace(text, "${{one", "one", 1)
	d, err := Parse("test.json", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	for word, v := range map[string]Text{"one": *d.Steps[0].If, "two": d.Steps[0].Do.(*Tool).With.Members[0].Value.Text} {
		at := v.At(strings.Index(v.Text, word))
		if !strings.HasPrefix(string([]rune(lines[at.Line-1])[at.Column-1:]), word) {
			t.Errorf("%s is at %v", word, at)
		}
	}
	if v := d.Steps[0].Do.(*Tool).With.Members[0].Value; v.Pos != (Pos{2, 32}) {
		t.Errorf("a value at %v", v.Pos)
	}
}

// TestErrorsOfNoFile: a definition made by hand has faults too.
func TestErrorsOfNoFile(t *testing.T) {
	d := &Definition{Path: "x.yaml"}
	if got := d.Error(Pos{3, 4}, "a %s", "fault").Error(); got != "x.yaml:3:4: a fault" {
		t.Error(got)
	}
	made := Text{Pos: Pos{1, 2}, Text: "x"}
	if made.At(5) != (Pos{1, 2}) {
		t.Error(made.At(5))
	}
	read := parse(t, "steps: [{id: a, tool: a.b}]\n")
	for _, at := range []Pos{{}, {9, 9}, {-1, 0}, {1, 500}} {
		if e := read.Error(at, "here"); e.Line > 2 || e.Column > 29 {
			t.Errorf("%v: %v", at, e)
		}
	}
}

// TestLoadDir: a folder's definitions are those that can be read, and one name is one workflow.
func TestLoadDir(t *testing.T) {
	dir := t.TempDir()
	const one = "steps: [{id: a, tool: a.b}]\n"
	for name, text := range map[string]string{
		"b.yaml": one, "a.yml": one, "c.json": `{"name": "zz", "steps": [{"id": "a", "tool": "a.b"}]}`, "twice.yaml": "name: a\n" + one,
		"b_test.yaml": "tests: []\n", "bad.yaml": "steps: 3\n", ".hidden.yaml": "x", "notes.txt": "x", "d.yaml/x": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defs, faults := LoadDir(dir)
	var names []string
	for _, d := range defs {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "zz"}) {
		t.Errorf("definitions: %v", names)
	}
	if len(faults) != 2 || !strings.Contains(faults[0].Error(), `bad.yaml:1:8: "steps" must be a list`) || !strings.Contains(faults[1].Error(), `twice.yaml:1:7: the name "a" is taken by a.yml`) {
		t.Errorf("faults: %v", faults)
	}
	if defs, faults := LoadDir(filepath.Join(dir, "none")); defs != nil || faults != nil {
		t.Errorf("no folder: %v, %v", defs, faults)
	}
}

// TestFiles: a program's file is below the definition's folder, or it is none.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret.py")
	if err := os.WriteFile(outside, []byte("result = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.py")); err != nil {
		t.Fatal(err)
	}
	write("good.py", "result = 1\n")
	write("empty.py", " \n")
	write("long.py", strings.Repeat("#", MaxCode+1))
	for file, want := range map[string]string{
		"good.py": "", "none.py": "no such file", "../good.py": "plain path", "/etc/hosts": "plain path", "./good.py": "plain path", `a\b.py`: "plain path",
		"link.py": "cannot be read", ".": "is not a file", "empty.py": "is empty", "long.py": "64 KiB",
	} {
		write("w.yaml", "steps:\n  - {id: a, file: '"+file+"'}\n")
		d, err := Load(filepath.Join(dir, "w.yaml"))
		switch {
		case want == "" && (err != nil || d.Steps[0].Do.(*Code).Language != "python"):
			t.Errorf("%s: %v", file, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	write("w.yaml", "steps: [{id: a, file: good.py}]")
	before := load(t, filepath.Join(dir, "w.yaml"))
	write("good.py", "result = 2\n")
	if after := load(t, filepath.Join(dir, "w.yaml")); after.Digest == before.Digest {
		t.Error("another program has the same digest")
	}
}

// BenchmarkLoad reads a definition with every kind of step; a run that is gone on with does that once.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load("testdata/everything.yaml"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNameOfFile: a definition without a name has its file's, where that can be one.
func TestNameOfFile(t *testing.T) {
	for path, want := range map[string]string{
		"/a/folder_digest.yaml": "", "x.json": "", "Folder-Digest.yaml": `add "name: folder_digest"`, "2nd.yaml": `add "name"`, ".yaml": `add "name"`, "a b.test.yml": `add "name: a_b_test"`,
	} {
		text := `{"steps": [{"id": "a", "tool": "a.b"}]}`
		d, err := Parse(path, []byte(text), nil)
		switch {
		case want == "" && (err != nil || d.Name != strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))):
			t.Errorf("%s: %v, %v", path, d, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want+"\n")):
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
