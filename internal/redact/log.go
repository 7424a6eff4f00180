package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a log handler that hides secrets: a second line of defence behind callers, which should not log
// any.
func (m *Mask) Handler(next slog.Handler) slog.Handler { return handler{next, m} }

type handler struct {
	slog.Handler
	mask *Mask
}

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.mask.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(h.attrs(attrs)), h.mask}
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.mask}
}

func (h handler) attrs(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return clean
}

func (h handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.mask.Text(v.String()))
	case slog.KindGroup:
		v = slog.GroupValue(h.attrs(v.Group())...)
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if clean := h.mask.Text(text); clean != text {
			v = slog.StringValue(clean)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}
