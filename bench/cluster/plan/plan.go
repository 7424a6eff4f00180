// Package plan simulates gateways, NATS servers and workers with measured costs, and says how many of them a number of
// programs a second needs. A simulation is a sequence of discrete events; the same input gives the same result.
package plan

import (
	"errors"
	"fmt"
	"math"
)

// Cost is the processor time of one thing at each part, in milliseconds.
type Cost struct {
	Gateway float64 `json:"gateway"`
	Servers float64 `json:"servers"`
	Worker  float64 `json:"worker"`
}

func (c Cost) plus(other Cost, times float64) Cost {
	return Cost{c.Gateway + times*other.Gateway, c.Servers + times*other.Servers, c.Worker + times*other.Worker}
}

// Costs are what was measured.
type Costs struct {
	// Program is of a program without calls in a sandbox of its own, with its records.
	Program Cost `json:"program"`
	// Call is of one call, Recorded of one that may change something and has a record before it is made.
	Call     Cost `json:"call"`
	Recorded Cost `json:"recorded_call"`
	// Acknowledge is how long a record takes to be on the servers' disk, in milliseconds.
	Acknowledge float64 `json:"acknowledge_ms"`
}

// Load is what clients want.
type Load struct {
	// Rate is programs a second. It is 0 where Clients run one program after the other.
	Rate    float64 `json:"rate,omitempty"`
	Clients int     `json:"clients,omitempty"`
	// Calls is how many calls a program makes, one after the other, Recorded how many of them may change something.
	Calls    int `json:"calls"`
	Recorded int `json:"recorded"`
	// CallTime is how long the upstream takes for one, in seconds.
	CallTime float64 `json:"call_seconds"`
}

// Site is what there is.
type Site struct {
	Gateways int `json:"gateways,omitempty"`
	Workers  int `json:"workers,omitempty"`
	// Cores are the processors of each gateway, each worker and each server.
	Cores int `json:"cores"`
	// Seats are those of each worker, Parallel is sandbox.parallel of each gateway.
	Seats    int `json:"seats"`
	Parallel int `json:"parallel,omitempty"`
	// OneMachine says that all parts use the same processors.
	OneMachine bool `json:"one_machine,omitempty"`
}

// each returns the processor time of one program.
func (c Costs) each(l Load) Cost {
	return c.Program.plus(c.Call, float64(l.Calls-l.Recorded)).plus(c.Recorded, float64(l.Recorded))
}

// Check returns what is wrong with a load and a site.
func Check(l Load, s Site) error {
	switch {
	case l.Rate < 0 || l.Calls < 0 || l.Recorded < 0 || l.Recorded > l.Calls || l.CallTime < 0:
		return errors.New("rate, calls, recorded and call_seconds are not negative, and recorded is at most calls")
	case (l.Rate > 0) == (l.Clients > 0):
		return errors.New("set either rate or clients")
	case s.Gateways < 1 || s.Workers < 1 || s.Cores < 1 || s.Seats < 1 || s.Parallel < 1:
		return errors.New("gateways, workers, cores, seats and parallel are at least 1")
	}
	return nil
}

const (
	// full is the part of its processors that each part may use in a plan: the rest is for peaks.
	full = 0.7
	// maxWait is how long a program may wait for a seat or a slot in a plan, at p99, in seconds.
	maxWait = 0.5
)

// Need is a site that runs a load.
type Need struct {
	Load   Load
	Site   Site
	Result Result
	// ServerCores are the processors that the servers use.
	ServerCores float64
	// LimitOfWorkers and LimitOfGateways say what decides their numbers.
	LimitOfWorkers, LimitOfGateways string
}

// maxParallel is the largest sandbox.parallel.
const maxParallel = 1024

// Plan returns the least numbers of gateways and workers like those of site that run a load. The gateways have as many slots as the workers
// have seats.
func Plan(c Costs, l Load, site Site) (Need, error) {
	site.Gateways, site.Workers, site.Parallel = 1, 1, 1
	if err := Check(l, site); err != nil {
		return Need{}, err
	}
	each := c.each(l)
	n := Need{Load: l, Site: site, ServerCores: l.Rate * each.Servers / 1000}
	n.Site.Workers, n.LimitOfWorkers = most(l.Rate*each.Worker/1000/full/float64(site.Cores), c.running(l)/float64(site.Seats)/full, "seats")
	for range 50 {
		n.Site.Gateways, n.LimitOfGateways = most(l.Rate*each.Gateway/1000/full/float64(site.Cores), float64(n.Site.Workers*site.Seats)/maxParallel, "slots")
		n.Site.Parallel = min(maxParallel, (n.Site.Workers*site.Seats+n.Site.Gateways-1)/n.Site.Gateways)
		n.Result = Simulate(c, l, n.Site, Events{Seconds: span(l.Rate), ServerCores: serverCores(n)})
		if n.Result.Wait.P99 <= maxWait {
			return n, nil
		}
		n.Site.Workers++
	}
	return n, fmt.Errorf("plan %g programs a second: programs still wait %.1f s with %d gateways and %d workers", l.Rate, n.Result.Wait.P99, n.Site.Gateways, n.Site.Workers)
}

// running is how many programs run at a time if no part is busy.
func (c Costs) running(l Load) float64 {
	return l.Rate * (float64(l.Calls)*l.CallTime + (c.each(l).sum()+float64(l.Recorded)*c.Acknowledge)/1000)
}

// fullest returns the part of a site that a load fills first.
func (n Need) fullest(c Costs, l Load) string {
	each, s := c.each(l), n.Site
	name, most := "", 0.0
	for _, part := range []struct {
		name string
		used float64
	}{
		{"processors of workers", l.Rate * each.Worker / 1000 / float64(s.Workers*s.Cores)}, {"processors of gateways", l.Rate * each.Gateway / 1000 / float64(s.Gateways*s.Cores)},
		{"processors of NATS", l.Rate * each.Servers / 1000 / float64(serverCores(n))}, {"slots", c.running(l) / float64(s.Gateways*s.Parallel)},
	} {
		if part.used > most {
			name, most = part.name, part.used
		}
	}
	return fmt.Sprintf("%s, %.0f %%", name, 100*most)
}

// span is how many seconds are simulated: fewer for a large load, which has enough programs in them.
func span(rate float64) float64 { return max(2.5, min(60, 5_000/rate)) }

// most returns the larger number, at least 1, and whether processors or the other thing decide.
func most(processors, places float64, name string) (n int, limit string) {
	if limit = "processors"; places > processors {
		limit = name
	}
	return max(1, int(math.Ceil(max(processors, places)))), limit
}
