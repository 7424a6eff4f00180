package workers

import (
	"context"
	"errors"
	"time"

	"sallyport/sandbox"
	"sallyport/sandbox/deps"
	"sallyport/sandbox/remote"
)

// maxAdded bounds the environments with added packages that a gateway remembers of a worker.
const maxAdded = 1000

// addsPackages reports whether a worker can make the environment of a job.
func (b Beat) addsPackages(job sandbox.Job) bool {
	return job.Added == nil || remote.Here().AddsPackages(b.Speaks)
}

// Packages returns the packages of the environment of a job on a worker, by interpreter, and adds those that the job adds. The job has no
// program. Other workers add them when they run a program in that environment.
func (p *Pool) Packages(ctx context.Context, job sandbox.Job) (found map[sandbox.Interpreter][]deps.InstalledPackage, err error) {
	var tried []string
	for len(tried) < maxTries {
		m, none := p.take(ctx, job, tried)
		if none != nil && err == nil {
			err = none
		}
		if none != nil {
			break
		}
		found, err = m.client.Packages(ctx, *job.Added)
		p.noteAdded(m, job, err)
		p.leave(m, isUnanswered(ctx, err))
		if err == nil || ctx.Err() != nil || isFinal(err) {
			break
		}
		p.log.WarnContext(ctx, "a worker did not list packages", "worker", m.Name, "environment", job.Added.Environment, "error", err)
		tried = append(tried, m.Instance)
	}
	return found, err
}

// leave counts a use of a worker that has ended and was no program. After a failure of the worker, others are preferred.
func (p *Pool) leave(m *member, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.running--
	if failed {
		p.troubles[m.Name] = p.troubles[m.Name].after(time.Now())
	}
}

// isUnanswered reports whether an error says that a worker gave no valid answer. If the caller canceled, that is no failure of the worker.
func isUnanswered(ctx context.Context, err error) bool {
	_, refused := errors.AsType[*remote.AddError](err)
	return err != nil && !refused && !errors.Is(ctx.Err(), context.Canceled)
}

// isFinal reports whether no other worker is tried after an error.
func isFinal(err error) bool {
	refusal, ok := errors.AsType[*remote.AddError](err)
	return ok && refusal.Final
}

// noteAdded notes that a worker has made the environment of a job.
func (p *Pool) noteAdded(m *member, job sandbox.Job, err error) {
	if job.Added == nil || err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.added == nil || len(m.added) >= maxAdded {
		m.added = map[string]bool{}
	}
	m.added[job.Environment] = true
}

// prefersFor reports whether m is better than other for a job. A worker with a free seat that has already made the job's environment is
// preferred. It is called with mu held.
func (p *Pool) prefersFor(job sandbox.Job, m, other *member) bool {
	if a, b := p.hasAdded(m, job), p.hasAdded(other, job); a != b {
		return a
	}
	return p.prefers(m, other)
}

// hasAdded is called with mu held.
func (p *Pool) hasAdded(m *member, job sandbox.Job) bool {
	return job.Added != nil && m.added[job.Environment] && max(m.Busy, m.running) < m.Seats && time.Now().After(p.troubles[m.Name].until)
}
