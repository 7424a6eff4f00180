package authserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Browser acts as a user with a browser: it opens the page, follows redirects, including the client's, and submits
// the form.
type Browser struct {
	// User is who logs in; "" is ada.
	User string
	// Deny denies the request.
	Deny bool
	// Tamper may change the redirect back to the client before it is followed; nil follows it as it is.
	Tamper func(back *url.URL)
	// Stop leaves the redirect unfollowed; Back then has it.
	Stop bool
	// Transport sends the requests; nil is that of net/http.
	Transport http.RoundTripper
	// Back is where the server redirected to at the end.
	Back string
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// Open opens a page and continues until the client has its answer. An error page
// of the server is an error that holds its text.
func (b *Browser) Open(ctx context.Context, page string) error {
	b.Back = ""
	response, err := b.do(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	response.Body.Close()
	if err != nil {
		return err
	}
	found := hiddenID.FindSubmatch(body)
	if b.Back != "" {
		return nil // the server redirected to the client without a form
	}
	if found == nil {
		return fmt.Errorf("open %s: %s: %.300s", response.Request.URL.Path, response.Status, body)
	}
	form := url.Values{"id": {string(found[1])}, "answer": {"allow"}}
	if b.User != "" {
		form.Set("user", b.User)
	}
	if b.Deny {
		form.Set("answer", "deny")
	}
	at := response.Request.URL.ResolveReference(&url.URL{Path: "/login"})
	if response, err = b.do(ctx, http.MethodPost, at.String(), form); err != nil {
		return err
	}
	defer response.Body.Close()
	if b.Back == "" {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return fmt.Errorf("log in: %s: %s", response.Status, text)
	}
	return nil
}

func (b *Browser) do(ctx context.Context, method, page string, form url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, page, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	issuer := request.URL.Host
	client := &http.Client{Transport: b.Transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Host == issuer {
			return nil
		}
		if b.Tamper != nil {
			b.Tamper(next.URL)
		}
		b.Back = next.URL.String()
		if b.Stop {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return client.Do(request)
}
