package dashboard

import (
	"slices"
	"sync"

	"sallyport/gateway/execution"
)

// attempt is a program that was run on the playground: what the record of its execution does not have.
type attempt struct {
	principal string
	program   execution.Program
	// done is closed when it has ended; then answer is what a model would read, and err says why it was not run.
	done   chan struct{}
	answer string
	err    error
}

// over reports whether it has ended.
func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// refused reports whether a program that has ended was not run. The attempt may be nil.
func (a *attempt) refused() bool { return a != nil && a.err != nil }

// maxAttempts is how many attempts are kept of all principals, maxProgram the maximum size of a program, in bytes.
const maxAttempts, maxProgram = 64, 128 << 10

// attempts are the latest ones. The zero value is empty; it is safe for concurrent use.
type attempts struct {
	mu   sync.Mutex
	list []*attempt // the newest last
}

func (l *attempts) add(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(slices.Clone(l.list[max(0, len(l.list)+1-maxAttempts):]), a)
}

// find returns the attempt of a principal by its execution, nil if there is none or it is no longer kept.
func (l *attempts) find(principal, id string) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.list {
		if a.program.ID == id && a.principal == principal {
			return a
		}
	}
	return nil
}
