package workers

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// trouble is what a gateway remembers of a worker that failed, by its name: a worker that fails on purpose has as many processes as it likes.
type trouble struct {
	count int
	until time.Time // until then, others are preferred
}

// after returns the trouble after one more failure. Programs that fail together are one.
func (t trouble) after(now time.Time) trouble {
	if now.Before(t.until) {
		return t
	}
	return trouble{t.count + 1, now.Add(min(maxRetryAfter, retryAfter<<min(t.count, 10)))}
}

// forgetTroubles forgets workers that have not failed for long. It is called with mu held.
func (p *Pool) forgetTroubles() {
	for name, t := range p.troubles {
		if time.Since(t.until) > maxRetryAfter {
			delete(p.troubles, name)
		}
	}
}

// verdict is what the end of a program tells about its worker.
type verdict int

const (
	unknown verdict = iota
	fine
	refused // it did not start the program
	lost
	verdicts
)

func verdictOf(o sandbox.Outcome, err error) verdict {
	_, ofPackages := errors.AsType[*remote.AddError](err)
	switch {
	case ofPackages:
		return unknown
	case err != nil:
		return refused
	case o.Lost != "":
		return lost
	case o.Status == sandbox.Canceled:
		return unknown
	}
	return fine
}

// source is where beats come from: all processes of a worker's name.
type source struct {
	begin  time.Time
	beats  int // since begin
	warned time.Time
}

// maxBeats is the maximum of beats of a name in a beatInterval. All of its processes may send as many as they can.
const maxBeats = maxInstances * int(beatInterval/minBeat)

// source returns the source of this name; nil if there are too many. It is called with mu held.
func (r *registry) source(name string) *source {
	if s := r.sources[name]; s != nil {
		return s
	}
	if len(r.sources) >= maxWorkers {
		for other, s := range r.sources {
			if time.Since(s.begin) > goneAfter {
				delete(r.sources, other)
			}
		}
	}
	if len(r.sources) >= maxWorkers {
		return nil
	}
	s := &source{}
	r.sources[name] = s
	return s
}

// count counts a beat. The error is of a worker that sends too many.
func (s *source) count(now time.Time) error {
	if now.Sub(s.begin) > beatInterval {
		s.begin, s.beats = now, 0
	}
	if s.beats++; s.beats > maxBeats {
		return fmt.Errorf("more than %d in %s: the others are dropped", maxBeats, beatInterval)
	}
	return nil
}

// warn logs a fault of a worker, not too often.
func (s *source) warn(log *slog.Logger, message string, about ...any) {
	if time.Since(s.warned) > time.Minute {
		s.warned = time.Now()
		log.Warn(message, about...)
	}
}
