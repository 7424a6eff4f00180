package walkthrough_test

import (
	"strings"
	"testing"

	"sallyport/internal/walkthrough"
)

const page = "# A page\n```sh\necho a\n```\n\n```text\na\n```\n```sh fails\nfalse\n```\n"

func TestSteps(t *testing.T) {
	all, err := walkthrough.Steps(page)
	if err != nil || len(all) != 2 || all[0] != (walkthrough.Step{Commands: "echo a\n", Prints: "a\n", Compared: true}) || all[1] != (walkthrough.Step{Commands: "false\n", Fails: true}) {
		t.Errorf("%+v, %v", all, err)
	}
	for _, wrong := range []string{"```text\na\n```\n", page + "```text\n```\n```text\n```\n", "```yaml\na: 1\n```\n"} {
		if all, err := walkthrough.Steps(wrong); err == nil {
			t.Errorf("%q: %+v", wrong, all)
		}
	}
}

func TestMatches(t *testing.T) {
	says := "e-aaaaaaaa1 took 5 ms\n...\nthe ... end\n"
	for printed, want := range map[string]bool{
		"e-bbbbbbbb2  took 1.25 s\nthe end\n":            false,
		"e-bbbbbbbb2  took 1.25 s\nthe very end\n":       true,
		"e-bbbbbbbb2 took 3 ms\nx\ny\nthe very end\n":    true,
		"e-bbbbbbbb2 took 3 ms\nx\nthe very end\nmore\n": false,
	} {
		if got := (walkthrough.Step{Prints: says, Compared: true}).Matches(printed); got != want {
			t.Errorf("%q: %v", printed, got)
		}
	}
	if !(walkthrough.Step{}).Matches(strings.Repeat("x", 9)) {
		t.Error("what is not compared differs")
	}
}
