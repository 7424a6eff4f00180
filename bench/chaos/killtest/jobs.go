package killtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// call is one call of a job.
type call struct{ upstream, tool, id string }

// job is what a client wants done once: a program or a run of a workflow.
type job struct {
	id       string
	calls    []call
	language string // of a program
	code     string
	workflow string // "" for a program
}

// workflows have tool steps and steps with programs. Their calls have the ids that newJob gives them.
var workflows = map[string]string{
	"steps": `expose: true
inputs: {job: string}
steps:
  - {id: one, tool: bank.pay, with: {id: "${{ inputs.job + '.1' }}"}}
  - {id: two, tool: till.put, with: {id: "${{ inputs.job + '.2' }}"}}
  - id: each
    for_each: "${{ ['.3', '.4'] }}"
    concurrency: 2
    steps: [{id: pay, tool: bank.pay, with: {id: "${{ inputs.job + item }}"}}]
  - {id: last, tool: till.pay, with: {id: "${{ inputs.job + '.5' }}"}}
`,
	"programs": `expose: true
inputs: {job: string}
steps:
  - id: python
    code: |
      from servers import bank, till
      bank.pay(id=job + '.1')
      till.put(id=job + '.2')
      till.pay(id=job + '.3')
      result = job
    with: {job: "${{ inputs.job }}"}
  - id: typescript
    language: typescript
    code: |
      import * as bank from "servers/bank";
      await bank.pay({ id: job + ".4" });
      await Promise.all([bank.pay({ id: job + ".5" }), bank.look({ id: job + ".6" })]);
      export default job;
    with: {job: "${{ inputs.job }}"}
`,
}

var workflowCalls = map[string][]string{
	"steps":    {"bank pay", "till put", "bank pay", "bank pay", "till pay"},
	"programs": {"bank pay", "till put", "till pay", "bank pay", "bank pay", "bank look"},
}

// newJob returns a random job.
func newJob(dice *rand.Rand, id string) *job {
	j := &job{id: id}
	switch dice.IntN(6) {
	case 0:
		j.workflow = "steps"
	case 1:
		j.workflow = "programs"
	case 2, 3:
		j.language = "typescript"
	default:
		j.language = "python"
	}
	if j.workflow != "" {
		for i, spec := range workflowCalls[j.workflow] {
			upstream, tool, _ := strings.Cut(spec, " ")
			j.calls = append(j.calls, call{upstream, tool, fmt.Sprintf("%s.%d", id, i+1)})
		}
		return j
	}
	for i := range 2 + dice.IntN(4) {
		j.calls = append(j.calls, call{
			upstream: []string{"bank", "till"}[dice.IntN(2)], tool: []string{"pay", "pay", "pay", "put", "look"}[dice.IntN(5)], id: fmt.Sprintf("%s.%d", id, i+1),
		})
	}
	concurrent := dice.IntN(3) == 0
	if j.language == "python" {
		j.code = pythonCode(j, concurrent)
	} else {
		j.code = typescriptCode(j, concurrent)
	}
	return j
}

// done is what a program of a job prints at its end.
func (j *job) done() string { return "JOB " + j.id + " DONE" }

func pythonCode(j *job, concurrent bool) string {
	var calls []string
	for _, c := range j.calls {
		calls = append(calls, fmt.Sprintf("%s.%s(id=%q)", c.upstream, c.tool, c.id))
	}
	head, last := "from servers import bank, till\n", fmt.Sprintf("\nprint(%q)\n", j.done())
	if !concurrent {
		return head + strings.Join(calls, "\n") + last
	}
	return head + "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool:\n    list(pool.map(lambda f: f(), [lambda: " +
		strings.Join(calls, ", lambda: ") + "]))" + last
}

func typescriptCode(j *job, concurrent bool) string {
	var calls []string
	for _, c := range j.calls {
		calls = append(calls, fmt.Sprintf("%s.%s({ id: %q })", c.upstream, c.tool, c.id))
	}
	var b strings.Builder
	for _, upstream := range []string{"bank", "till"} {
		if slices.ContainsFunc(j.calls, func(c call) bool { return c.upstream == upstream }) {
			fmt.Fprintf(&b, "import * as %s from \"servers/%s\";\n", upstream, upstream)
		}
	}
	if concurrent {
		fmt.Fprintf(&b, "await Promise.all([%s]);\n", strings.Join(calls, ", "))
	} else {
		fmt.Fprintf(&b, "await %s;\n", strings.Join(calls, ";\nawait "))
	}
	fmt.Fprintf(&b, "console.log(%q);\n", j.done())
	return b.String()
}
