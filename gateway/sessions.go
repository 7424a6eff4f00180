package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"sallyport/gateway/typecheck"
	"sallyport/internal/plain"
	"sallyport/internal/tool"
	"sallyport/sandbox"
)

// sessionName is what a client may call a session.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// sessionKey names a session for the sandboxes, "" for none. It holds who asks (the principal and the
// client's own session), so that the same name from somebody else is another session, and the workspace:
// what a program left in its sandbox that is not kept (links, or what was too much) must not get into another one.
func sessionKey(ctx context.Context, name, workspace string) (string, error) {
	if name == "" {
		return "", nil
	}
	if !sessionName.MatchString(name) {
		return "", &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("session cannot be %q", plain.Line(name, 80)), Hint: `use 1 to 64 letters, digits and ".-_"`}
	}
	who, err := json.Marshal([]string{tool.Principal(ctx), tool.Session(ctx), name, workspace}) // no two of them look alike
	if err != nil {
		return "", fmt.Errorf("name session: %w", err)
	}
	sum := sha256.Sum256(who)
	return hex.EncodeToString(sum[:16]), nil
}

// maxSessions is how many sessions are remembered by their keys.
const maxSessions = 4096

// sessions remembers which sessions were used: a program of one that has ended
// since may count on what is gone.
type sessions struct {
	mu   sync.Mutex
	used []usedSession // the latest last
}

// usedSession is what programs share a memory in.
type usedSession struct {
	session, environment string
	interpreter          sandbox.Interpreter
}

// use reports whether the session of a job was used before, and notes that it is now.
func (s *sessions) use(job sandbox.Job) (known bool) {
	if job.Session == "" {
		return false
	}
	now := usedSession{job.Session, job.Environment, job.Interpreter}
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

// undefined is what the checkers say of a name that a program before may have made.
var undefined = regexp.MustCompile(`^Cannot find name |^"[^"]*" is (not defined|unbound|possibly unbound)`)

// withoutUndefined leaves out what a checker cannot know that sees one program of a session only.
func withoutUndefined(list []typecheck.Warning) []typecheck.Warning {
	return slices.DeleteFunc(slices.Clone(list), func(w typecheck.Warning) bool { return undefined.MatchString(w.Message) })
}
