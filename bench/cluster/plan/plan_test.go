package plan

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var costs = Costs{Program: Cost{2, 1, 30}, Call: Cost{.6, .2, .6}, Recorded: Cost{1, .6, .7}, Acknowledge: .4}

func near(got, want, band float64) bool { return math.Abs(got-want) <= band*want }

// TestSimulateLimits checks simulations whose results are known: clients that wait for calls alone, processors that are never idle, and a
// load that leaves them nearly idle.
func TestSimulateLimits(t *testing.T) {
	waits := Load{Clients: 32, Calls: 10, CallTime: .5}
	site := Site{Gateways: 1, Workers: 2, Cores: 2, Seats: 16, Parallel: 100}
	if r := Simulate(Costs{}, waits, site, Events{Seconds: 100, ServerCores: 1}); !near(r.Rate, 32/5., .01) {
		t.Errorf("calls alone: %+v", r)
	}
	few := site
	few.Parallel = 16
	if r := Simulate(Costs{}, waits, few, Events{Seconds: 99, ServerCores: 1}); !near(r.Rate, 16/5., .05) || r.Waiting != 16 {
		t.Errorf("half as many slots as clients: %+v", r)
	}
	if r := Simulate(costs, Load{Clients: 32}, site, Events{Seconds: 100, ServerCores: 8}); !near(r.Rate, 4*1000/30., .03) {
		t.Errorf("workers that are never idle: %+v", r)
	}
	one := site
	one.OneMachine = true
	if r := Simulate(costs, Load{Clients: 32}, one, Events{Seconds: 100, ServerCores: 8}); !near(r.Rate, 2*1000/33., .03) {
		t.Errorf("all on one machine: %+v", r)
	}
	if r := Simulate(costs, Load{Rate: 5, Calls: 4, CallTime: .25}, site, Events{Seconds: 200, ServerCores: 1}); !near(r.Rate, 5, .1) || !near(r.Took.P50, 1.039, .02) {
		t.Errorf("nearly idle: %+v", r)
	}
}

// TestLostWorker checks that the programs of a lost worker run again on another, once the gateways have given it up.
func TestLostWorker(t *testing.T) {
	l := Load{Rate: 20, Calls: 4, CallTime: .25}
	site := Site{Gateways: 1, Workers: 2, Cores: 4, Seats: 64, Parallel: 1024}
	r := Simulate(costs, l, site, Events{Seconds: 60, ServerCores: 2, LoseAt: 10, Takeover: 20})
	whole := Simulate(costs, l, site, Events{Seconds: 60, ServerCores: 2})
	if r.Lost < 5 || r.Lost > 20 || r.Took.Max < 20 || r.Took.N != whole.Took.N {
		t.Errorf("%+v\nwithout a loss %+v", r, whole)
	}
	if again := Simulate(costs, l, site, Events{Seconds: 60, ServerCores: 2, LoseAt: 10, Takeover: 20}); again != r {
		t.Errorf("another result the second time: %+v, %+v", again, r)
	}
}

// TestPlan checks that what is planned runs the load, and that one worker less would not have the room that a plan leaves.
func TestPlan(t *testing.T) {
	f := Default(costs)
	for _, rate := range []float64{10, 100, 1000} {
		l := f.Load
		l.Rate = rate
		n, err := Plan(f.Costs, l, f.Site)
		if err != nil {
			t.Fatal(err)
		}
		if !near(n.Result.Rate, rate, .25) || n.Result.Wait.P99 > maxWait {
			t.Errorf("%g a second with %+v: %+v", rate, n.Site, n.Result)
		}
		if room := full * float64(n.Site.Workers-1) * float64(n.Site.Cores) * 1000 / costs.each(l).Worker; n.LimitOfWorkers == "processors" && room > rate {
			t.Errorf("%g a second: %d workers, and %.0f a second would run on one less", rate, n.Site.Workers, room)
		}
	}
	if _, err := Plan(costs, Load{Rate: 1, Calls: 1, Recorded: 2}, f.Site); err == nil {
		t.Error("more recorded calls than calls are taken")
	}
}

// TestFigures checks that a file of figures replaces only those that it has.
func TestFigures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	if err := os.WriteFile(path, []byte(`{"load":{"calls":1},"rates":[20]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Default(costs).Read(path)
	if err != nil || f.Load.Calls != 1 || f.Load.CallTime != .25 || f.Costs != costs {
		t.Fatalf("%+v, %v", f, err)
	}
	text, err := f.Tables()
	if err != nil || !strings.Contains(text, "\n| 20 | ") || !strings.Contains(text, "\n| 40 | ") || strings.Contains(text, "10000") {
		t.Errorf("%v\n%s", err, text)
	}
}
