package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/httpapi"
	"sallyport/internal/config"
	"sallyport/internal/control"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// operatorName is what stands on record for who answers at the control socket.
const operatorName = "cli"

// asOperator serves whoever may reach a socket or the records themselves.
func asOperator(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(tool.WithOperator(r.Context(), operatorName)))
	})
}

// openControl lets the owner of the data directory ask the gateway, until stop is called. Where that cannot be,
// the log says why, and all else works.
func (a *app) openControl(log *slog.Logger, api http.Handler) (stop func()) {
	dir := a.dataDir()
	if dir == "" {
		return func() {}
	}
	listener, err := control.Listen(dir, &control.Options{Logger: log})
	if err != nil {
		if !errors.Is(err, control.ErrUnsupported) {
			log.Warn("no control socket: sallyport approvals does not reach this process", "error", err)
		}
		return func() {}
	}
	web := &http.Server{Handler: asOperator(api), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	var work sync.WaitGroup
	work.Go(func() { _ = web.Serve(listener) })
	return func() {
		grace, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = web.Shutdown(grace)
		_ = web.Close()
		work.Wait()
	}
}

// controls are the gateways of one data directory.
type controls struct{ all []*http.Client }

// withControls lets use ask the gateways that run on the data directory, and where none of them has the records
// that are kept there, those too. Meanwhile no gateway can start that wants them.
func (a *app) withControls(ctx context.Context, use func(ctx context.Context, c *controls) error) (err error) {
	return a.withGateways(ctx, func(ctx context.Context, c *controls) (err error) {
		dir := a.dataDir()
		if _, err := os.Stat(filepath.Join(dir, recordsFolder)); err != nil || c.kept(ctx) {
			return use(ctx, c)
		}
		own, closing, err := a.openKept(dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closing()) }()
		c.all = append(c.all, own)
		return use(ctx, c)
	})
}

// withGateways lets use ask the gateways that run on the data directory.
func (a *app) withGateways(ctx context.Context, use func(ctx context.Context, c *controls) error) error {
	dir := a.dataDir()
	if dir == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "there is no data directory", Hint: "say which with --data DIR, or set HOME"}
	}
	c := &controls{}
	for _, path := range control.Sockets(dir) {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return control.Dial(ctx, path) }}
		defer transport.CloseIdleConnections()
		c.all = append(c.all, &http.Client{Transport: transport, Timeout: time.Minute})
	}
	return use(ctx, c)
}

// kept reports whether one of the gateways has the records that are kept.
func (c *controls) kept(ctx context.Context) bool {
	return slices.ContainsFunc(c.all, func(gate *http.Client) bool {
		var health httpapi.Health
		return ask(ctx, gate, http.MethodGet, "/health", nil, &health) == nil && health.Kept
	})
}

// openKept opens what is kept while no gateway has it. It has no upstreams and runs no programs.
func (a *app) openKept(dir string) (own *http.Client, closing func() error, err error) {
	log := a.logger(slog.LevelError)
	records, err := store.Open(filepath.Join(dir, recordsFolder), &store.Options{Logger: log, Patience: sharePatience})
	if used, ok := errors.AsType[*store.InUseError](err); ok {
		return nil, nil, unanswering(used, dir)
	}
	if err != nil {
		return nil, nil, err
	}
	cfg, err := a.load()
	if err != nil { // what is kept can be seen without settings
		cfg = new(config.Config)
		*cfg = config.Default()
	}
	cfg.Upstreams, cfg.Environments = nil, nil
	go sweep(log)
	g, err := gateway.Open(cfg, &gateway.Options{Logger: log, Version: buildVersion(), DataDir: dir, Records: records, NoPool: true})
	if err != nil {
		return nil, nil, errors.Join(err, records.Close())
	}
	api := httpapi.New(g.Verbs(), &httpapi.Options{Version: buildVersion(), Kept: true, Logger: log})
	return &http.Client{Transport: within{asOperator(api)}}, func() error { return errors.Join(g.Close(), records.Close()) }, nil
}

// unanswering says that a process has the records and is no gateway that answers.
func unanswering(used *store.InUseError, dir string) error {
	return &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("process %d has the data directory %s and does not answer", used.PID, dir), Err: used,
		Hint: "is it of another user, or of an older version?"}
}

// within answers requests in this process.
type within struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := &inMemory{status: http.StatusOK, header: http.Header{}}
	w.ServeHTTP(answer, r)
	return &http.Response{StatusCode: answer.status, Status: http.StatusText(answer.status), Header: answer.header, Body: io.NopCloser(&answer.body), Request: r}, nil
}

// inMemory is an answer that was not sent.
type inMemory struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (m *inMemory) Header() http.Header            { return m.header }
func (m *inMemory) WriteHeader(status int)         { m.status = status }
func (m *inMemory) Write(data []byte) (int, error) { return m.body.Write(data) }

// everywhere asks every gateway for the same, and hands each answer to use.
func everywhere[T any](ctx context.Context, c *controls, path string, use func(T)) error {
	for _, gate := range c.all {
		var got T
		if err := ask(ctx, gate, http.MethodGet, path, nil, &got); err != nil {
			return err
		}
		use(got)
	}
	return nil
}

// find asks one gateway after the other, until one knows what the path names. A body makes it a POST.
func (c *controls) find(ctx context.Context, path string, body, into any) (err error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	for _, gate := range c.all {
		err = ask(ctx, gate, method, path, body, into)
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.NotFound {
			return err
		}
	}
	return err
}

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 20

// ask makes one request. What the gateway refuses is the *tool.Error that it had.
func ask(ctx context.Context, gate *http.Client, method, path string, body, into any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(httpapi.TriggerHeader, "cli")
	resp, err := gate.Do(req)
	if err != nil {
		return fmt.Errorf("ask gateway: %w", err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask gateway: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var problem httpapi.Problem
		if err := json.Unmarshal(got, &problem); err != nil {
			return fmt.Errorf("ask gateway: %s", resp.Status)
		}
		return &tool.Error{Kind: problem.Kind, Message: problem.Detail, Hint: problem.Hint}
	}
	return json.Unmarshal(got, into)
}
