package connections

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/tool"
)

// Resumer is a [Beginner] that continues logins that it has begun in another process.
type Resumer interface {
	Resume(data []byte) (*oauth.Authorization, error)
}

// sharedAttempt is a login that has begun, as all gateways of a store have it.
type sharedAttempt struct {
	Upstream  string    `json:"upstream"`
	Principal string    `json:"principal"`
	Ends      time.Time `json:"ends"`
	Login     []byte    `json:"login"`
	// Taken says that it is being finished.
	Taken bool `json:"taken,omitempty"`
}

// attemptID returns the key of the record of a login.
func attemptID(state string) string {
	sum := sha256.Sum256([]byte(state))
	return hex.EncodeToString(sum[:])
}

// share makes a login that has begun here known to the other gateways.
func (c *Connections) share(ctx context.Context, a attempt) error {
	if c.opts.Attempts == nil {
		return nil
	}
	login, err := a.authorization.Encode()
	if err != nil {
		return tool.AsError(err)
	}
	return c.putShared(ctx, a.authorization.State, sharedAttempt{Upstream: a.upstream, Principal: a.principal, Ends: a.ends, Login: login}, 0)
}

// errTaken is the error for a login that another request finishes.
var errTaken = &tool.Error{Kind: tool.Invalid, Message: "this login is finished already"}

func (c *Connections) putShared(ctx context.Context, state string, s sharedAttempt, revision uint64) error {
	data, err := json.Marshal(s)
	if err != nil {
		return tool.AsError(err)
	}
	ok, err := c.opts.Attempts.Put(ctx, data, revision, attemptID(state))
	if err != nil {
		return unavailable(err)
	}
	if !ok {
		return errTaken
	}
	return nil
}

func unavailable(err error) error {
	return &tool.Error{Kind: tool.Busy, Retryable: true, Message: "logins in the store cannot be used: " + err.Error(), Err: err}
}

// findShared returns a login of the caller that has begun at any gateway.
func (c *Connections) findShared(ctx context.Context, state string) (a attempt, s sharedAttempt, revision uint64, err error) {
	data, revision, err := c.opts.Attempts.Get(ctx, true, attemptID(state))
	if err != nil {
		return a, s, 0, unavailable(err)
	}
	if revision == 0 {
		return a, s, 0, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return a, s, 0, unavailable(err)
	}
	a = attempt{key: key{s.Upstream, s.Principal}, ends: s.Ends}
	if s.Taken || !a.isOf(ctx) {
		return a, s, 0, nil
	}
	up, k, err := c.find(ctx, s.Upstream)
	if err != nil {
		return a, s, 0, err
	}
	login, ok := c.opts.Login(up, k.principal).(Resumer)
	if !ok || k != a.key { // the settings have changed
		return a, s, 0, nil
	}
	if a.authorization, err = login.Resume(s.Login); err != nil {
		return a, s, 0, tool.AsError(err)
	}
	return a, s, revision, nil
}

// takeShared takes a login of the caller that has begun at any gateway, so that no other request can.
func (c *Connections) takeShared(ctx context.Context, state string) (attempt, bool, error) {
	a, s, revision, err := c.findShared(ctx, state)
	if err != nil || revision == 0 {
		return a, false, err
	}
	s.Taken, s.Login = true, nil
	return a, true, c.putShared(ctx, state, s, revision) // it expires
}
