// Package retry says after how long an HTTP request may be made again (RFC 9110, section 10.2.3).
package retry

import (
	"net/http"
	"strconv"
	"time"
)

// Never means that no retry helps.
const Never = -1

// Delay returns after how long a retry may succeed: 0 if the response does not say, Never if it cannot.
func Delay(resp *http.Response) time.Duration {
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500 && code != http.StatusNotImplemented:
		return After(resp.Header.Get("Retry-After"))
	}
	return Never
}

// After reads the seconds or the date of a Retry-After header; 0 if it is neither. A retry at once is after a millisecond.
func After(header string) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return max(time.Duration(seconds)*time.Second, time.Millisecond)
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(time.Until(at), time.Millisecond)
	}
	return 0
}
