package codegen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sallyport/codegen"
	"sallyport/internal/testutil/golden"
)

// TestGolden shows what schemas become: each file of testdata/golden holds the
// tools, then all that is generated for them.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { check(t, path) })
	}
}

func check(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := parseArchive(string(data))
	if len(want.files) == 0 || want.files[0].name != "tools.json" {
		t.Fatalf("%s does not begin with tools.json", path)
	}
	up := upstream(t, "up", []byte(want.files[0].data))
	files := codegen.Generate([]codegen.Upstream{up})
	checkPython(t, files)
	dir := guest(t, files)
	bundle(t, dir, `import * as servers from "./servers/index"; console.log(servers);`)

	got := archive{want.comment, append([]member{want.files[0], {"signatures", texts(up)}}, toolFiles(files)...)}
	if golden.Update() {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(archive{}, member{})); diff != "" {
		t.Errorf("run go test ./codegen -update if this is right (-golden +got):\n%s", diff)
	}
}

func texts(up codegen.Upstream) string {
	var b strings.Builder
	for _, tl := range up.Tools {
		fmt.Fprintf(&b, "%s\n%s\n", codegen.Signature(tl, codegen.Python), codegen.Signature(tl, codegen.TypeScript))
	}
	for _, lang := range []codegen.Language{codegen.Python, codegen.TypeScript} {
		if line := codegen.Offers(up, lang); line != "" {
			b.WriteString(line + "\n")
		}
	}
	if len(up.Tools) > 0 {
		fmt.Fprintf(&b, "\n%s\n", codegen.Describe(up.Tools[0], codegen.Python).Text)
	}
	return b.String()
}

// toolFiles leaves out the files that are the same for all upstreams.
func toolFiles(files []codegen.File) []member {
	var list []member
	for _, f := range files {
		if strings.HasPrefix(f.Path, "up/") {
			list = append(list, member{f.Path, string(f.Data)})
		}
	}
	return list
}
