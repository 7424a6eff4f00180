package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// Figures are what a plan is made of.
type Figures struct {
	Costs Costs `json:"costs"`
	// Load is what each program does; its rate is not used.
	Load Load `json:"load"`
	// Site is what each gateway and each worker has; their numbers are not used.
	Site Site `json:"site"`
	// Rates are programs a second, one plan for each.
	Rates []float64 `json:"rates"`
}

// Default returns the figures of the documents, with measured costs.
func Default(c Costs) Figures {
	return Figures{Costs: c, Load: Load{Calls: 4, Recorded: 1, CallTime: 0.25}, Site: Site{Cores: 8, Seats: 64}, Rates: []float64{10, 100, 1000, 10_000}}
}

// Read reads figures from a JSON file; those that it does not have are those of f.
func (f Figures) Read(path string) (Figures, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}

// maxDetail is the largest number of programs a second that overload and losses are simulated of: larger sites have the same per worker, and
// take minutes.
const maxDetail = 1000

// takeover is how long a gateway waits for a worker that is silent, in seconds.
const takeover = 20

// Tables returns the plan as Markdown: what each rate needs, where queues grow when more programs come, and what a lost worker costs.
func (f Figures) Tables() (string, error) {
	var needs []Need
	for _, rate := range f.Rates {
		l := f.Load
		l.Rate = rate
		n, err := Plan(f.Costs, l, f.Site)
		if err != nil {
			return "", err
		}
		needs = append(needs, n)
	}
	small := slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { return n.Load.Rate > maxDetail })
	return f.head() + needed(needs) + f.overloaded(small) + f.lost(small), nil
}

func (f Figures) head() string {
	c := f.Costs
	return fmt.Sprintf("Each program makes %d calls of %g s, one after the other; %d may change something. Gateways and workers have %d processors each, workers %d seats. "+
		"A program takes %.1f ms of processor time (gateway %.1f, NATS %.1f, worker %.1f), a call %.2f ms more (%.2f, %.2f, %.2f), one that may change something %.2f ms (%.2f, %.2f, %.2f), and its record %.2f ms on the servers.\n",
		f.Load.Calls, f.Load.CallTime, f.Load.Recorded, f.Site.Cores, f.Site.Seats,
		c.Program.sum(), c.Program.Gateway, c.Program.Servers, c.Program.Worker, c.Call.sum(), c.Call.Gateway, c.Call.Servers, c.Call.Worker,
		c.Recorded.sum(), c.Recorded.Gateway, c.Recorded.Servers, c.Recorded.Worker, c.Acknowledge)
}

func (c Cost) sum() float64 { return c.Gateway + c.Servers + c.Worker }

// needed says what each rate needs.
func needed(needs []Need) string {
	var b strings.Builder
	b.WriteString("\n| programs a second | workers | decided by | gateways | decided by | `sandbox.parallel` | processors of NATS | a program, p50 s | p99 s | wait, p99 s |\n| ---: | ---: | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, n := range needs {
		fmt.Fprintf(&b, "| %g | %d | %s | %d | %s | %d | %.1f | %.2f | %.2f | %.2f |\n", n.Load.Rate, n.Site.Workers, n.LimitOfWorkers, n.Site.Gateways, n.LimitOfGateways, n.Site.Parallel, n.ServerCores, n.Result.Took.P50, n.Result.Took.P99, n.Result.Wait.P99)
	}
	return b.String()
}

// more is how many times the planned rate overloads a site.
const more = 2

// overloadSeconds is how long more programs come.
const overloadSeconds = 8

// overloaded says where queues grow.
func (f Figures) overloaded(needs []Need) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %d times as many programs a second | run a second | wait after a minute | a program, p99 s | asked most of, of what there is |\n| ---: | ---: | ---: | ---: | --- |\n", more)
	for _, n := range needs {
		l := n.Load
		l.Rate *= more
		r := Simulate(f.Costs, l, n.Site, Events{Seconds: overloadSeconds, ServerCores: serverCores(n)})
		fmt.Fprintf(&b, "| %g | %.0f | %.0f | %.1f | %s |\n", l.Rate, r.Rate, float64(r.Waiting)*60/overloadSeconds, r.Took.P99, n.fullest(f.Costs, l))
	}
	return b.String()
}

func serverCores(n Need) int { return max(1, int(math.Ceil(n.ServerCores/full))) }

// lost says what a lost worker costs.
func (f Figures) lost(needs []Need) string {
	var b strings.Builder
	b.WriteString("\n| programs a second | workers, one of them lost | programs on it | they begin again after s | the slowest program, s | no program waits, s after that |\n| ---: | ---: | ---: | ---: | ---: | --- |\n")
	for _, n := range needs {
		if n.Site.Workers == 1 {
			fmt.Fprintf(&b, "| %g | 1 | all | | | none runs until a worker joins |\n", n.Load.Rate)
			continue
		}
		r := Simulate(f.Costs, n.Load, n.Site, Events{Seconds: lossSeconds, ServerCores: serverCores(n), LoseAt: 5, Takeover: takeover})
		recovered := fmt.Sprintf("%.1f", r.Recovered)
		if r.Waiting > 0 {
			recovered = fmt.Sprintf("never: %d wait at the end", r.Waiting)
		}
		fmt.Fprintf(&b, "| %g | %d | %d | %d | %.1f | %s |\n", n.Load.Rate, n.Site.Workers, r.Lost, takeover, r.Took.Max, recovered)
	}
	return b.String()
}

// lossSeconds is how long programs begin where a worker is lost.
const lossSeconds = 28
