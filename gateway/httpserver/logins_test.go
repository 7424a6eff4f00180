package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// onRecord keeps what it is told.
type onRecord struct{ events []audit.Event }

func (o *onRecord) Audit(ctx context.Context, e audit.Event) error {
	e.Principal = tool.Principal(ctx)
	o.events = append(o.events, e)
	return errors.New("the disk is full") // which is nobody's fault here
}

// TestLogins: who comes in is on record once an hour and address, and of a flood of wrong tokens a few, with how many there were.
func TestLogins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &onRecord{}
		e := newAuthenticator(&Options{Settings: config.HTTP{Tokens: config.Secrets{"ci": "0123456789abcdef"}}, Auditor: kept}, false, slog.New(slog.DiscardHandler))
		served := 0
		handler := e.forMCP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		ask := func(token, from string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
			r.RemoteAddr = from
			r.Header.Set("Authorization", "Bearer "+token)
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		for range 5 {
			ask("0123456789abcdef", "192.0.2.1:1234")
			ask("0123456789abcdef", "192.0.2.2:99")
		}
		if served != 10 || len(kept.events) != 2 || kept.events[0].Kind != audit.Login || kept.events[0].Principal != "token:ci" || kept.events[1].From != "192.0.2.2" {
			t.Errorf("%d served, %+v", served, kept.events)
		}
		time.Sleep(2 * time.Hour)
		if ask("0123456789abcdef", "192.0.2.1:1"); len(kept.events) != 3 {
			t.Errorf("%+v", kept.events)
		}
		for range 10_000 {
			ask("wrong-wrong-wrong", "192.0.2.3:1")
		}
		if len(kept.events) != 13 || kept.events[12].Kind != audit.LoginRefused || kept.events[12].Principal != "" {
			t.Errorf("%d events", len(kept.events))
		}
		time.Sleep(time.Minute)
		if ask("wrong-wrong-wrong", "192.0.2.3:1"); len(kept.events) != 14 || kept.events[13].Note != "and 9990 more since the last one" || served != 11 {
			t.Errorf("%+v", kept.events[len(kept.events)-1])
		}
	})
}
