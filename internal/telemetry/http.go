package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// HTTP measures how requests are answered. route says which a request is for, as few as there are; the handler can
// say it better, with [Route].
func (t *Telemetry) HTTP(next http.Handler, route func(*http.Request) string) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, to := time.Now(), &served{ResponseWriter: w, route: route(r)}
		defer func() { t.request(r, to, time.Since(begun)) }()
		next.ServeHTTP(to, r.WithContext(context.WithValue(r.Context(), servedKey{}, to)))
	})
}

type servedKey struct{}

// Route says which route of how many answers the request that ctx is of.
func Route(ctx context.Context, route string) {
	if s, ok := ctx.Value(servedKey{}).(*served); ok {
		s.route = route
	}
}

func (t *Telemetry) request(r *http.Request, s *served, took time.Duration) {
	if s.status == 0 {
		s.status = http.StatusOK
	}
	t.httpTime.Record(r.Context(), took.Seconds(), with(attribute.String("http.request.method", methodOf(r)),
		attribute.String("http.route", s.route), attribute.String("http.response.status_code", strconv.Itoa(s.status))))
	if s.status == http.StatusTooManyRequests {
		t.Refused(r.Context(), "rate_limit")
	}
}

// methodOf is that of a request, where it is one that there is.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "_OTHER"
}

// served is an answer whose status is noted.
type served struct {
	http.ResponseWriter
	route  string
	status int
}

// Unwrap is for [http.ResponseController].
func (s *served) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Flush implements [http.Flusher].
func (s *served) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// WriteHeader implements [http.ResponseWriter].
func (s *served) WriteHeader(status int) {
	if s.status == 0 && status >= 200 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}
