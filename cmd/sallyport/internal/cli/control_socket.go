package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sallyport/internal/adminsock"
)

// OpenControl serves api at the control socket of the data directory, until stop is called. If it cannot, it logs a
// warning and does nothing.
func (a *App) OpenControl(log *slog.Logger, api http.Handler) (stop func()) {
	dir := a.DataDir()
	if dir == "" {
		return func() {}
	}
	listener, err := adminsock.Listen(dir, &adminsock.Options{Logger: log})
	if err != nil {
		if !errors.Is(err, adminsock.ErrUnsupported) {
			log.Warn("no control socket: sallyport approvals does not reach this process", "error", err)
		}
		return func() {}
	}
	web := &http.Server{Handler: AsOperator(api), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
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
