package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/labels"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// take returns the worker for a program, and counts the program there. tried are those that it must not be. The caller must
// call release.
func (p *Pool) take(ctx context.Context, job sandbox.Job, tried []string) (*member, error) {
	for {
		changed := p.registry.next()
		m, err := p.choose(job, tried)
		wait := time.Until(p.opened.Add(joinTimeout))
		if m != nil || len(tried) > 0 || wait <= 0 {
			return m, err
		}
		timer := time.NewTimer(min(wait, joinPoll))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil, err
		}
	}
}

// joinPoll is how often a new pool looks for the first worker, in addition to each beat.
const joinPoll = 100 * time.Millisecond

// choose returns the worker of the job's session, else the one with the largest part of its seats free.
func (p *Pool) choose(job sandbox.Job, tried []string) (*member, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the gateway closes")
	}
	session := job.Session
	best := p.members[p.sessions[session].instance]
	if session == "" || best == nil || !p.usable(best, job, tried) {
		best = nil
		for _, m := range p.members {
			if p.usable(m, job, tried) && (best == nil || p.prefersFor(job, m, best)) {
				best = m
			}
		}
	}
	if best == nil {
		return nil, p.noneError(job)
	}
	best.running++
	if session != "" {
		p.remember(session, best.Instance)
	}
	return best, nil
}

// usable reports whether a worker takes a program.
func (p *Pool) usable(m *member, job sandbox.Job, tried []string) bool {
	return !slices.Contains(m.Lacks, job.Interpreter) && m.hasEnvironment(remote.EnvironmentOf(job)) && m.addsPackages(job) && p.available(m) && !slices.Contains(tried, m.Instance)
}

// available reports whether a worker takes anything of this gateway. It is called with mu held.
func (p *Pool) available(m *member) bool {
	return p.placeable(m.Worker) && !m.Draining && !m.Left && time.Since(m.Seen) < staleAfter
}

// placeable reports whether a worker has the labels for programs.
func (p *Pool) placeable(w Worker) bool { return len(labels.Missing(p.placement(), w.Labels)) == 0 }

// placement returns the labels that workers must have.
func (p *Pool) placement() []string {
	if p.opts.Placement == nil {
		return nil
	}
	return p.opts.Placement()
}

// prefers reports whether m is better than other for the next program. It is called with mu held.
func (p *Pool) prefers(m, other *member) bool {
	now := time.Now()
	if a, b := now.Before(p.troubles[m.Name].until), now.Before(p.troubles[other.Name].until); a != b {
		return b
	}
	// What its beat says about programs of this gateway may be old, and it knows about those of others.
	load, otherLoad := max(m.Busy, m.running), max(other.Busy, other.running)
	return cmp.Or(cmp.Compare(load*other.Seats, otherLoad*m.Seats), cmp.Compare(other.Seats, m.Seats), cmp.Compare(m.Name, other.Name)) < 0
}

// release counts a program that has ended, and notes what that tells about the worker.
func (p *Pool) release(m *member, v verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.running--
	p.count(m.Name, v)
	switch v {
	case refused, lost:
		p.troubles[m.Name] = p.troubles[m.Name].after(time.Now())
	case fine:
		delete(p.troubles, m.Name)
	case unknown, verdicts:
	}
}

// remember notes where a session is. It is called with mu held.
func (p *Pool) remember(session, instance string) {
	p.sessions[session] = place{instance, time.Now()}
	if len(p.sessions) <= maxSessions {
		return
	}
	oldest := session
	for one, at := range p.sessions {
		if at.used.Before(p.sessions[oldest].used) {
			oldest = one
		}
	}
	delete(p.sessions, oldest)
}

// noneError says why no worker takes a program. It is called with mu held.
func (p *Pool) noneError(job sandbox.Job) error {
	others, draining, lacking, without, older := 0, false, false, []string(nil), []string(nil)
	for _, m := range p.members {
		if slices.Contains(m.Lacks, job.Interpreter) {
			lacking = true
		} else if !p.placeable(m.Worker) {
			others++
		} else if !m.hasEnvironment(remote.EnvironmentOf(job)) {
			without = append(without, m.Name)
		} else if !m.addsPackages(job) {
			older = append(older, m.Name)
		} else if m.Draining {
			draining = true
		}
	}
	switch {
	case !p.registry.conn.IsConnected():
		return fmt.Errorf("%w: there is no connection to %s", sandbox.ErrNoWorker, p.opts.Server.URL)
	case lacking:
		return fmt.Errorf("no worker that takes programs has the interpreter %s: install it on their machines (`sallyport cluster status` shows what they lack)", job.Interpreter)
	case len(older) > 0 && !draining:
		return olderError(older)
	case len(without) > 0 && !draining:
		return noEnvironmentError(remote.EnvironmentOf(job), without)
	case draining:
		return fmt.Errorf("%w: those that have joined are draining", sandbox.ErrNoWorker)
	case others > 0:
		return fmt.Errorf("no worker has the labels %s of sandbox.placement, but %d without them have joined: start one with `sallyport worker --label KEY=VALUE`",
			strings.Join(p.placement(), " "), others)
	}
	return fmt.Errorf("%w: none has joined: start one with `sallyport worker --join URL --creds FILE` on a Linux machine (docs/how-to/workers.md)", sandbox.ErrNoWorker)
}
