package plan

import (
	"cmp"
	"container/heap"
	"maps"
	"math/rand/v2"
	"slices"

	"sallyport/bench/stats"
)

// Events are what happens besides the load.
type Events struct {
	// Seconds is how long programs begin.
	Seconds float64
	// ServerCores are the processors of the servers.
	ServerCores int
	// LoseAt is when a worker is lost, in seconds; 0 is never. Its programs begin again on others after Takeover seconds.
	LoseAt, Takeover float64
}

// Result is how a load was run.
type Result struct {
	// Rate is how many programs ended in a second, in the second half of the time in which programs began.
	Rate float64
	// Took is how long programs took, in seconds, Wait how long they waited for a slot before.
	Took, Wait stats.Summary
	// Waiting is how many programs waited at the end of that time.
	Waiting int
	// Lost is how many programs were on the worker that was lost; Recovered is how many seconds later no program waited any more.
	Lost      int
	Recovered float64
}

// event is something that happens at a time.
type event struct {
	at    float64
	order int // of events at the same time
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements [heap.Interface].
func (e *events) Push(x any) { *e = append(*e, x.(event)) } //nolint:forcetypeassert // only events are pushed

// Pop implements [heap.Interface].
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// slice is how long a job has a processor before the next one has it, in seconds.
const slice = 0.02

// processor is some processors with a queue of jobs.
type processor struct {
	sim   *simulation
	free  int
	queue []job
}

type job struct {
	left float64
	done func()
}

// use has a job run for some milliseconds, and then calls done.
func (p *processor) use(milliseconds float64, done func()) {
	p.queue = append(p.queue, job{milliseconds / 1000, done})
	p.next()
}

// next starts jobs on free processors.
func (p *processor) next() {
	for p.free > 0 && len(p.queue) > 0 {
		j := p.queue[0]
		p.queue = p.queue[1:]
		p.free--
		now := min(slice, j.left)
		p.sim.after(now, func() {
			p.free++
			if j.left -= now; j.left > 1e-9 {
				p.queue = append(p.queue, j)
			} else {
				j.done()
			}
			p.next()
		})
	}
}

// simulation is one run.
type simulation struct {
	costs  Costs
	load   Load
	site   Site
	happen Events
	dice   *rand.Rand

	now      float64
	order    int
	events   events
	gateways []*gateway
	workers  []*worker
	servers  *processor
	turn     int // of the gateways

	took, waits []float64
	stood       bool
	late        int // programs that ended in the second half
	result      Result
	lostAt      float64 // when programs of a lost worker began again, while any wait
}

type gateway struct {
	*processor

	running int
	waiting []*program
}

type worker struct {
	*processor

	running map[*program]bool
	lost    bool
}

// program is one that a client wants.
type program struct {
	number  int
	asked   float64
	gateway *gateway
	worker  *worker
	calls   int
	run     int // counts its starts: what belongs to an earlier one is void
	again   bool
}

// Simulate runs a load on a site.
func Simulate(c Costs, l Load, site Site, happen Events) Result {
	s := &simulation{costs: c, load: l, site: site, happen: happen, dice: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // the same each time
	s.build()
	s.begin()
	for len(s.events) > 0 {
		e, _ := heap.Pop(&s.events).(event)
		if s.now = e.at; s.now > happen.Seconds {
			s.stand()
		}
		if s.now > happen.Seconds+maxDrain {
			break
		}
		e.do()
	}
	s.stand()
	s.result.Took, s.result.Wait = stats.Summarize(s.took), stats.Summarize(s.waits)
	return s.result
}

// maxDrain is how long what has begun may go on, in seconds.
const maxDrain = 600

// build makes the parts.
func (s *simulation) build() {
	shared := &processor{sim: s, free: s.site.Cores}
	cores := func(n int) *processor {
		if s.site.OneMachine {
			return shared
		}
		return &processor{sim: s, free: n}
	}
	for range s.site.Gateways {
		s.gateways = append(s.gateways, &gateway{processor: cores(s.site.Cores)})
	}
	for range s.site.Workers {
		s.workers = append(s.workers, &worker{processor: cores(s.site.Cores), running: map[*program]bool{}})
	}
	s.servers = cores(max(1, s.happen.ServerCores))
}

// begin lets clients come.
func (s *simulation) begin() {
	if s.happen.LoseAt > 0 {
		s.after(s.happen.LoseAt, s.lose)
	}
	for range s.load.Clients {
		s.ask()
	}
	if s.load.Rate > 0 {
		s.after(0, s.arrive)
	}
}

// after has something happen in some seconds.
func (s *simulation) after(seconds float64, do func()) {
	s.order++
	heap.Push(&s.events, event{s.now + seconds, s.order, do})
}

// arrive has a client come, and the next one later.
func (s *simulation) arrive() {
	s.ask()
	if wait := s.dice.ExpFloat64() / s.load.Rate; s.now+wait < s.happen.Seconds {
		s.after(wait, s.arrive)
	}
}

// ask sends a program to the next gateway.
func (s *simulation) ask() {
	g := s.gateways[s.turn%len(s.gateways)]
	s.turn++
	p := &program{number: s.turn, asked: s.now, gateway: g}
	g.waiting = append(g.waiting, p)
	s.admit(g)
}

// admit starts programs in free slots.
func (s *simulation) admit(g *gateway) {
	for g.running < s.site.Parallel && len(g.waiting) > 0 {
		w := s.place()
		if w == nil {
			break
		}
		p := g.waiting[0]
		g.waiting = g.waiting[1:]
		g.running++
		if !p.again {
			s.waits = append(s.waits, s.now-p.asked)
		}
		s.start(p, w)
	}
	if s.lostAt > 0 && s.waiting() == 0 {
		s.result.Recovered, s.lostAt = s.now-s.lostAt, 0
	}
}

// overcommit is how many programs a worker runs for each seat at most.
const overcommit = 17

// place returns the worker with the fewest programs, nil if all have as many as they may. Seats are a target, no limit.
func (s *simulation) place() (best *worker) {
	for _, w := range s.workers {
		if !w.lost && len(w.running) < overcommit*s.site.Seats && (best == nil || len(w.running) < len(best.running)) {
			best = w
		}
	}
	return best
}

// start runs a program on a worker.
func (s *simulation) start(p *program, w *worker) {
	p.worker, p.calls = w, 0
	p.run++
	w.running[p] = true
	c := s.costs.Program
	s.through(p, []step{{p.gateway.processor, c.Gateway}, {s.servers, c.Servers}, {w.processor, c.Worker}}, func() { s.call(p) })
}

// step is work at a part, in milliseconds.
type step struct {
	at   *processor
	cost float64
}

// through does steps one after the other, unless the program is started again.
func (s *simulation) through(p *program, steps []step, done func()) {
	if len(steps) == 0 {
		done()
		return
	}
	run := p.run
	steps[0].at.use(steps[0].cost, func() {
		if p.run == run {
			s.through(p, steps[1:], done)
		}
	})
}

// call makes the program's next call, or ends it.
func (s *simulation) call(p *program) {
	if p.calls == s.load.Calls {
		s.end(p)
		return
	}
	p.calls++
	c, wait := s.costs.Call, s.load.CallTime
	if p.calls <= s.load.Recorded {
		c, wait = s.costs.Recorded, wait+s.costs.Acknowledge/1000
	}
	run := p.run
	s.through(p, []step{{p.worker.processor, c.Worker}, {s.servers, c.Servers}, {p.gateway.processor, c.Gateway}}, func() {
		s.after(wait, func() {
			if p.run == run {
				s.call(p)
			}
		})
	})
}

// end ends a program; a client that waits for it asks again.
func (s *simulation) end(p *program) {
	delete(p.worker.running, p)
	p.gateway.running--
	s.took = append(s.took, s.now-p.asked)
	if s.now > s.happen.Seconds/2 {
		s.late++
	}
	if s.load.Clients > 0 && s.now < s.happen.Seconds {
		s.ask()
	}
	s.admit(p.gateway)
}

// stand notes, once, what has been done when no more clients come.
func (s *simulation) stand() {
	if s.stood {
		return
	}
	s.stood = true
	s.result.Waiting = s.waiting()
	s.result.Rate = float64(s.late) / (s.happen.Seconds / 2)
}

// waiting counts the programs that wait.
func (s *simulation) waiting() (n int) {
	for _, g := range s.gateways {
		n += len(g.waiting)
	}
	return n
}

// lose loses the first worker. Its programs begin again when the gateways have given it up.
func (s *simulation) lose() {
	w := s.workers[0]
	w.lost = true
	s.result.Lost = len(w.running)
	lost := slices.SortedFunc(maps.Keys(w.running), func(p, other *program) int { return cmp.Compare(p.number, other.number) })
	w.running = map[*program]bool{}
	for _, p := range lost {
		p.run++ // what it did there is void
	}
	s.after(s.happen.Takeover, func() {
		s.lostAt = s.now
		for _, p := range lost {
			p.again = true
			p.gateway.running--
			p.gateway.waiting = slices.Insert(p.gateway.waiting, 0, p)
		}
		for _, g := range s.gateways {
			s.admit(g)
		}
	})
}
