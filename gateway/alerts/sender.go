package alerts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/desktop"
	"sallyport/internal/redact"
	"sallyport/internal/retry"
	"sallyport/internal/sanitize"
	"sallyport/internal/webhook"
)

const (
	// sendTimeout bounds one attempt, maxAnswer the part of an answer that is read, in bytes.
	sendTimeout = 10 * time.Second
	maxAnswer   = 4 << 10
)

// Sender sends messages.
type Sender struct {
	client *http.Client
	notify func(ctx context.Context, title, text string) error
}

// NewSender returns a sender. Nil arguments are replaced by what really sends.
func NewSender(transport http.RoundTripper, notify func(ctx context.Context, title, text string) error) *Sender {
	if notify == nil {
		notify = desktop.Notify
	}
	return &Sender{notify: notify, client: &http.Client{
		Transport: transport, Timeout: sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the URL may be a secret, and has the signature
	}}
}

// failure is an error of an attempt. After is the delay that the receiver asks for, 0 for none, or retry.Never.
type failure struct {
	error

	after time.Duration
}

// Send sends a message once, and returns what the receiver answered, in a few words. Errors have no secrets.
func (s *Sender) Send(ctx context.Context, set config.Alert, m Message) (answer string, err error) {
	switch {
	case set.Problem != "":
		return "", failure{errors.New(set.Problem), retry.Never}
	case set.Desktop:
		title, text := m.desktopText()
		if err := s.notify(ctx, title, text); err != nil {
			return "", failure{err, retry.Never}
		}
		return "shown", nil
	}
	return s.post(ctx, set, m)
}

func (s *Sender) post(ctx context.Context, set config.Alert, m Message) (string, error) {
	r, err := request(ctx, set, m)
	if err != nil {
		return "", failure{errors.New("the URL or the message is not valid"), retry.Never}
	}
	response, err := s.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok { // it quotes the URL, which may be a secret
			err = e.Err
		}
		return "", failure{errors.New(mask(set).Text(sanitize.Line(err.Error(), 300))), 0}
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // for people only
	said := fmt.Sprintf("HTTP %d", response.StatusCode)
	if text := sanitize.Line(mask(set).Text(string(body)), 200); text != "" {
		said += ": " + text
	}
	if response.StatusCode >= 200 && response.StatusCode <= 299 {
		return said, nil
	}
	return "", failure{errors.New(said), retry.Delay(response)}
}

func mask(set config.Alert) *redact.Mask {
	return (&redact.Book{}).For("", set.SecretValues()...)
}

// request returns the request of a message, signed if the receiver has a secret.
func request(ctx context.Context, set config.Alert, m Message) (*http.Request, error) {
	body, err := m.body(set.Format)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, string(set.URL), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Sallyport")
	if set.Format != config.AlertSlack {
		webhook.Sign(r.Header, string(set.Secret), m.ID, time.Now(), body)
	}
	return r, nil
}
