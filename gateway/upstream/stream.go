package upstream

import (
	"bufio"
	"context"
	"errors"
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
	most   int    // bytes of one event
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
	l.wire.streams()
	if needsLogin(err) {
		l.wire.fail(err)
	}
	if err != nil {
		return ctx.Err() == nil
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 500 {
		return true
	}
	if resp.StatusCode != http.StatusOK || !isStream(resp) {
		return false // 405, or a page: it is not offered
	}
	_ = readEvents(resp.Body, l.most, l.take) // its end is its end
	return ctx.Err() == nil
}

// take hands a request or notification on. Answers come with the requests, not here.
func (l *listener) take(e event) {
	if e.id != "" {
		l.last = e.id
	}
	if msg, ok := parseMessage([]byte(e.data)).(*jsonrpc.Request); ok {
		l.wire.accept(msg)
	}
}

// event is one server-sent event; name is "" for a plain message.
type event struct{ name, id, data string }

// readEvents reads server-sent events until r ends or one is longer than most bytes.
func readEvents(r io.Reader, most int, take func(event)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, most)
	var name, id string
	var data []string
	size := 0
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		if field != "" || line == "" { // a comment is not kept
			size += len(line) + 1
		}
		if size > most {
			return tooLong(most)
		}
		switch {
		case line == "":
			take(event{name, id, strings.Join(data, "\n")})
			name, data, size = "", nil, 0
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return tooLong(most)
	}
	return lines.Err()
}
