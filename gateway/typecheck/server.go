package typecheck

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/sanitize"
)

// server is one running language server. One goroutine calls it at a time. After an error it is unusable.
type server struct {
	process  io.ReadWriteCloser
	dialect  dialect
	answers  chan message
	reading  sync.WaitGroup
	ended    chan struct{} // closed when nothing more will be read
	err      error         // the reason; read it after ended
	received atomic.Int64  // bytes since the last call
	writing  sync.Mutex
	id       int64
	version  int
}

// message is a JSON-RPC message, in both directions.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *responseError  `json:"error,omitempty"`
}

type responseError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// startServer initializes a server that has just been started.
func startServer(ctx context.Context, process io.ReadWriteCloser, d dialect) (*server, error) {
	s := &server{process: process, dialect: d, answers: make(chan message, 1), ended: make(chan struct{})}
	s.reading.Go(s.read)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := s.call(ctx, "initialize", map[string]any{
		"processId": nil, "rootUri": "file://" + Dir,
		"workspaceFolders": []any{map[string]any{"uri": "file://" + Dir, "name": "check"}},
		"capabilities": map[string]any{
			"textDocument": map[string]any{"diagnostic": map[string]any{"dynamicRegistration": true}, "publishDiagnostics": map[string]any{}},
			"workspace":    map[string]any{"configuration": true, "didChangeWatchedFiles": map[string]any{"dynamicRegistration": true}},
		},
	}, nil)
	if err == nil {
		err = s.notify(ctx, "initialized", map[string]any{})
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("start type checker: %w", err)
	}
	return s, nil
}

func (s *server) close() {
	_ = s.process.Close()
	s.reading.Wait()
}

func (s *server) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// exitError returns why the server has ended.
func (s *server) exitError() error { return fmt.Errorf("the server ended: %w", s.err) }

// read handles the server's messages until it ends: it passes responses to call, and answers requests.
func (s *server) read() {
	defer close(s.ended)
	r := bufio.NewReaderSize(s.process, maxHeader)
	for {
		data, err := readFrame(r)
		if err == nil && s.received.Add(int64(len(data))+1) > maxReceived {
			err = errFlood
		}
		if err == nil {
			err = s.handle(data)
		}
		if err != nil {
			s.err = err
			_ = s.process.Close()
			return
		}
	}
}

func (s *server) handle(data []byte) error {
	var m message
	var params json.RawMessage
	m.Params = &params
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	switch {
	case m.Method != "" && len(m.ID) > 0:
		return s.send(message{ID: m.ID, Result: reply(m.Method, params)})
	case m.Method != "":
		return nil // notifications are progress and log
	}
	select { // drop an unexpected response
	case <-s.answers:
	default:
	}
	s.answers <- m
	return nil
}

// reply returns the result for a server's own request: null for every setting, so that its files apply.
func reply(method string, params json.RawMessage) json.RawMessage {
	var nulls []string
	if method == "workspace/configuration" {
		err := elements(params, func(dec *json.Decoder) (bool, error) {
			nulls = append(nulls, "null")
			var item json.RawMessage
			return len(nulls) < maxRequests, dec.Decode(&item)
		})
		if err == nil && len(nulls) > 0 {
			return json.RawMessage("[" + strings.Join(nulls, ",") + "]")
		}
	}
	return json.RawMessage("null")
}

func (s *server) send(m message) error {
	m.JSONRPC = "2.0"
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write message: %w", err)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err = fmt.Fprintf(s.process, "Content-Length: %d\r\n\r\n%s", len(data), data)
	return err
}

func (s *server) notify(ctx context.Context, method string, params any) error {
	defer context.AfterFunc(ctx, func() { _ = s.process.Close() })()
	return s.send(message{Method: method, Params: params})
}

// call sends a request and waits for the response. If ctx ends, it stops the server.
func (s *server) call(ctx context.Context, method string, params, result any) error {
	defer context.AfterFunc(ctx, func() { _ = s.process.Close() })()
	s.received.Store(0)
	s.id++
	id := json.RawMessage(fmt.Sprint(s.id))
	if err := s.send(message{ID: id, Method: method, Params: params}); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return s.exitError()
		case m := <-s.answers:
			if !bytes.Equal(m.ID, id) {
				continue
			}
			if err := decode(m, result); err != nil {
				return fmt.Errorf("%s: %w", method, err)
			}
			return nil
		}
	}
}

func decode(m message, result any) error {
	switch {
	case m.Error != nil:
		return errors.New(sanitize.Line(m.Error.Message, 200))
	case result == nil:
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// diagnostic is one finding of a server.
type diagnostic struct {
	Range struct {
		Start, End position
	}
	Severity int
	Code     json.RawMessage // a text or a number
	Message  string
}

type position struct{ Line, Character int }

// check checks one program: it opens the program as a file in the server, and closes it afterwards.
func (s *server) check(ctx context.Context, code string, limit time.Duration) ([]diagnostic, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.version++
	document := map[string]any{"uri": s.dialect.uri()}
	err := s.notify(ctx, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": s.dialect.uri(), "languageId": s.dialect.language, "version": s.version, "text": code,
	}})
	if err != nil {
		return nil, err
	}
	var report json.RawMessage
	if err := s.call(ctx, "textDocument/diagnostic", map[string]any{"textDocument": document}, &report); err != nil {
		return nil, err
	}
	found, err := findings(report)
	if err != nil {
		return nil, err
	}
	return found, s.notify(ctx, "textDocument/didClose", map[string]any{"textDocument": document})
}

// findings decodes the first findings, and skips the rest: decoded elements can take a hundred times the memory of their
// JSON.
func findings(report []byte) ([]diagnostic, error) {
	var found []diagnostic
	err := elements(report, func(dec *json.Decoder) (more bool, err error) {
		var d diagnostic
		if err := dec.Decode(&d); err != nil {
			return false, err
		}
		d.Message = strings.Clone(d.Message[:min(len(d.Message), maxFinding)]) // the rest is not kept alive
		found = append(found, d)
		return len(found) < maxFindings, nil
	})
	return found, err
}

// elements calls read for each element of the list "items" of an object, until it returns false.
func elements(object []byte, read func(*json.Decoder) (more bool, err error)) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if err := seek(dec, "items"); err != nil {
		return err
	}
	switch start, _ := dec.Token(); start { // the whole is known to be JSON
	case nil, json.Delim('}'):
		return nil // no items
	case json.Delim('['):
	default:
		return errors.New("items is not a list")
	}
	for more := true; more && dec.More(); {
		var err error
		if more, err = read(dec); err != nil {
			return err
		}
	}
	return nil
}

// seek reads an object up to the value of a member, or to its end. It discards the
// members before.
func seek(dec *json.Decoder, member string) error {
	if start, err := dec.Token(); err != nil || start != json.Delim('{') && start != nil {
		return errors.New("answer must be a JSON object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil || name == member {
			return err
		}
		var other json.RawMessage
		if err := dec.Decode(&other); err != nil {
			return err
		}
	}
	return nil
}

// sendChanges notifies the server of changed files, and reports whether it restarts its analysis.
func (s *server) sendChanges(ctx context.Context, changes []Change) (afresh bool) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return s.dialect.notifyChanges(func(method string, params any) { _ = s.notify(ctx, method, params) }, changes)
}
