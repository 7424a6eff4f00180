package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"sallyport/internal/testutil/netcluster"
)

var (
	faultKinds  = []string{"kill", "pause", "cut", "slow"}
	memberKinds = []string{"server", "gateway", "worker"}
)

// member is a process of the cluster, on a host of its own. It has one fault at a time.
type member struct {
	mu     sync.Mutex
	kind   string
	host   *netcluster.Host
	kill   func(ctx context.Context) error
	start  func(ctx context.Context) error
	signal func(s syscall.Signal) error
}

// fault is what happens to a member for a time.
type fault struct {
	kind   string
	member *member
	lasts  time.Duration
	rate   int // of a slow link, in bytes per second
}

// String returns the fault in one line.
func (f fault) String() string {
	text := fmt.Sprintf("%s %s for %s", f.kind, f.member.host.Name, f.lasts.Round(time.Millisecond))
	if f.kind == "slow" {
		text += fmt.Sprintf(" to %d bytes/s", f.rate)
	}
	return text
}

// newFault returns a random fault. Some last so long that others take over what the member had.
func (f *fleet) newFault(dice *rand.Rand) fault {
	made := fault{kind: faultKinds[dice.IntN(len(faultKinds))], member: f.members[dice.IntN(len(f.members))]}
	longest := []time.Duration{3 * time.Second, 3 * time.Second, 10 * time.Second, 25 * time.Second}[dice.IntN(4)]
	if f.Kills < 20 { // a short campaign
		longest = min(longest, 3*time.Second)
	}
	made.lasts = 100*time.Millisecond + time.Duration(dice.Int64N(int64(longest)))
	made.rate = 20_000 << dice.IntN(4)
	return made
}

// happen begins the fault, waits, and ends it.
func (f fault) happen(ctx context.Context) error {
	f.member.mu.Lock()
	defer f.member.mu.Unlock()
	if err := f.begin(ctx); err != nil {
		return err
	}
	pause(ctx, f.lasts)
	return f.end(ctx)
}

func (f fault) begin(ctx context.Context) error {
	switch f.kind {
	case "kill":
		return f.member.kill(ctx)
	case "pause":
		return f.member.signal(syscall.SIGSTOP)
	case "cut":
		return f.member.host.Cut()
	case "slow":
		return f.member.host.Slow(f.rate)
	}
	return errors.New("unknown kind of fault")
}

func (f fault) end(ctx context.Context) error {
	switch f.kind {
	case "kill":
		return f.member.start(ctx)
	case "pause":
		return f.member.signal(syscall.SIGCONT)
	}
	return f.member.host.Mend()
}
