package httpserver

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"sallyport/internal/access"
	"sallyport/internal/tool"
)

// loginTries is the number of login attempts per address.
func loginTries() access.Rate { return access.Rate{Count: 10, Per: time.Minute} }

// rates are the rate limits of requests.
type rates struct{ requests, logins *access.Limits }

func newRates(requests access.Rate) *rates {
	return &rates{requests: access.NewLimits(requests), logins: access.NewLimits(loginTries())}
}

// take counts a request, puts the caller's quota into the header, and refuses a request beyond it. Refused requests of an address are
// counted separately, so that they do not use up the quota of other callers at the address.
func (l *rates) take(header http.Header, r *http.Request, v access.Caller, refused bool) *refusal {
	key := v.Principal
	switch {
	case refused:
		key = "refused " + remoteIP(r)
	case key == "" && v.By == access.ByNothing:
		key = "address " + remoteIP(r)
	case key == "":
		key = "session"
	}
	s := l.requests.Take(key, v.Rate)
	if s.Rate.Count == 0 {
		return nil
	}
	header.Set("RateLimit-Policy", fmt.Sprintf(`"requests";q=%d;w=%d`, s.Rate.Count, int(s.Rate.Per.Seconds())))
	header.Set("RateLimit", fmt.Sprintf(`"requests";r=%d;t=%d`, s.Remaining, int(s.ResetAfter.Seconds())))
	if s.OK {
		return nil
	}
	return tooMany(header, s, "http.limits.requests in upstreams.yaml, or --rate of the token, sets the limit")
}

// login counts a login attempt.
func (l *rates) login(header http.Header, r *http.Request) *refusal {
	if s := l.logins.Take(remoteIP(r), access.Rate{}); !s.OK {
		return tooMany(header, s, "")
	}
	return nil
}

func tooMany(header http.Header, s access.Quota, hint string) *refusal {
	header.Set("Retry-After", strconv.Itoa(max(1, int(s.RetryAfter.Seconds()))))
	return &refusal{status: http.StatusTooManyRequests, detail: fmt.Sprintf("more than %s; try again in %v", s.Rate, s.RetryAfter), hint: hint, kind: tool.Limit}
}
