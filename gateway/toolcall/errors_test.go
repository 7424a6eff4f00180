package toolcall_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"sallyport/gateway/toolcall"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

// TestUnreadable: only a fault of the records is logged. That a caller has gone, or that the store does not answer, is none.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		kind   tool.Kind
		logged bool
	}{
		{fmt.Errorf("read approvals: %w", context.Canceled), tool.Canceled, false},
		{fmt.Errorf("read approvals: %w", store.ErrUnreachable), tool.Busy, false},
		{errors.New("the disk is broken"), tool.Internal, true},
	} {
		var log bytes.Buffer
		err := toolcall.Unreadable(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), c.err)
		if got := tool.AsError(err).Kind; got != c.kind || log.Len() > 0 != c.logged {
			t.Errorf("%v: %s, logged %q", c.err, got, log.String())
		}
	}
}
