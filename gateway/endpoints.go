package gateway

import "sallyport/gateway/catalog"

// At returns the methods of the components as an endpoint of the settings has them: lists without a caller are those of the
// endpoint. "" is all.
func (s Service) At(endpoint string) Service {
	s.endpoint = endpoint
	return s
}

// Offers is [catalog.Catalog.Offers] of the endpoint.
func (s Service) Offers() []catalog.UpstreamOffer { return s.View.Offers(s.endpoint) }

// Upstreams is [catalog.Catalog.Upstreams] of the endpoint.
func (s Service) Upstreams() []catalog.Upstream { return s.View.Upstreams(s.endpoint) }
