package policy_test

import (
	"testing"

	"sallyport/internal/policy"
)

func TestIsolate(t *testing.T) {
	bob, private := policy.Program{Principal: "bob"}, policy.Program{Read: []string{policy.Private}, Remote: true}
	for source, want := range map[string][2]bool{
		``:                              {false, false},
		`principal == "bob"`:            {true, false},
		`remote && "private" in read`:   {false, true},
		`read[0] == "untrusted"`:        {true, false}, // of nothing: cannot be evaluated
		`session == "" && time == time`: {true, true},
	} {
		p, err := policy.New(policy.Settings{Isolate: source}, nil)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got := [2]bool{p.Isolates(t.Context(), bob), p.Isolates(t.Context(), private)}; got != want {
			t.Errorf("%s: %v, want %v", source, got, want)
		}
	}
	for _, wrong := range []string{`tool == "x"`, `"private"`, `principal ==`} {
		if problems := policy.Check(policy.Settings{Isolate: wrong}); len(problems) != 1 || problems[0].Key != "isolate" || problems[0].At == nil {
			t.Errorf("%s: %+v", wrong, problems)
		}
	}
}
