package signin

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"sallyport/internal/seal"
)

// AttemptLife is how long a person may take to sign in.
const AttemptLife = 10 * time.Minute

// attempt is a sign-in that has begun. The browser holds it, sealed, so that attempts take no memory of the gateway.
type attempt struct {
	State, Nonce, Verifier, Next string
	Ends                         time.Time
}

// sealer encrypts attempts.
type sealer struct{ *seal.Key }

// newSealer returns a sealer with the key that gateways share, or for nil with one of this process.
func newSealer(shared *seal.Key) (sealer, error) {
	if shared != nil {
		return sealer{shared}, nil
	}
	own := make([]byte, seal.Size)
	_, _ = rand.Read(own) // it never fails
	key, err := seal.New(own)
	return sealer{key}, err
}

// attemptPlace is what attempts are sealed for.
const attemptPlace = "sign-in"

func (s sealer) seal(a attempt) (string, error) {
	data, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("seal sign-in: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.Seal(data, attemptPlace)), nil
}

// open returns a sealed attempt that has not expired.
func (s sealer) open(text string) (a attempt, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return a, false
	}
	if data, err = s.Open(data, attemptPlace); err != nil {
		return a, false
	}
	return a, json.Unmarshal(data, &a) == nil && time.Now().Before(a.Ends) && a.State != ""
}

const (
	// maxAnswer bounds a response of the provider, in bytes.
	maxAnswer = 1 << 20
	// answerTimeout bounds a request to the provider.
	answerTimeout = 10 * time.Second
)

// newClient returns the HTTP client for a provider, which follows no redirect.
func newClient() *http.Client {
	return &http.Client{
		Timeout: answerTimeout, Transport: &boundedTransport{rate.NewLimiter(20, 50)},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the provider redirects where it must not")
		},
	}
}

// boundedTransport bounds the rate of requests to the provider, which sign-ins of anyone cause, and the size of responses.
type boundedTransport struct{ limit *rate.Limiter }

// RoundTrip implements [http.RoundTripper].
func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.limit.Allow() {
		return nil, errors.New("too many requests to the provider")
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}
