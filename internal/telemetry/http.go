package telemetry

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// HTTP measures the handling of requests. route returns a bounded name for a request; the handler of a
// [Telemetry.Route] overrides it.
func (t *Telemetry) HTTP(next http.Handler, route func(*http.Request) string) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, to := time.Now(), &statusRecorder{ResponseWriter: w, route: route(r)}
		defer func() { t.request(r, to, time.Since(begun)) }()
		next.ServeHTTP(to, r.WithContext(context.WithValue(r.Context(), recorderKey{}, to)))
	})
}

type recorderKey struct{}

// Route wraps the handler of one route: requests are measured under its name, which may have variables in braces.
// Unless they are polls, each has a span, as a child of the client's if it sends one.
func (t *Telemetry) Route(route string, poll bool, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, ok := r.Context().Value(recorderKey{}).(*statusRecorder); ok {
			s.route = route
		}
		if poll || t.tracer == nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, span := t.Start(t.Parent(r.Context(), r.Header.Get(parentField)), Server, methodOf(r), route)
		to := &statusRecorder{ResponseWriter: w, status: 0}
		defer func() { to.end(span, r, route) }()
		next.ServeHTTP(to, r.WithContext(ctx))
	})
}

// end ends the span of a request: a server error is an error of the span.
func (s *statusRecorder) end(span *Span, r *http.Request, route string) {
	status := cmp.Or(s.status, http.StatusOK)
	span.Set("http.request.method", methodOf(r))
	span.Set("http.route", route)
	span.SetInt("http.response.status_code", int64(status))
	if status >= http.StatusInternalServerError {
		span.End(strconv.Itoa(status))
		return
	}
	span.End("")
}

func (t *Telemetry) request(r *http.Request, s *statusRecorder, took time.Duration) {
	s.status = cmp.Or(s.status, http.StatusOK)
	t.httpTime.Record(r.Context(), took.Seconds(), with(attribute.String("http.request.method", methodOf(r)),
		attribute.String("http.route", s.route), attribute.String("http.response.status_code", strconv.Itoa(s.status))))
	if s.status == http.StatusTooManyRequests {
		t.RecordRefusal(r.Context(), "rate_limit")
	}
}

// methodOf returns the method of a request, if it is a known one.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "_OTHER"
}

// statusRecorder is a response writer that records its status.
type statusRecorder struct {
	http.ResponseWriter
	route  string
	status int
}

// Unwrap implements the interface of [http.ResponseController].
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Flush implements [http.Flusher].
func (s *statusRecorder) Flush() { _ = http.NewResponseController(s.ResponseWriter).Flush() }

// WriteHeader implements [http.ResponseWriter].
func (s *statusRecorder) WriteHeader(status int) {
	if s.status == 0 && status >= 200 {
		s.status = status
	}
	s.ResponseWriter.WriteHeader(status)
}
