package flowtest

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sallyport/gateway/workflow"
)

// compare returns the differences between a run and the expectations.
func (r *testRun) compare(run workflow.Run, events []workflow.Event) (all []Failure) {
	e := &r.test.Expect
	line := r.test.Line
	switch got := string(run.Status); {
	case got != e.Status && run.Error != nil:
		all = append(all, Failure{line, fmt.Sprintf("the run %s: %s", statusText(got), faultText(run.Error))})
	case got != e.Status:
		all = append(all, Failure{line, fmt.Sprintf("the run %s, wanted %s", statusText(got), e.Status)})
	case e.failure != nil:
		all = append(all, e.failure.compare(run.Error)...)
	}
	if e.outputs != nil && run.Status == workflow.OK {
		all = append(all, failuresOf(differences(e.outputs, decodeJSON(run.Outputs), "outputs"))...)
	}
	if e.checksCalls {
		all = append(all, r.compareCalls()...)
	}
	return append(all, compareSteps(e.steps, events)...)
}

func statusText(status string) string {
	switch status {
	case "ok":
		return "went well"
	case "failed":
		return "failed"
	}
	return "is " + status
}

func faultText(f *workflow.Fault) string {
	text := f.Message
	if f.Step != "" {
		text = "step " + f.Step + ": " + text
	}
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return text
}

func failuresOf(differences []difference) (all []Failure) {
	for _, d := range differences {
		all = append(all, Failure{d.node.Line, d.message})
	}
	return all
}

// compare returns the differences between an error and the expected failure.
func (f *failure) compare(got *workflow.Fault) (all []Failure) {
	if got == nil {
		got = &workflow.Fault{}
	}
	if f.step != nil {
		all = append(all, failuresOf(differences(f.step, got.Step, "error.step"))...)
	}
	if f.kind != nil {
		all = append(all, failuresOf(differences(f.kind, string(got.Kind), "error.kind"))...)
	}
	if f.message == nil {
		return all
	}
	want := f.message
	if matcherOf(want) == "" { // a substring of the message matches
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: contains, Line: want.Line}
		want = &yaml.Node{Kind: yaml.MappingNode, Line: want.Line, Content: []*yaml.Node{key, want}}
	}
	return append(all, failuresOf(differences(want, got.Message, "error.message"))...)
}

// compareSteps returns the steps with unexpected outcomes.
func compareSteps(want []outcome, events []workflow.Event) (all []Failure) {
	got := map[string]string{}
	for _, e := range events {
		if e.Kind == workflow.Ended {
			got[e.Path] = e.Outcome
		}
	}
	for _, o := range want {
		how, ok := got[o.path]
		if !ok {
			how = "never"
		}
		if how != o.want {
			all = append(all, Failure{o.node.Line, fmt.Sprintf("steps.%s: wanted %s, got %s", o.path, o.want, how)})
		}
	}
	return all
}

// compareCalls returns the difference between the actual and the expected calls.
func (r *testRun) compareCalls() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	want, got := r.test.Expect.calls, r.calls
	if len(got) > 2*maxCalls { // too many to match
		return []Failure{{r.test.Line, fmt.Sprintf("wanted %d calls, got %d", len(want), len(got))}}
	}
	pairs := matchCalls(want, got, r.test.Expect.AnyOrder)
	if len(pairs) == len(want) && len(pairs) == len(got) {
		return nil
	}
	partner := map[int]int{}
	for w, g := range pairs {
		partner[g] = w
	}
	var wanted, came []string
	for _, c := range want {
		wanted = append(wanted, c.String())
	}
	for i, m := range got {
		if w, ok := partner[i]; ok {
			came = append(came, want[w].String()) // hide arguments that are not expected
		} else {
			came = append(came, m.String())
		}
	}
	line := r.test.Line
	if len(want) > 0 {
		line = want[0].line
	}
	return []Failure{{line, "the calls differ from the wanted ones\n" + unifiedDiff(strings.Join(wanted, "\n"), strings.Join(came, "\n"))}}
}

func (c call) fits(m madeCall) bool {
	return c.tool == m.tool && (c.with == nil || len(differences(c.with, m.args, "with")) == 0)
}

func (c call) String() string {
	if c.with == nil {
		return c.tool
	}
	return c.tool + " " + flow(valueOf(c.with))
}

func (m madeCall) String() string {
	text := flow(m.args)
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return m.tool + " " + text
}

// matchCalls matches expected calls to actual ones, by index: the longest common subsequence, or a maximum matching if anyOrder.
func matchCalls(want []call, got []madeCall, anyOrder bool) map[int]int {
	if anyOrder {
		return matchUnordered(want, got)
	}
	// best[i][j] is the most pairs among want[i:] and got[j:].
	best := make([][]int, len(want)+1)
	for i := range best {
		best[i] = make([]int, len(got)+1)
	}
	for i, c := range slices.Backward(want) {
		for j, m := range slices.Backward(got) {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if c.fits(m) {
				best[i][j] = max(best[i][j], best[i+1][j+1]+1)
			}
		}
	}
	pairs := map[int]int{}
	for i, j := 0, 0; i < len(want) && j < len(got); {
		switch {
		case want[i].fits(got[j]) && best[i][j] == best[i+1][j+1]+1:
			pairs[i] = j
			i, j = i+1, j+1
		case best[i+1][j] >= best[i][j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// matchUnordered finds a maximum bipartite matching of expected and actual calls by augmenting paths.
func matchUnordered(want []call, got []madeCall) map[int]int {
	of := map[int]int{} // expected call by actual call
	var place func(w int, tried map[int]bool) bool
	place = func(w int, tried map[int]bool) bool {
		for g, m := range got {
			if tried[g] || !want[w].fits(m) {
				continue
			}
			tried[g] = true
			if other, taken := of[g]; !taken || place(other, tried) {
				of[g] = w
				return true
			}
		}
		return false
	}
	for w := range want {
		place(w, map[int]bool{})
	}
	pairs := map[int]int{}
	for g, w := range of {
		pairs[w] = g
	}
	return pairs
}
