package dashboard

import "sallyport/gateway"

// Overview is what the first page shows.
type Overview struct {
	Upstreams []gateway.Upstream
}

func (d *Dashboard) overview(*request) (any, error) {
	return Overview{Upstreams: d.verbs.Upstreams()}, nil
}
