package upstream

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	listenMin = time.Second
	listenMax = 30 * time.Second
)

// listener holds the stream on which an HTTP server of a revision before
// 2026-07-28 says what nobody asked for, above all that its tools changed. The
// SDK would end the session when a proxy has cut an idle stream a few times; to
// us a stream that ends is only a reason to open the next one.
type listener struct {
	url    string
	client *http.Client
	wire   *wire
	last   string // id of the last event
}

// run listens until ctx ends or the server does not offer the stream.
func (l *listener) run(ctx context.Context) {
	wait := listenMin
	for {
		begin := time.Now()
		if !l.once(ctx) {
			return
		}
		if wait = min(2*wait, listenMax); time.Since(begin) > listenMax {
			wait = listenMin
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// once opens the stream, reads it to its end and reports whether it is worth another try.
func (l *listener) once(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := l.wire.SessionID(); id != "" {
		req.Header.Set(sessionHeader, id)
	}
	if l.last != "" {
		req.Header.Set("Last-Event-ID", l.last)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return ctx.Err() == nil
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return true
	}
	if resp.StatusCode != http.StatusOK || bodyLimit(resp) >= 0 {
		return false // 405, or a page: it is not offered
	}
	readEvents(resp.Body, l.take)
	return ctx.Err() == nil
}

// take hands a request or notification on. Answers come with the requests, not here.
func (l *listener) take(id, data string) {
	if id != "" {
		l.last = id
	}
	if msg, ok := parseMessage([]byte(data)).(*jsonrpc.Request); ok {
		l.wire.accept(msg)
	}
}

// readEvents reads server-sent events until r ends, or one is longer than a message may be.
func readEvents(r io.Reader, take func(id, data string)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxFrame)
	var id string
	var data []string
	size := 0
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			take(id, strings.Join(data, "\n"))
			id, data, size = "", nil, 0
		case field == "id":
			id = value
		case field == "data":
			if size += len(value) + 1; size > maxFrame {
				return
			}
			data = append(data, value)
		}
	}
}
