package oauth

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// pendingLogin is an [Authorization], as it is kept for another gateway. It is secret.
type pendingLogin struct {
	State    string   `json:"state"`
	Page     string   `json:"page"`
	Scopes   []string `json:"scopes,omitempty"`
	Verifier string   `json:"verifier"`
	Redirect string   `json:"redirect"`
	// Resource and Server are of the authorization server, the others of the client there.
	Resource string                  `json:"resource"`
	Server   *oauthex.AuthServerMeta `json:"server"`
	Client   string                  `json:"client"`
	Secret   string                  `json:"secret,omitempty"`
	TokenURL string                  `json:"token_endpoint"`
	Basic    bool                    `json:"basic,omitempty"`
	Dynamic  bool                    `json:"dynamic,omitempty"`
}

// Encode returns the login for [Handler.Resume]. It is secret.
func (a *Authorization) Encode() ([]byte, error) {
	return json.Marshal(pendingLogin{
		State: a.State, Page: a.Page, Scopes: a.scopes, Verifier: a.verifier, Redirect: a.redirect, Resource: a.found.resource, Server: a.found.meta,
		Client: a.who.id, Secret: a.who.secret, TokenURL: a.who.tokenURL, Basic: a.who.basic, Dynamic: a.who.dynamic,
	})
}

// Resume returns a login that a handler of the same upstream and principal has begun, also in another process.
func (h *Handler) Resume(data []byte) (*Authorization, error) {
	var p pendingLogin
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read login that has begun: %w", err)
	}
	if p.Server == nil || p.State == "" {
		return nil, errors.New("read login that has begun: it is damaged")
	}
	return &Authorization{
		State: p.State, Page: p.Page, handler: h, found: &issuer{resource: p.Resource, meta: p.Server}, scopes: p.Scopes, verifier: p.Verifier, redirect: p.Redirect,
		who: clientRegistration{client{id: p.Client, secret: p.Secret, tokenURL: p.TokenURL, basic: p.Basic}, p.Dynamic},
	}, nil
}
