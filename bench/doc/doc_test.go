package doc_test

import (
	"os"
	"path/filepath"
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
