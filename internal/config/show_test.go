package config

import (
	"os"
	"strings"
	"testing"

	"sallyport/internal/testutil/golden"
)

// TestEffective shows the settings in force, without secrets.
func TestEffective(t *testing.T) {
	for _, name := range []string{"everything", "show"} {
		data, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := sources.Effective("upstreams.yaml", data)
		if err != nil {
			t.Fatal(err)
		}
		text, err := doc.Text()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, secret) || strings.Contains(text, "s3cret") {
			t.Errorf("%s: a secret shows", name)
		}
		golden.Check(t, "testdata/"+name+".effective.txt", text)
		again := strings.ReplaceAll(text, hiddenText, "hidden-hidden-hidden")
		if _, err := sources.Parse("upstreams.yaml", []byte(again)); err != nil {
			t.Errorf("what is shown does not load: %v", err)
		}
	}
}
