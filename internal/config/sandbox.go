package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"sallyport/internal/labels"
	"sallyport/internal/machine"
	"sallyport/internal/yamlstrict"
)

func (d *decoder) sandbox(at path, n *yaml.Node, s *Sandbox) {
	d.Fields(at, n, []key{
		{"timeout", scalar(d, &s.Timeout, yamlstrict.Duration)},
		{"memory", scalar(d, &s.Memory, parseSize)},
		{"processes", scalar(d, &s.Processes, yamlstrict.Count)},
		{"open_files", scalar(d, &s.OpenFiles, yamlstrict.Count)},
		{"cpu", scalar(d, &s.CPU, yamlstrict.Duration)},
		{"file_size", scalar(d, &s.FileSize, parseSize)},
		{"workspace", scalar(d, &s.Workspace, parseSize)},
		{"inodes", scalar(d, &s.Inodes, yamlstrict.Count)},
		{"output", scalar(d, &s.Output, parseSize)},
		{"calls", scalar(d, &s.Calls, yamlstrict.Count)},
		{"concurrency", scalar(d, &s.Concurrency, yamlstrict.Count)},
		{"traffic", scalar(d, &s.Traffic, parseSize)},
		{"parallel", scalar(d, &s.Parallel, yamlstrict.Count)},
		{"queue", scalar(d, &s.Queue, yamlstrict.Count)},
		{"queue_wait", scalar(d, &s.QueueWait, yamlstrict.Duration)},
		{"pool", func(at path, n *yaml.Node) { d.pool(at, n, &s.Pool) }},
		{"reuse", d.OneOf(&s.Reuse, ReusePrincipal, ReuseNever)},
		{"session_idle", scalar(d, &s.SessionIdle, yamlstrict.Duration)},
		{"masked", d.Texts(&s.Masked)},
		{"remote", scalar(d, &s.Remote, parseMachine)},
		{"placement", d.Texts(&s.Placement)},
		{"runsc", d.program(&s.Runsc)},
		{"python", d.program(&s.Python)},
		{"node", d.program(&s.Node)},
		{"typecheck", scalar(d, &s.Typecheck, yamlstrict.Bool)},
		{"pyright", d.program(&s.Pyright)},
		{"tsc", d.program(&s.Tsc)},
	})
	s.Masked = slices.Clip(s.Masked)
	if len(s.Masked) == 0 {
		s.Masked = nil
	}
}

// RemoteWorkers is the value of [Sandbox.Remote] for the workers of a cluster.
const RemoteWorkers = "workers"

// parseMachine parses the address of a machine for sandboxes.
func parseMachine(n *yaml.Node) (string, string) {
	if n.Value == "" || n.Value == RemoteWorkers {
		return n.Value, ""
	}
	a, err := machine.Parse(n.Value)
	if err != nil {
		return "", err.Error()
	}
	return a.String(), ""
}

// pool reads the pool. If the file has only one of min and max, it adjusts the default of the other.
func (d *decoder) pool(at path, n *yaml.Node, p *Pool) {
	seen := d.Fields(at, n, []key{
		{"min", scalar(d, &p.Min, yamlstrict.Count)},
		{"max", scalar(d, &p.Max, yamlstrict.Count)},
		{"memory", scalar(d, &p.Memory, parseSize)},
	})
	switch {
	case !seen["min"]:
		p.Min = max(0, min(p.Min, p.Max))
	case !seen["max"]:
		p.Max = max(p.Min, p.Max)
	}
}

func (s Sandbox) problems(at path) []problem {
	return slices.Concat(
		between(at.To("timeout"), s.Timeout, 100*time.Millisecond, 24*time.Hour),
		between(at.To("memory"), s.Memory, 32*MiB, TiB),     // an interpreter needs some 20 MiB
		between(at.To("processes"), s.Processes, 16, 65536), // node alone starts a dozen threads
		between(at.To("open_files"), s.OpenFiles, 32, 1<<20),
		between(at.To("cpu"), s.CPU, 100*time.Millisecond, 24*time.Hour),
		between(at.To("file_size"), s.FileSize, 4*KiB, TiB),
		between(at.To("workspace"), s.Workspace, MiB, TiB),
		between(at.To("inodes"), s.Inodes, 16, 10_000_000),
		between(at.To("output"), s.Output, KiB, 16*MiB),
		between(at.To("calls"), s.Calls, 1, 1_000_000),
		between(at.To("concurrency"), s.Concurrency, 1, 1024),
		between(at.To("traffic"), s.Traffic, MiB, TiB),
		between(at.To("parallel"), s.Parallel, 1, 1024),
		between(at.To("queue"), s.Queue, 0, 10_000),
		between(at.To("queue_wait"), s.QueueWait, 100*time.Millisecond, time.Hour),
		between(at.To("session_idle"), s.SessionIdle, time.Second, 24*time.Hour),
		oneOfProblem(at.To("reuse"), s.Reuse, []string{ReusePrincipal, ReuseNever}),
		s.Pool.problems(at.To("pool")),
		maskedProblems(at.To("masked"), s.Masked),
		remoteProblems(at.To("remote"), s.Remote),
		s.placementProblems(at.To("placement")),
	)
}

// maxPool bounds the pool. Each sandbox takes tens of MiB.
const maxPool = 256

func (p Pool) problems(at path) []problem {
	all := slices.Concat(
		between(at.To("min"), p.Min, 0, maxPool),
		between(at.To("max"), p.Max, 0, maxPool),
		between(at.To("memory"), p.Memory, 64*MiB, TiB),
	)
	if len(all) == 0 && p.Min > p.Max {
		all = append(all, problem{at: at.To("min"), message: fmt.Sprintf(`"min" must not be more than "max", which is %d`, p.Max)})
	}
	return all
}

func remoteProblems(at path, remote string) []problem {
	if _, err := machine.Parse(remote); remote != "" && remote != RemoteWorkers && err != nil {
		return []problem{{at: at, message: strconv.Quote("remote") + " " + err.Error()}}
	}
	return nil
}

func (s Sandbox) placementProblems(at path) (all []problem) {
	if _, err := labels.Parse(s.Placement); err != nil {
		all = append(all, problem{at: at, message: err.Error()})
	}
	if len(s.Placement) > 0 && s.Remote != RemoteWorkers {
		all = append(all, problem{at: at, onKey: true, message: `"placement" chooses among workers: set "remote" to workers, or leave it out`})
	}
	return all
}

func maskedProblems(at path, masked []string) []problem {
	var all []problem
	for i, name := range masked {
		if !strings.HasPrefix(name, "/usr/") || filepath.Clean(name) != name {
			all = append(all, problem{at: at.Item(i), message: "a masked path is absolute, below /usr and without . and ..; nothing else of the host is in a sandbox"})
		}
		all = append(all, noNUL(at.Item(i), name)...)
	}
	return all
}
