package doc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/bench/doc"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplace(t *testing.T) {
	path := write(t, "# A\n<!-- begin one -->\nold\n<!-- end one -->\nwords\n<!-- begin two --><!-- end two -->\n")
	for _, section := range []string{"one", "two", "one"} {
		if err := doc.Replace(path, section, "\n| new |\n\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if want := "# A\n<!-- begin one -->\n| new |\n<!-- end one -->\nwords\n<!-- begin two -->\n| new |\n<!-- end two -->\n"; err != nil || string(got) != want {
		t.Errorf("the file is %q, %v; want %q", got, err, want)
	}
	if text, err := doc.Section(path, "two"); err != nil || text != "| new |" {
		t.Errorf("Section is %q, %v", text, err)
	}
}

func TestReplaceLeavesAlone(t *testing.T) {
	for _, text := range []string{
		"", "<!-- begin one -->", "<!-- end one --><!-- begin one -->",
		"<!-- begin one --><!-- end one --><!-- begin one --><!-- end one -->",
	} {
		path := write(t, text)
		if doc.Replace(path, "one", "new") == nil {
			t.Errorf("%q was taken", text)
		}
		if got, _ := os.ReadFile(path); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
		if _, err := doc.Section(path, "one"); err == nil {
			t.Errorf("%q has a section", text)
		}
	}
	if doc.Replace(filepath.Join(t.TempDir(), "no.md"), "one", "") == nil {
		t.Error("a missing file was taken")
	}
}

func TestTexts(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "benchmarks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"benchmarks.md":     "<!-- begin one-losses --><!-- end one-losses -->\n<!-- begin one --><!-- end one -->\n",
		"benchmarks/one.md": "<!-- begin one --><!-- end one -->\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	word := strings.Repeat("x", 50)
	row := "| " + word + " | " + word + " | " + word + " |"
	made := doc.Texts{Losses: "- " + word + " " + word + " " + word + "\n- x\n", Summary: row, Tables: "\n### A\n" + word + " " + word + " " + word}
	if err := made.Write(folder, "one"); err != nil {
		t.Fatal(err)
	}
	want := doc.Texts{Losses: "- " + word + " " + word + "\n  " + word + "\n- x", Summary: row, Tables: "### A\n" + word + " " + word + "\n" + word}
	if got, err := doc.ReadTexts(folder, "one"); err != nil || got != want || made.Wrapped() != want {
		t.Errorf("the texts are %+v, %v; want %+v", got, err, want)
	}
	if err := made.Write(folder, "two"); err == nil {
		t.Error("files without marks were taken")
	}
}
