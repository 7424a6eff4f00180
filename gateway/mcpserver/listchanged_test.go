package mcpserver_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect connects a client that wants to hear of changes. Its stream for them
// is there once listening is closed.
func (d *direct) connect(client *mcp.Client, version string) (session *mcp.ClientSession, listening <-chan struct{}) {
	d.t.Helper()
	e := &streamWatcher{hears: make(chan struct{})}
	session, err := client.Connect(d.t.Context(), &mcp.StreamableClientTransport{Endpoint: d.url, HTTPClient: &http.Client{Transport: e}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = session.Close() })
	return session, e.hears
}

// streamWatcher notices that the stream of changes begins: the answer to a GET, or what a
// modern server says first.
type streamWatcher struct {
	once  sync.Once
	hears chan struct{}
}

// RoundTrip implements [http.RoundTripper].
func (e *streamWatcher) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodGet {
		e.once.Do(func() { close(e.hears) })
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ear: e}
	return resp, nil
}

type watchedBody struct {
	io.ReadCloser
	ear *streamWatcher
	all []byte
}

// Read implements [io.Reader].
func (h *watchedBody) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if h.all = append(h.all, p[:n]...); bytes.Contains(h.all, []byte("subscriptions/acknowledged")) {
		h.ear.once.Do(func() { close(h.ear.hears) })
	}
	return n, err
}

// TestChangesAreTold to clients of both kinds.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	d := newDirect(t, true, upstream("meter", m.url, ""))
	for i, version := range []string{"2025-11-25", "2026-07-28"} {
		told := make(chan struct{}, 10)
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { told <- struct{}{} },
		})
		session, listening := d.connect(client, version)
		names := func() (all string) {
			for def, err := range session.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				all += def.Name + " "
			}
			return all
		}
		before := names()
		<-listening
		m.tool(fmt.Sprint("tock", i))
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatalf("%s: nobody told", version)
		}
		wait(t, "the new tool is listed", func() bool {
			return names() == strings.Replace(before, "tick ", "tick tock"+fmt.Sprint(i)+" ", 1) || len(names()) > len(before)
		})
		_ = session.Close()
	}
}
