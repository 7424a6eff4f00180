package flowtest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"sallyport/gateway/workflow/flowtest"
	"sallyport/gateway/workflow/spec"
	"sallyport/internal/testutil"
	"sallyport/internal/testutil/golden"
)

// archive reads the files of testdata/name, each in an archive of its own part.
func archive(t *testing.T, name string) []txtar.File {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return a.Files
}

// TestFaults holds what is said of files that cannot be understood.
func TestFaults(t *testing.T) {
	var said strings.Builder
	for _, file := range archive(t, "faults.txtar") {
		_, err := flowtest.Parse(file.Name, file.Data)
		if err == nil {
			t.Errorf("%s is taken", file.Name)
			continue
		}
		said.WriteString(err.Error() + "\n\n")
	}
	golden.Check(t, filepath.Join("testdata", "faults.golden"), said.String())
}

// TestReports holds how tests are reported that are not as expected, and that others pass.
func TestReports(t *testing.T) {
	var definitions []*spec.Definition
	var files []*flowtest.File
	for _, file := range archive(t, "reports.txtar") {
		if flowtest.IsTest(file.Name) {
			f, err := flowtest.Parse(file.Name, file.Data)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
			continue
		}
		d, err := spec.Parse(file.Name, file.Data, nil)
		if err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, d)
	}
	results := flowtest.Run(t.Context(), files, flowtest.Options{Definitions: definitions, Timeout: 5 * time.Second})
	for i := range results {
		if good := strings.HasPrefix(results[i].Test, "good: "); good != results[i].OK() {
			t.Errorf("%s: %+v", results[i].Test, results[i].Failures)
		}
		results[i].Seconds = 0
	}
	var report strings.Builder
	if err := flowtest.Report(&report, results); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "reports.golden"), report.String())
	if data, err := json.Marshal(results); err != nil || strings.Contains(string(data), `"failures":null`) {
		t.Errorf("as JSON: %s, %v", data, err)
	}
}

// FuzzParse reads anything: it never panics, and what it takes runs to an end or is refused.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../../../workflows/*_test.yaml")
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("tests: [{name: a, expect: {calls: [{tool: x.y, with: {n: {$matches: '('}}}]}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := flowtest.Parse("one_test.yaml", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "one_test.yaml:") {
				t.Errorf("a fault has no place: %v", err)
			}
			return
		}
		for _, test := range file.Tests {
			if test.Name == "" || test.Line < 1 {
				t.Errorf("a test says %+v", test)
			}
		}
	})
}

// TestDocsExamples runs the test of docs/how-to/workflows.md on the definition of its quick start.
func TestDocsExamples(t *testing.T) {
	example := func(section string) []byte {
		for _, e := range testutil.Examples(t, "docs/how-to/workflows.md") {
			if e.Section == section && e.Language == "yaml" {
				return []byte(e.Text)
			}
		}
		t.Fatalf("%s has no example", section)
		return nil
	}
	d, err := spec.Parse("hello.yaml", example("Quick start"), nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := flowtest.Parse("hello_test.yaml", example("Testing"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range flowtest.Run(t.Context(), []*flowtest.File{file}, flowtest.Options{Definitions: []*spec.Definition{d}}) {
		if !r.OK() {
			t.Errorf("%s: %+v", r.Test, r.Failures)
		}
	}
}
