package retry_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/retry"
)

func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for _, test := range []struct {
			status int
			header string
			want   time.Duration
		}{
			{429, "7", 7 * time.Second}, {503, "0", time.Millisecond}, {500, "", 0}, {408, "soon", 0}, {502, "-1", 0},
			{503, at(time.Minute), time.Minute}, {503, at(-time.Hour), time.Millisecond},
			{400, "7", retry.Never}, {501, "7", retry.Never}, {200, "", retry.Never},
		} {
			resp := &http.Response{StatusCode: test.status, Header: http.Header{"Retry-After": {test.header}}}
			if got := retry.Delay(resp); got != test.want {
				t.Errorf("%d with %q: %s, want %s", test.status, test.header, got, test.want)
			}
		}
	})
}
