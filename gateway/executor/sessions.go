package executor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"sallyport/gateway/typecheck"
	"sallyport/internal/sanitize"
	"sallyport/internal/store"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// sessionName is what a client may call a session.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// sessionKey returns the session's key for the sandboxes, "" for no session. It depends on the caller (principal,
// client session and endpoint), so that the same name from another caller is another session, and on the workspace: files
// left in a sandbox that are not saved (links, or too large ones) must not get into another workspace.
func sessionKey(ctx context.Context, name, workspace string) (string, error) {
	if name == "" {
		return "", nil
	}
	if !sessionName.MatchString(name) {
		return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("session cannot be %q", sanitize.Line(name, 80)), Hint: `use 1 to 64 letters, digits and ".-_"`}
	}
	parts := []string{tool.Principal(ctx), tool.Session(ctx), name, workspace}
	if at := tool.Endpoint(ctx); at != "" {
		parts = append(parts, at)
	}
	who, err := json.Marshal(parts) // unambiguous
	if err != nil {
		return "", fmt.Errorf("name session: %w", err)
	}
	sum := sha256.Sum256(who)
	return hex.EncodeToString(sum[:16]), nil
}

// maxSessions is how many sessions are remembered by their keys.
const maxSessions = 4096

// sessions records which sessions were used, in this run or, with a store, in an
// earlier one: the programs of an ended session may rely on variables that are lost.
type sessions struct {
	records *store.Bucket
	breaker *store.Breaker
	mu      sync.Mutex
	used    []usedSession // in this run, the latest last
}

// openSessions uses a store; nil keeps the records in memory.
func openSessions(in *store.Store) (*sessions, error) {
	if in == nil {
		return &sessions{}, nil
	}
	kept, err := in.Bucket("sessions", store.Limits{Records: maxSessions, Age: 30 * 24 * time.Hour, Bytes: 16 << 20})
	return &sessions{records: kept, breaker: in.Breaker()}, err
}

// usedSession identifies an interpreter whose variables programs share.
type usedSession struct {
	session, environment string
	interpreter          sandbox.Interpreter
}

// use reports whether the session of a job was used before, and records that it is used now.
// After an error, only the sessions of this run are known.
func (s *sessions) use(ctx context.Context, job sandbox.Job) (known bool, err error) {
	if job.Session == "" {
		return false, nil
	}
	now := usedSession{job.Session, job.Environment, job.Interpreter}
	if s.useLocal(now) {
		return true, nil
	}
	if s.records == nil {
		return false, nil
	}
	err = s.breaker.Do(ctx, func(ctx context.Context) error {
		_, err := s.records.Create(ctx, store.Key{now.session, now.environment, string(now.interpreter)}, nil)
		return err
	})
	if errors.Is(err, store.ErrConflict) {
		return true, nil
	}
	return false, err
}

// usedBefore reports whether the session of a job was used before, and logs errors.
func (ex *Executor) usedBefore(ctx context.Context, job sandbox.Job) bool {
	known, err := ex.sessions.use(ctx, job)
	if err != nil {
		ex.opts.Logger.ErrorContext(ctx, "session is not recorded", "execution", job.ID, "error", err)
	}
	return known
}

// useLocal is use for the sessions of this run.
func (s *sessions) useLocal(now usedSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.used, now)
	if at >= 0 {
		s.used = slices.Delete(s.used, at, at+1)
	}
	if len(s.used) == maxSessions {
		s.used = slices.Delete(s.used, 0, 1)
	}
	s.used = append(s.used, now)
	return at >= 0
}

// undefined matches warnings about names that an earlier program of the session may have defined.
var undefined = regexp.MustCompile(`^Cannot find name |^"[^"]*" is (not defined|unbound|possibly unbound)`)

// withoutUndefined removes warnings about undefined names: a checker sees only one program of a session.
func withoutUndefined(list []typecheck.Warning) []typecheck.Warning {
	return slices.DeleteFunc(slices.Clone(list), func(w typecheck.Warning) bool { return undefined.MatchString(w.Message) })
}
