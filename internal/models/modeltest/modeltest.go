// Package modeltest serves a scripted model over TLS, for tests.
package modeltest

import (
	"net/http/httptest"
	"testing"

	"sallyport/internal/models"
	"sallyport/internal/models/scripted"
	"sallyport/internal/testutil/tlstest"
)

// Key is the required key, Model the only model, which is also the deployment of Azure.
const (
	Key   = scripted.Key
	Model = scripted.Name
)

// Turn is a request.
type Turn = scripted.Turn

// Server is an endpoint.
type Server struct {
	*httptest.Server
	*scripted.Model
}

// New starts an endpoint. Its certificate is trusted by processes that tlstest configures.
func New(tb testing.TB, api models.API, reply func(Turn) string) *Server {
	tb.Helper()
	s := &Server{Model: &scripted.Model{API: api, Reply: reply}}
	s.Server = tlstest.NewServer(tb, s.Model)
	tb.Cleanup(s.Close)
	return s
}

// Script returns a Reply that says one text after the other, and the last one for ever.
func Script(texts ...string) func(Turn) string { return scripted.Script(texts...) }

// Settings returns the settings of a client.
func (s *Server) Settings() models.Settings { return s.Model.Settings(s.URL) }
