package tool

import "net/http"

// Status returns the HTTP status of a kind of error.
func (k Kind) Status() int {
	switch k {
	case Invalid:
		return http.StatusBadRequest
	case NotFound:
		return http.StatusNotFound
	case Denied:
		return http.StatusForbidden
	case Limit:
		return http.StatusTooManyRequests
	case Failed:
		return http.StatusConflict
	case Timeout:
		return http.StatusGatewayTimeout
	case Upstream:
		return http.StatusBadGateway
	case Canceled, Busy:
		return http.StatusServiceUnavailable
	case Internal:
	}
	return http.StatusInternalServerError
}
