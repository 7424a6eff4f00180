package tool

import "net/http"

// Status is the one table from kinds of errors to statuses of HTTP.
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
