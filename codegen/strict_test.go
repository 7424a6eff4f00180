package codegen_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen"
	"sallyport/codegen/runtime"
	"sallyport/internal/testutil"
	"sallyport/internal/tool"
)

// allUpstreams is the catalogue where it is, the tools of all goldens and situations,
// and hostile ones: whatever is generated is among them.
func allUpstreams(t *testing.T) []codegen.Upstream {
	t.Helper()
	shop, err := os.ReadFile("testdata/programs/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	ups := append(directiveUpstreams(), hostileUpstream(), upstream(t, "shop", shop))
	paths, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := "golden_" + strings.TrimSuffix(filepath.Base(path), ".txtar")
		ups = append(ups, upstream(t, name, []byte(parseArchive(string(data)).files[0].data)))
	}
	return append(append(ups, observedUpstream()), realTools(t)...)
}

// directiveUpstreams are upstreams that do nothing but give orders to checkers, one each.
func directiveUpstreams() []codegen.Upstream {
	var ups []codegen.Upstream
	for i, text := range orders() {
		up := codegen.Upstream{ID: fmt.Sprintf("order%d", i), Title: text, Description: text}
		up.Tools = []tool.Tool{hostileTool("f", text)}
		up.Tools[0].ID.Upstream = up.ID
		ups = append(ups, up)
	}
	return ups
}

// project lays out what a checker is to see: the wrappers, the programs of
// testdata/programs, and the types of the module "sallyport".
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := codegen.Generate(allUpstreams(t))
	for i, f := range files { // whoever is told to look away does not find these
		if mistake := mistakes[filepath.Ext(f.Path)]; strings.HasPrefix(f.Path, "order") {
			files[i].Data = append(f.Data, mistake...)
		}
	}
	write(t, dir, files)
	if err := os.CopyFS(dir, os.DirFS("testdata/programs")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "guest"), runtime.Guest()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sallyport.ts"), runtime.TypeScript, 0o644); err != nil {
		t.Fatal(err)
	}
	addPythonClient(t, filepath.Join(dir, "guest/sallyport"))
	return dir
}

// addPythonClient completes the module "sallyport" by what it has outside of a sandbox: see codegen/client.
func addPythonClient(t *testing.T, dir string) {
	t.Helper()
	read := func(files fs.FS, path string) []byte {
		data, err := fs.ReadFile(files, path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for path, data := range map[string][]byte{
		"client.py":    read(runtime.Client(), "python/client.py"),
		"__init__.py":  append(read(runtime.Guest(), "sallyport/__init__.py"), read(runtime.Client(), "python/tail.py")...),
		"__init__.pyi": append(slices.Clone(runtime.PythonTypes), read(runtime.Client(), "python/tail.pyi")...),
	} {
		if err := os.WriteFile(filepath.Join(dir, path), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var mistakes = map[string]string{".py": "mistake: int = \"\"  # wrong\n", ".ts": "export const mistake: number = \"\"; // wrong\n"}

// TestEverythingTypeChecks lets pyright and tsc, as strict as they can be, read
// all wrappers, the module "sallyport" and the programs of testdata/programs. What they find must be the
// lines of the programs that are marked "wrong", all of those and no other.
func TestEverythingTypeChecks(t *testing.T) {
	checkers, dir := testutil.Checkers(t), project(t)
	node := testutil.Program(t, "node")
	for _, version := range []string{"3.9", "3.13"} {
		t.Run("pyright for Python "+version, func(t *testing.T) {
			t.Parallel()
			config := filepath.Join(dir, "pyright-"+version+".json")
			settings(t, config, map[string]any{
				"include": []string{"*.py", "servers", "guest/sallyport"}, "extraPaths": []string{"guest"}, "typeCheckingMode": "strict", "pythonVersion": version, "pythonPlatform": "Linux",
				"strictParameterNoneValue": true, "reportUnnecessaryTypeIgnoreComment": "error",
				"reportCallInDefaultInitializer": "error", "reportImportCycles": "error", "reportPropertyTypeMismatch": "error",
			})
			out, _ := exec.CommandContext(t.Context(), node, filepath.Join(checkers, "pyright/index.js"), "-p", config, "--outputjson").Output()
			compare(t, dir, ".py", pyrightFindings(t, dir, out))
		})
	}
	t.Run("tsc", func(t *testing.T) {
		t.Parallel()
		config := filepath.Join(dir, "tsconfig.json")
		settings(t, config, map[string]any{"include": []string{"**/*.ts"}, "compilerOptions": strictSettings(checkers)})
		cmd := exec.CommandContext(t.Context(), node, filepath.Join(checkers, "typescript/bin/tsc"), "-p", config, "--pretty", "false")
		cmd.Dir = dir
		out, _ := cmd.Output()
		compare(t, dir, ".ts", tscFindings(t, string(out)))
	})
}

// strictSettings are all the switches that make tsc find more.
func strictSettings(checkers string) map[string]any {
	options := map[string]any{
		"target": "es2022", "module": "es2022", "moduleResolution": "bundler", "noEmit": true, "types": []string{"node"},
		"typeRoots": []string{filepath.Join(checkers, "@types")}, "paths": map[string]any{"sallyport": []string{"./sallyport.ts"}, "servers/*": []string{"./servers/*"}},
	}
	for name := range strings.FieldsSeq(`strict noUncheckedIndexedAccess exactOptionalPropertyTypes noImplicitOverride noImplicitReturns
		noUnusedLocals noUnusedParameters noFallthroughCasesInSwitch noPropertyAccessFromIndexSignature noUncheckedSideEffectImports
		isolatedModules verbatimModuleSyntax erasableSyntaxOnly forceConsistentCasingInFileNames`) {
		options[name] = true
	}
	options["allowUnreachableCode"], options["allowUnusedLabels"] = false, false
	return options
}

func settings(t *testing.T, path string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// findings are what a checker said, by "file:line".
type findings map[string]string

func pyrightFindings(t *testing.T, dir string, out []byte) findings {
	t.Helper()
	var report struct {
		GeneralDiagnostics []struct {
			File, Severity, Message, Rule string
			Range                         struct{ Start struct{ Line int } }
		}
		Summary struct{ FilesAnalyzed int }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("pyright: %v: %.2000s", err, out)
	}
	found := findings{}
	for _, d := range report.GeneralDiagnostics {
		path, _ := filepath.Rel(dir, d.File)
		found[fmt.Sprintf("%s:%d", path, d.Range.Start.Line+1)] += d.Severity + " " + d.Rule + ": " + d.Message + "\n"
	}
	if report.Summary.FilesAnalyzed < 100 {
		t.Errorf("pyright looked at %d files", report.Summary.FilesAnalyzed)
	}
	return found
}

var tscLine = regexp.MustCompile(`^([^(\n]+)\((\d+),\d+\): (.*)`)

func tscFindings(t *testing.T, out string) findings {
	t.Helper()
	found, last := findings{}, ""
	for line := range strings.Lines(out) {
		m := tscLine.FindStringSubmatch(line)
		switch {
		case m != nil:
			last = m[1] + ":" + m[2]
			found[last] += m[3] + "\n"
		case last == "": // not about a file: tsc itself is unhappy
			t.Errorf("tsc: %s", line)
		}
	}
	return found
}

// compare holds what was found against the lines that are marked wrong.
func compare(t *testing.T, dir, ending string, found findings) {
	t.Helper()
	wrong := wrongLines(t, dir, ending)
	for _, where := range slices.Sorted(maps.Keys(found)) {
		if !wrong[where] {
			t.Errorf("%s: %s", where, found[where])
		}
	}
	for _, where := range slices.Sorted(maps.Keys(wrong)) {
		if found[where] == "" {
			t.Errorf("%s: nothing was found in a line that is wrong", where)
		}
	}
}

// wrongLines returns the lines of the programs that are wrong: those that end in "wrong".
func wrongLines(t *testing.T, dir, ending string) map[string]bool {
	t.Helper()
	wrong := map[string]bool{}
	paths, _ := filepath.Glob(filepath.Join(dir, "*"+ending))
	ordered, _ := filepath.Glob(filepath.Join(dir, "servers/order*/*"+ending))
	for _, path := range append(paths, ordered...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			if strings.HasSuffix(line, "# wrong") || strings.HasSuffix(line, "// wrong") {
				name, _ := filepath.Rel(dir, path)
				wrong[fmt.Sprintf("%s:%d", name, i+1)] = true
			}
		}
	}
	if len(wrong) < 10 {
		t.Fatalf("%d lines of %s programs are marked wrong", len(wrong), ending)
	}
	return wrong
}

// TestEverythingLoads lets the interpreters load each module, not only compile
// it, and read it as the oldest Python that it is made for.
func TestEverythingLoads(t *testing.T) {
	testutil.Long(t)
	dir := guest(t, codegen.Generate(allUpstreams(t)))
	if out := run(t, dir, python3, "-B", "-W", "error", "audit.py", dir); out != "" {
		t.Errorf("audit: %.4000s", out)
	}
	want := fmt.Sprintln(len(allUpstreams(t)))
	if got := runTypeScript(t, dir, `import * as servers from "./servers/index"; console.log(Object.values(servers).length);`); cmp.Diff(want, got) != "" {
		t.Errorf("%s upstreams load, want %s", got, want)
	}
}
