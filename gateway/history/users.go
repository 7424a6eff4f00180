package history

import (
	"context"
	"slices"
	"time"

	"sallyport/gateway/execution"
	"sallyport/sandbox"
)

// User is what a principal has done, by the executions on record.
type User struct {
	Principal string
	// Programs is the number of its executions, Failed of those that did not end well, Calls of the tool calls that they made.
	Programs, Failed, Calls int
	// Last is when it started its last execution, Client the client of that one.
	Last   time.Time
	Client string
}

// Users returns the principals with executions on record, the most recent one first; to a caller that is no operator only itself. Errors
// are *tool.Error.
func (h *History) Users(ctx context.Context) ([]User, error) {
	all, err := h.briefsOf(ctx)
	if err != nil {
		return nil, err
	}
	var users []User
	places := map[string]int{}
	for _, b := range all {
		at, known := places[b.Principal]
		if !known {
			at = len(users)
			places[b.Principal], users = at, append(users, User{Principal: b.Principal})
		}
		users[at].add(b)
	}
	slices.SortStableFunc(users, func(a, b User) int { return b.Last.Compare(a.Last) })
	return users, nil
}

// add adds an execution, which started after those before it.
func (u *User) add(b Brief) {
	u.Programs++
	u.Calls += b.Made
	if b.Status != sandbox.OK && b.Status != execution.Held {
		u.Failed++
	}
	u.Last, u.Client = b.Started, b.Client
}
