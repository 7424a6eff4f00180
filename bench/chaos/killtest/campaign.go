package killtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Options configure a campaign.
type Options struct {
	// Command returns a command of the gateway's binary; Upstream is a command that is [Upstream], with the file as its last argument.
	Command  func(args ...string) *exec.Cmd
	Upstream []string
	// Runsc is the path of runsc.
	Runsc string
	// Kills is how often the gateway is killed, Clients how many clients there are, Seed chooses jobs and moments.
	Kills, Clients int
	Seed           uint64
	// Log is called with a line for each job; it may be nil.
	Log func(line string)
}

// Report is what happened. Problems are violated promises.
type Report struct {
	Kills, Jobs, Completed, Failed, Asked, Resumed, Calls int
	Doubles                                               int
	Problems                                              []string
}

// String returns the counts in one line.
func (r Report) String() string {
	return r.counts("kills")
}

func (r Report) counts(faults string) string {
	return fmt.Sprintf("%d %s, %d jobs: %d completed, %d ended with an error, %d resumed, %d questions, %d calls that must not be made twice: %d made twice",
		r.Kills, faults, r.Jobs, r.Completed, r.Failed, r.Resumed, r.Asked, r.Calls, r.Doubles)
}

// campaign is a running campaign.
type campaign struct {
	Options
	dir    string
	ledger ledger
	bank   *bank
	up     *gate
	// api is a principal with a token, at a gateway.
	api func(token string) api
	// tries is how often a client tries to complete a job, again how long it waits before it asks again.
	tries int
	again time.Duration
	// unlisted is what a client resumes if its execution is not in the list: "last" if it may still run on another gateway.
	unlisted string

	mu     sync.Mutex
	report Report
	jobs   []*outcome
	ended  bool // no further jobs
	// answers counts answers by their status, unless it is nil; longest is the time of the longest job.
	answers map[string]int
	longest time.Duration
}

// outcome is how a job ended.
type outcome struct {
	*job
	status string
	text   string     // of the last answer
	dice   *rand.Rand // of the person who answers
	denied bool       // a person has denied a call: the job may fail
}

// Run kills a gateway, and returns what happened. The error is for a campaign that could not be carried out.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	dir, err := os.MkdirTemp("/tmp", "kill-") // short: a socket's path has room for little
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c := newCampaign(o, dir)
	listener, err := listenLocal()
	if err != nil {
		return Report{}, err
	}
	c.bank = serveBank(c.ledger, listener)
	defer c.bank.close()
	g, err := c.prepare()
	if err != nil {
		return Report{}, err
	}
	if err := g.start(ctx); err != nil {
		return Report{}, err
	}
	c.up.open()
	defer func() { _ = g.process().Process.Kill() }() // after an error; else it has ended
	if err := c.load(ctx, func() error { return c.killAll(ctx, g) }); err != nil {
		return c.report, err
	}
	if err := c.check(ctx, []*gateway{g}); err != nil {
		return c.report, err
	}
	if log := g.errorLog(); log != "" {
		c.problem("the gateway logged errors:\n%s", log)
	}
	c.checkLeft()
	return c.report, nil
}

func newCampaign(o Options, dir string) *campaign {
	return &campaign{Options: o, dir: dir, ledger: ledger(filepath.Join(dir, "effects")), up: newGate(), tries: maxTries, again: 100 * time.Millisecond}
}

// endTime is how long the last jobs may take after the last fault.
const endTime = 10 * time.Minute

// load has clients do jobs until a function returns.
func (c *campaign) load(ctx context.Context, until func() error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var clients sync.WaitGroup
	for i := range c.Clients {
		clients.Go(func() { c.client(inner, i) })
	}
	err := until()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if err != nil { // the gateway may never answer again
		cancel()
	}
	timer := time.AfterFunc(endTime, cancel)
	defer timer.Stop()
	clients.Wait()
	return err
}

func (c *campaign) problem(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Problems = append(c.report.Problems, fmt.Sprintf(format, args...))
}

// prepare writes the settings and workflows of a gateway on this machine.
func (c *campaign) prepare() (*gateway, error) {
	listener, err := listenLocal()
	if err != nil {
		return nil, err
	}
	g := &gateway{dir: c.dir, args: []string{"serve", "--http", listener.Addr().String()}, ready: listening, command: c.Command, begin: (*exec.Cmd).Start}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	c.api = func(token string) api {
		return api{base: "http://" + listener.Addr().String(), token: token, transport: http.DefaultTransport, lost: func() {}}
	}
	return g, c.writeSettings(c.dir, fmt.Sprintf("sandbox: {runsc: %q, parallel: 4, pool: {min: 1, max: 2}}\n", c.Runsc))
}

// writeSettings writes the settings of a gateway, with more keys, and its workflows.
func (c *campaign) writeSettings(dir, more string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "upstreams:\n  bank: {url: %q}\n  till: {command: %q, args: [", c.bank.url, c.Upstream[0])
	for _, arg := range append(c.Upstream[1:], string(c.ledger)) {
		fmt.Fprintf(&b, "%q, ", arg)
	}
	fmt.Fprintf(&b, "]}\napproval: {wait: 1s}\n%shttp:\n  hosts: [%s]\n  operators: [person]\n  tokens:\n    person: person-token-of-a-test\n", more, anyGateway)
	for i := range c.Clients {
		fmt.Fprintf(&b, "    client%d: %s\n", i, token(i))
	}
	if err := os.WriteFile(filepath.Join(dir, "upstreams.yaml"), []byte(b.String()), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "workflows"), 0o700); err != nil {
		return err
	}
	for name, text := range workflows {
		if err := os.WriteFile(filepath.Join(dir, "workflows", name+".yaml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func token(i int) string { return fmt.Sprintf("client-%d-token-of-a-test", i) }

// anyGateway is the name of all gateways of a cluster.
const anyGateway = "gateway.test"

func (c *campaign) dice(stream int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(stream))) //nolint:gosec // the same seed has to choose the same
}

// killAll kills the gateway at random moments, and starts it again.
func (c *campaign) killAll(ctx context.Context, g *gateway) error {
	dice := c.dice(1_000_000)
	for range c.Kills {
		c.awaitMoment(ctx, dice)
		if err := ctx.Err(); err != nil {
			return err
		}
		c.up.close()
		if err := g.kill(); err != nil {
			return err
		}
		c.mu.Lock()
		c.report.Kills++
		c.mu.Unlock()
		if err := g.start(ctx); err != nil {
			return err
		}
		c.up.open()
	}
	return nil
}

// awaitMoment waits for a random moment: mostly soon after the upstreams have done some more, else at any time.
func (c *campaign) awaitMoment(ctx context.Context, dice *rand.Rand) {
	if dice.IntN(5) > 0 {
		const line = 10 // about the size of a line of the ledger
		goal := c.ledger.size() + line*(1+dice.Int64N(12))
		for end := time.Now().Add(10 * time.Second); c.ledger.size() < goal && time.Now().Before(end) && ctx.Err() == nil; {
			time.Sleep(time.Millisecond)
		}
	}
	pause(ctx, time.Duration(dice.Int64N(int64(maxDelay))))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// client does jobs, one after the other, until the campaign has killed often enough.
func (c *campaign) client(ctx context.Context, i int) {
	dice, own := c.dice(i), c.api(token(i))
	var way door = own
	if i%2 == 1 {
		way = model{own}
	}
	for n := 1; ctx.Err() == nil; n++ {
		c.mu.Lock()
		over := c.ended
		c.mu.Unlock()
		if over {
			return
		}
		o := &outcome{job: newJob(dice, fmt.Sprintf("C%d-%d", i, n)), dice: dice}
		do := func(ctx context.Context) { c.program(ctx, way, o) }
		if o.workflow != "" {
			do = func(ctx context.Context) { c.workflow(ctx, own, o) }
		}
		began := time.Now()
		do(ctx)
		if ctx.Err() != nil {
			c.problem("%s %s %s has not ended: %s", o.id, o.language, o.workflow, o.text)
		}
		c.mu.Lock()
		c.longest = max(c.longest, time.Since(began))
		c.jobs = append(c.jobs, o)
		c.mu.Unlock()
		c.say("%s %s %s%s: %s", o.id, o.language, o.workflow, fmt.Sprint(o.calls), o.status)
	}
}

func (c *campaign) say(format string, args ...any) {
	if c.Log != nil {
		c.Log(fmt.Sprintf(format, args...))
	}
}

// resumedBy matches the error for an execution that another one resumes.
var resumedBy = regexp.MustCompile(`was resumed by (e-[a-z0-9]+)`)

// lastSucceeded matches the error for a client without failed executions.
var lastSucceeded = regexp.MustCompile(`resume=\\?"(e-[a-z0-9]+)\\?" gives it again`)

// maxTries is how often a client tries to complete a job.
const maxTries = 60

// program runs the program of a job until it has ended.
func (c *campaign) program(ctx context.Context, way door, o *outcome) {
	resume := ""
	for range c.tries {
		c.up.wait(ctx)
		if ctx.Err() != nil {
			return
		}
		a := way.execute(ctx, o.job, resume)
		c.answered(o, a)
		c.say("%s resume %q: %s %.300q", o.id, resume, a.status, a.text)
		if resume != "" {
			c.count(func(r *Report) { r.Resumed++ })
		}
		var over bool
		if resume, over = c.next(ctx, way, o, a, resume); over {
			return
		}
	}
	c.problem("%s: no end after %d tries", o.id, c.tries)
}

// answered notes an answer.
func (c *campaign) answered(o *outcome, a answer) {
	o.status, o.text = a.status, a.text
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers != nil {
		c.answers[a.status]++
	}
}

// next returns what a client resumes after an answer, as it is told to: "" to run the program from its start. over says that it has ended.
func (c *campaign) next(ctx context.Context, way door, o *outcome, a answer, resume string) (_ string, over bool) {
	switch {
	case a.lost():
		return c.find(ctx, way, o), false
	case a.status == "held":
		c.decide(ctx, o, a.asks)
		return a.resume, false
	case a.status == "busy":
		pause(ctx, c.again)
		return resume, false
	case a.status == "interrupted":
		return a.resume, false
	case a.status == "ok":
		return "", strings.Contains(a.text, o.done()) // else it resumed another one
	}
	return c.nextAfterError(ctx, o, a, resume)
}

// nextAfterError is next for an answer that is an error.
func (c *campaign) nextAfterError(ctx context.Context, o *outcome, a answer, resume string) (_ string, over bool) {
	switch {
	case strings.Contains(a.text, notWritten), strings.Contains(a.text, noStore):
		pause(ctx, c.again)
		return a.resume, false
	case lastSucceeded.MatchString(a.text):
		return lastSucceeded.FindStringSubmatch(a.text)[1], false
	case strings.Contains(a.text, "run the program without resume"):
		return "", false
	case a.status == "refused" && resumedBy.MatchString(a.text):
		return resumedBy.FindStringSubmatch(a.text)[1], false
	case a.status == "refused" && strings.Contains(a.text, "still runs"):
		pause(ctx, c.again)
		return resume, false
	case resume == "last" && !strings.Contains(a.text, o.id+"."): // it resumed another one, which failed
		return "", false
	}
	return "", true
}

// find returns the execution of a job after a lost answer.
func (c *campaign) find(ctx context.Context, way door, o *outcome) string {
	for ctx.Err() == nil {
		pause(ctx, 50*time.Millisecond)
		c.up.wait(ctx)
		found, err := way.find(ctx, o.job)
		if err == nil {
			return cmp.Or(found, c.unlisted)
		}
		if o.text != err.Error() {
			o.text = err.Error()
			c.say("%s: %s", o.id, o.text)
		}
	}
	return ""
}

// maxResumes is how often a run is resumed that failed after a denial, or because servers or workers were away.
const maxResumes = 6

// notDone matches the errors of runs with programs that could not make a call, or were interrupted.
var notDone = regexp.MustCompile(notWritten + "|" + noStore + "|" + noSandbox + "|the code ended: interrupted|the step was interrupted")

// workflow starts the run of a job, and asks for it until it is over. A run that failed is resumed.
func (c *campaign) workflow(ctx context.Context, way api, o *outcome) {
	resumes := 0
	for range c.tries {
		c.up.wait(ctx)
		if ctx.Err() != nil {
			return
		}
		a := way.launch(ctx, o.job)
		c.answered(o, a)
		c.say("%s: %s %.300q", o.id, a.status, a.text)
		switch {
		case a.lost():
			pause(ctx, 50*time.Millisecond)
		case len(a.asks) > 0:
			c.decide(ctx, o, a.asks)
		case a.status == "queued", a.status == "running", a.status == "waiting":
			pause(ctx, 50*time.Millisecond)
		case a.status == "failed" && (o.denied || notDone.MatchString(a.text)) && resumes < maxResumes:
			resumes++
			c.count(func(r *Report) { r.Resumed++ })
			status, text, err := way.ask(ctx, http.MethodPost, "/runs/"+a.resume+"/resume", map[string]any{}, nil)
			c.say("%s: resumed: %d %.200s %v", o.id, status, text, err)
		default:
			return
		}
	}
	c.problem("%s: no end after %d tries", o.id, c.tries)
}

func (c *campaign) count(f func(*Report)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.report)
}

// decide is a person who looks at what was done before they answer.
func (c *campaign) decide(ctx context.Context, o *outcome, asks []string) {
	person := c.api("person-token-of-a-test")
	pause(ctx, 3*maxDelay) // an upstream does what it had begun
	for _, id := range asks {
		var a approvalBrief
		status, text, err := person.ask(ctx, http.MethodGet, "/approvals/"+id, nil, &a)
		if status != http.StatusOK || err != nil {
			c.say("%s: approval %s: %d %s %v", o.id, id, status, text, err)
			continue // killed: it asks again
		}
		if a.State != "pending" && a.State != "waiting" {
			continue
		}
		c.answerOne(ctx, person, o, a)
	}
}

// answerOne answers a question: whether a call of a job, or any of its step, is to be made.
func (c *campaign) answerOne(ctx context.Context, person api, o *outcome, a approvalBrief) {
	done, err := c.ledger.counts()
	if err != nil {
		c.problem("%v", err)
		return
	}
	about := o.about(a)
	decision := "allow"
	for _, k := range about {
		if done[k.tool+" "+k.id] > 0 {
			decision = "done"
		}
	}
	if o.dice.IntN(4) == 0 {
		decision, o.denied = "deny", true
	}
	c.count(func(r *Report) { r.Asked++ })
	if len(about) != 1 {
		c.problem("%s: a question about %d calls: %+v", o.id, len(about), a)
	}
	status, text, err := person.ask(ctx, http.MethodPost, "/approvals/"+a.ID, map[string]any{"decision": decision}, &a)
	c.say("%s: %s %v: %d %.200s %v", o.id, decision, about, status, text, err)
}

// about returns the calls that a question is about.
func (o *outcome) about(a approvalBrief) (about []call) {
	for _, k := range o.calls {
		if strings.Contains(a.Arguments, `"`+k.id+`"`) {
			return []call{k}
		}
	}
	if o.workflow != "steps" {
		return o.calls
	}
	for i, step := range []string{"step one", "step two", "step each[0]", "step each[1]", "step last"} {
		if strings.HasPrefix(a.Reason, step) {
			about = append(about, o.calls[i])
		}
	}
	return about
}
