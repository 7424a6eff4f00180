package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "sallyport"

// A pkg is the output of go list for one package of the module.
type pkg struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// name is the package's path inside the module: "gateway/upstream".
func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func (p pkg) testImports() []string { return slices.Concat(p.TestImports, p.XTestImports) }

func TestImportsRunDown(t *testing.T) {
	report(t, "imports a package that it must not", list(t), func(p pkg) []string {
		return append(importFaults(p, p.Imports, false), importFaults(p, p.testImports(), true)...)
	})
}

func TestForeignLibraryHasOneOwner(t *testing.T) {
	report(t, "imports a library of other packages", list(t), func(p pkg) []string {
		return append(ownerFaults(p, p.Imports, false), ownerFaults(p, p.testImports(), true)...)
	})
}

func TestDirectDependencyIsListed(t *testing.T) {
	report(t, "imports a module that rules_test.go does not list", list(t), func(p pkg) []string {
		return unlistedFaults(slices.Concat(p.Imports, p.testImports()))
	})
	if len(dependencies) > maxDependencies {
		t.Errorf("%d direct dependencies are listed, more than %d: remove one", len(dependencies), maxDependencies)
	}
	direct := directRequirements(t)
	if len(direct) == 0 {
		t.Log("go.mod has only indirect requirements, as before the first go mod tidy: nothing to compare")
		return
	}
	for _, fault := range requireFaults(direct) {
		t.Error(fault)
	}
}

func TestPackageSaysWhatItIs(t *testing.T) {
	report(t, "has no package comment", list(t), func(p pkg) []string {
		files := slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles)
		if slices.ContainsFunc(files, func(name string) bool { return hasPackageComment(t, filepath.Join(p.Dir, name)) }) {
			return nil
		}
		return []string{"begin one file with // Package NAME and its purpose"}
	})
}

// TestRulesCatch checks that a violation of each rule is found.
func TestRulesCatch(t *testing.T) {
	all := func(p pkg) []string {
		return slices.Concat(importFaults(p, p.Imports, false), importFaults(p, p.testImports(), true),
			ownerFaults(p, p.Imports, false), ownerFaults(p, p.testImports(), true), unlistedFaults(p.Imports))
	}
	for _, c := range []struct {
		name, from, imports string
		inTest              bool
		faults              int
	}{
		{"face on gateway", "gateway/mcpserver", "sallyport/gateway", false, 0},
		{"gateway on bridge", "gateway", "sallyport/sandbox/bridge", false, 0},
		{"own subpackage", "sandbox", "sallyport/sandbox/runsc", false, 0},
		{"cmd wires all", "cmd/sallyport", "sallyport/gateway/httpapi", false, 0},
		{"verbs on what they share", "cmd/sallyport/internal/topcmd", "sallyport/cmd/sallyport/internal/cli", false, 0},
		{"verbs on others", "cmd/sallyport/internal/topcmd", "sallyport/cmd/sallyport/internal/workflowcmd", false, 1},
		{"verbs upwards", "cmd/sallyport/internal/cli", "sallyport/cmd/sallyport/internal/topcmd", false, 1},
		{"upwards", "gateway", "sallyport/gateway/mcpserver", false, 1},
		{"upwards in a test", "index", "sallyport/gateway", true, 1},
		{"peer", "codegen/runtime", "sallyport/sandbox/bridge", false, 1},
		{"guest in a test", "sandbox", "sallyport/codegen/runtime", true, 0},
		{"guest", "sandbox", "sallyport/codegen/runtime", false, 1},
		{"past the gateway", "gateway/workflow", "sallyport/gateway/upstream", false, 1},
		{"face on face", "gateway/httpapi", "sallyport/gateway/mcpserver", false, 1},
		{"adapter upwards", "sandbox/runsc", "sallyport/sandbox", false, 1},
		{"ground floor upwards", "internal/config", "sallyport/gateway", false, 1},
		{"vocabulary on a neighbour", "internal/tool", "sallyport/internal/sanitize", false, 1},
		{"bench imported", "cmd/sallyport", "sallyport/bench/demo", false, 1},
		{"cmd imported", "bench/demo", "sallyport/cmd/sallyport", false, 1},
		{"package without a room", "helpers", "fmt", false, 2},
		{"owner", "index", "github.com/blevesearch/bleve/v2/search", false, 0},
		{"not the owner", "gateway", "github.com/blevesearch/bleve/v2/search", false, 1},
		{"SDK in a test of cmd", "cmd/sallyport", "github.com/modelcontextprotocol/go-sdk/mcp", true, 0},
		{"SDK in cmd", "cmd/sallyport", "github.com/modelcontextprotocol/go-sdk/mcp", false, 1},
		{"exec in a test", "codegen", "os/exec", true, 0},
		{"exec", "codegen", "os/exec", false, 1},
		{"standard library", "codegen", "encoding/json", false, 0},
		{"unlisted module", "codegen", "github.com/pkg/errors", false, 1},
		{"longer name of a listed module", "index", "github.com/gorilla/websocketry", false, 1},
	} {
		p := pkg{ImportPath: module + "/" + c.from, Imports: []string{c.imports}}
		if c.inTest {
			p.Imports, p.TestImports = nil, p.Imports
		}
		if got := all(p); len(got) != c.faults {
			t.Errorf("%s: %s importing %s has %d faults, want %d: %q", c.name, c.from, c.imports, len(got), c.faults, got)
		}
	}
	if got := requireFaults([]string{"example.com/new"}); len(got) != 1+len(dependencies) {
		t.Errorf("go.mod with one unlisted module has %d faults, want it and every listed one: %q", len(got), got)
	}
}

// matches reports whether the package called name falls under pattern: "gateway", "gateway/..." or "..." for all.
func matches(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	folder, deep := strings.CutSuffix(pattern, "/...")
	return name == folder || deep && strings.HasPrefix(name, folder+"/")
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

func importFaults(p pkg, imports []string, inTest bool) []string {
	i := slices.IndexFunc(importRules, func(r importRule) bool { return matches(r.name, p.name()) })
	if i < 0 {
		return []string{"no rule in rules_test.go matches this package: add what it may import, and why"}
	}
	r := importRules[i]
	allowed := append([]string{r.name}, r.imports...)
	if inTest {
		allowed = append(allowed, r.tests...)
	}
	var faults []string
	for _, path := range imports {
		name, ours := strings.CutPrefix(path, module+"/")
		if ours && !matchesAny(allowed, name) {
			faults = append(faults, fmt.Sprintf("%s: %s", path, r.why))
		}
	}
	return faults
}

func ownerFaults(p pkg, imports []string, inTest bool) []string {
	var faults []string
	for _, o := range libraryOwners {
		if matchesAny(o.packages, p.name()) || inTest && matchesAny(o.tests, p.name()) {
			continue
		}
		for _, path := range imports {
			if matches(o.library+"/...", path) {
				faults = append(faults, fmt.Sprintf("%s (only in %s): %s", path, strings.Join(o.packages, ", "), o.why))
			}
		}
	}
	return faults
}

// unlistedFaults returns the imports outside the standard library, the module and the listed dependencies.
func unlistedFaults(imports []string) []string {
	var faults []string
	for _, path := range imports {
		host, _, _ := strings.Cut(path, "/")
		if !strings.Contains(host, ".") || isListed(path) {
			continue
		}
		faults = append(faults, path+": add to rules_test.go what it is for")
	}
	return faults
}

func isListed(path string) bool {
	for dependency := range dependencies {
		if matches(dependency+"/...", path) {
			return true
		}
	}
	return false
}

// requireFaults compares the direct requirements of go.mod with the table, in both directions.
func requireFaults(direct []string) []string {
	var faults []string
	for _, path := range direct {
		if dependencies[path] == "" {
			faults = append(faults, "go.mod requires "+path+", which is not in rules_test.go")
		}
	}
	for path := range dependencies {
		if !slices.Contains(direct, path) {
			faults = append(faults, "rules_test.go lists "+path+", which go.mod does not require directly")
		}
	}
	slices.Sort(faults)
	return faults
}

// report fails the test once for each package with faults, with a line for each fault.
func report(t *testing.T, what string, pkgs []pkg, faults func(pkg) []string) {
	t.Helper()
	for _, p := range pkgs {
		found := faults(p)
		slices.Sort(found)
		if found = slices.Compact(found); len(found) > 0 {
			t.Errorf("%s %s\n\t%s", p.name(), what, strings.Join(found, "\n\t"))
		}
	}
}

func hasPackageComment(t *testing.T, path string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file.Doc != nil && strings.TrimSpace(file.Doc.Text()) != ""
}

// list returns every package of the module, from go list.
func list(t *testing.T) []pkg {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(goCommand(t, "list", "-e", "-json", "./...")))
	var pkgs []pkg
	for {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	if !slices.ContainsFunc(pkgs, func(p pkg) bool { return p.name() == "internal/archtest" }) {
		t.Fatalf("go list returns %d packages without this one", len(pkgs))
	}
	return pkgs
}

// directRequirements returns the paths of the modules that go.mod requires directly.
func directRequirements(t *testing.T) []string {
	t.Helper()
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	return direct
}

// goCommand runs go in the module's root.
func goCommand(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

func TestMatches(t *testing.T) {
	got := map[string]bool{}
	for _, name := range []string{"gateway", "gateway/upstream", "gatewayed", "cmd"} {
		got[name] = matches("gateway/...", name)
	}
	want := map[string]bool{"gateway": true, "gateway/upstream": true, "gatewayed": false, "cmd": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("matches (-want +got)\n%s", diff)
	}
}
