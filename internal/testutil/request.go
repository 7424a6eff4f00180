package testutil

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Answer is the response to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Closing means that the server closes the connection.
	Closing bool
}

// Request sends one request, as JSON unless a header says otherwise; headers are "Name: value", including Host.
func Request(tb testing.TB, method, to, body string, headers ...string) Answer {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, to, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return Answer{resp.StatusCode, resp.Header, data, resp.Close}
}
