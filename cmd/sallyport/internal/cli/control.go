package cli

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
	"time"

	"sallyport/gateway"
	"sallyport/gateway/history"
	"sallyport/gateway/httpapi"
	"sallyport/gateway/task"
	"sallyport/internal/adminsock"
	"sallyport/internal/config"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// OperatorName is the operator in records of what is done through the control socket.
const OperatorName = "cli"

// AsOperator returns a handler that serves every request as from the operator. It is for callers who own the data directory.
func AsOperator(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(tool.WithOperator(r.Context(), OperatorName)))
	})
}

// Gateways are the gateways of one data directory.
type Gateways struct{ All []*http.Client }

// WithControls calls use with the gateways that run on the data directory. If none of them has the stored records, it
// adds a temporary gateway that opens them; until use returns, no other process can open them.
func (a *App) WithControls(ctx context.Context, use func(ctx context.Context, c *Gateways) error) (err error) {
	return a.WithGateways(ctx, func(ctx context.Context, c *Gateways) (err error) {
		dir := a.DataDir()
		if !hasRun(dir) || c.hasRecords(ctx) {
			return use(ctx, c)
		}
		own, closing, err := a.openStored(dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closing()) }()
		c.All = append(c.All, own)
		return use(ctx, c)
	})
}

// hasRun reports whether a data directory has stored records, or some that are to be stored.
func hasRun(dir string) bool {
	return slices.ContainsFunc([]string{RecordsFolder, history.HandoverFolder}, func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// WithGateways calls use with the gateways that run on the data directory.
func (a *App) WithGateways(ctx context.Context, use func(ctx context.Context, c *Gateways) error) error {
	dir := a.DataDir()
	if dir == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "there is no data directory", Hint: "say which with --data DIR, or set HOME"}
	}
	c := &Gateways{}
	for _, path := range adminsock.Sockets(dir) {
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return adminsock.Dial(ctx, path) }}
		defer transport.CloseIdleConnections()
		c.All = append(c.All, &http.Client{Transport: transport, Timeout: time.Minute})
	}
	return use(ctx, c)
}

// keepsRecords reports whether a gateway has the stored records.
func keepsRecords(ctx context.Context, gate *http.Client) bool {
	var health httpapi.Health
	return DoJSON(ctx, gate, http.MethodGet, "/health", nil, &health) == nil && health.Kept
}

// hasRecords reports whether one of the gateways has the stored records.
func (c *Gateways) hasRecords(ctx context.Context) bool {
	return slices.ContainsFunc(c.All, func(gate *http.Client) bool { return keepsRecords(ctx, gate) })
}

// RecordsFirst returns the gateways, first those that have the stored records.
func (c *Gateways) RecordsFirst(ctx context.Context) []*http.Client {
	var with, without []*http.Client
	for _, gate := range c.All {
		if keepsRecords(ctx, gate) {
			with = append(with, gate)
		} else {
			without = append(without, gate)
		}
	}
	return append(with, without...)
}

// openStored opens the stored records in a gateway without upstreams and sandboxes.
func (a *App) openStored(dir string) (own *http.Client, closing func() error, err error) {
	log := a.Logger(slog.LevelError)
	cfg, err := a.Load()
	if err != nil { // the records can be read without settings
		cfg = new(config.Config)
		*cfg = config.Default()
	}
	records, err := openIdle(dir, cfg, log)
	if used, ok := errors.AsType[*store.InUseError](err); ok {
		return nil, nil, UnresponsiveError(used, dir)
	}
	if err != nil {
		return nil, nil, err
	}
	cfg.Upstreams, cfg.Environments = nil, nil
	go sweep(log)
	g, err := gateway.Open(cfg, &gateway.Options{Logger: log, Version: BuildVersion(), DataDir: dir, Records: records, NoPool: true})
	if err != nil {
		return nil, nil, errors.Join(err, records.Close())
	}
	tasks, err := task.Open(task.Options{Gateway: g.Service(), Catalog: g.Catalog, Settings: g.Reloader.Current(), Budgets: g.Budgets, Records: records, Logger: log})
	if err != nil {
		return nil, nil, errors.Join(err, g.Close(), records.Close())
	}
	api := httpapi.New(g.Service(), &httpapi.Options{Version: BuildVersion(), Kept: true, Tasks: tasks, Logger: log})
	return &http.Client{Transport: InProcess(AsOperator(api))}, func() error { return errors.Join(tasks.Close(), g.Close(), records.Close()) }, nil
}

// openIdle opens the stored records for a verb, if no gateway of the data directory has them.
func openIdle(dir string, cfg *config.Config, log *slog.Logger) (*store.Store, error) {
	if cfg.Store.IsRemote() {
		return ConnectStore(cfg, log)
	}
	return store.Open(filepath.Join(dir, RecordsFolder), &store.Options{Logger: log, LockTimeout: RecordsTimeout})
}

// UnresponsiveError returns the error for a process that has the records and does not answer as a gateway.
func UnresponsiveError(used *store.InUseError, dir string) error {
	return &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("process %d uses the data directory %s and does not answer", used.PID, dir), Err: used,
		Hint: "does it belong to another user, or is it an older version?"}
}

// InProcess returns a transport that passes requests to a handler in this process.
func InProcess(api http.Handler) http.RoundTripper { return inProcess{api} }

type inProcess struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (w inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	answer := &responseBuffer{status: http.StatusOK, header: http.Header{}}
	w.ServeHTTP(answer, r)
	return &http.Response{StatusCode: answer.status, Status: http.StatusText(answer.status), Header: answer.header, Body: io.NopCloser(&answer.body), Request: r}, nil
}

// responseBuffer is a response writer that collects the response.
type responseBuffer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (m *responseBuffer) Header() http.Header            { return m.header }
func (m *responseBuffer) WriteHeader(status int)         { m.status = status }
func (m *responseBuffer) Write(data []byte) (int, error) { return m.body.Write(data) }

// GetFromAll sends the same GET request to every gateway, and calls use with each response. It leaves out gateways that answer not
// found: they do not offer what is requested.
func GetFromAll[T any](ctx context.Context, c *Gateways, path string, use func(T)) error {
	for _, gate := range c.All {
		var got T
		err := DoJSON(ctx, gate, http.MethodGet, path, nil, &got)
		switch {
		case err == nil:
			use(got)
		case !isNotFound(err):
			return err
		}
	}
	return nil
}

// Find sends a request to one gateway after the other, until one does not answer not found. With a body it is a POST.
func (c *Gateways) Find(ctx context.Context, path string, body, into any) (err error) {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	for _, gate := range c.All {
		err = DoJSON(ctx, gate, method, path, body, into)
		if !isNotFound(err) {
			return err
		}
	}
	return err
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*tool.Error](err)
	return ok && e.Kind == tool.NotFound
}

// maxResponse bounds a response, in bytes.
const maxResponse = 64 << 20

// DoJSON sends one request and decodes the JSON response into into. An error of the gateway is returned as *tool.Error.
func DoJSON(ctx context.Context, gate *http.Client, method, path string, body, into any) error {
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
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
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
