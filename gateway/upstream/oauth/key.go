package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"
)

// Authorizer is a login that authorizes the requests of its principal: a [Handler] or a [Key].
type Authorizer interface {
	auth.OAuthHandler
	Status() (Status, error)
	// Logout deletes the tokens or the key, after it has revoked them if that is possible.
	Logout(ctx context.Context) (was, revoked bool, err error)
}

// Key is an API key for one upstream, which a person enters. It is stored as tokens are. It is safe for concurrent use, and several
// processes may have one for the same upstream.
type Key struct {
	h      *Handler // its store and lock
	header string
}

// maxKey bounds a key, in bytes: servers limit the header.
const maxKey = 4 << 10

// errNoRetry has no text of its own: that of the response says why it was refused.
var errNoRetry = errors.New("")

var _ auth.OAuthHandler = (*Key)(nil)

// authorization is the header that has a scheme before the key.
const authorization = "Authorization"

// NewKey returns the key of an upstream, for requests with that header; "" is Authorization, with the scheme Bearer unless the key
// has another before it. It reads nothing.
func NewKey(settings Settings, header string, opts *Options) *Key {
	k := &Key{h: New(settings, opts), header: authorization}
	k.h.store.key = true
	if header != "" {
		k.header = http.CanonicalHeaderKey(header)
	}
	return k
}

// Save stores a key in place of the one before. The error says what is wrong with it, without showing it.
func (k *Key) Save(ctx context.Context, key string) error {
	key = strings.TrimSpace(key)
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) > maxKey:
		return errors.New("the key has more than 4096 characters")
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("a key has letters, digits and punctuation of ASCII only, in one line")
	}
	release, err := k.h.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	now := k.h.opts.Now()
	return k.h.store.write(&record{Key: true, Since: now, Renewed: now, Secret: secrets{Access: key}})
}

// Status returns the status of the key. A key that the upstream has refused has ended.
func (k *Key) Status() (Status, error) { return k.h.Status() }

// Logout deletes the key. It cannot be revoked here.
func (k *Key) Logout(ctx context.Context) (was, revoked bool, err error) { return k.h.Logout(ctx) }

// Remedy returns what to do when the upstream refuses a new key.
func (k *Key) Remedy() string { return k.h.Remedy() }

// Header returns the header of a request with a key.
func (k *Key) Header(key string) (name, value string) {
	if k.header == authorization && !strings.Contains(key, " ") {
		return k.header, "Bearer " + key
	}
	return k.header, key
}

// TokenSource returns the source of the key. Without one the error is a [LoginError]: nothing is sent.
func (k *Key) TokenSource(context.Context) (oauth2.TokenSource, error) {
	r, err := k.h.store.readCached()
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, k.h.needLogin("it needs an API key")
	case r.Ended != "":
		return nil, k.h.needLogin(r.Ended)
	}
	return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: r.Secret.Access}), nil
}

// Secrets returns what must not be shown besides the key: the key without its scheme.
func (k *Key) Secrets() []string {
	r, err := k.h.store.readCached()
	if err != nil || r == nil {
		return nil
	}
	if _, bare, ok := strings.Cut(r.Secret.Access, " "); ok {
		return []string{strings.TrimSpace(bare)}
	}
	return nil
}

// Authorize ends the key of a refused request. It returns nil if there is a newer one, with which the request is sent again, else a
// [LoginError].
func (k *Key) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRecord)) // for the connection
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return errNoRetry
	}
	release, err := k.h.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	r, err := k.h.store.read()
	switch {
	case err != nil:
		return err
	case r == nil:
		return k.h.needLogin("it needs an API key")
	}
	if name, value := k.Header(r.Secret.Access); r.Ended == "" && req.Header.Get(name) != value {
		return nil
	}
	r.end("it refused the API key")
	return errors.Join(k.h.needLogin(r.Ended), k.h.store.write(r))
}
