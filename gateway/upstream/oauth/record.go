package oauth

import (
	"encoding/json"
	"time"
)

// record is one login, as stored in a file and in the keyring.
type record struct {
	Version  int    `json:"version"`
	Upstream string `json:"upstream"`
	// URL is the upstream's endpoint, Resource the resource of the tokens, Issuer the server that issued them.
	URL string `json:"url"`
	// Principal is the owner of the login, "" for one that all share.
	Principal string `json:"principal,omitempty"`
	Resource  string `json:"resource"`
	Issuer    string `json:"issuer"`
	// Key says that it is an API key, in Secret.Access.
	Key bool `json:"key,omitempty"`
	// Scopes are those granted, or those requested if the server does not send them.
	Scopes []string `json:"scopes,omitempty"`
	// Since is the time of the login, Renewed that of the last token, Expires its expiry (zero if unknown), Life its lifetime.
	Since   time.Time     `json:"since"`
	Renewed time.Time     `json:"renewed"`
	Expires time.Time     `json:"expires,omitzero"`
	Life    time.Duration `json:"life,omitempty"`
	// Ended is why the login has ended and a new one is required, "" if it has not.
	Ended string `json:"ended,omitempty"`
	// Renewable reports whether there is a refresh token.
	Renewable bool `json:"renewable"`
	// Store is where Secret is: file, keyring or store.
	Store string `json:"store"`

	TokenURL  string `json:"token_endpoint"`
	RevokeURL string `json:"revocation_endpoint,omitempty"`
	// ClientID is that of a registered client if Registered; Redirect is its registered redirect URL.
	ClientID   string `json:"client_id"`
	Registered bool   `json:"registered,omitempty"`
	Redirect   string `json:"redirect,omitempty"`
	// Basic reports whether the client's secret is sent in a header instead of the body.
	Basic bool `json:"basic,omitempty"`

	// Terms is a digest of the settings of the exchange that the token is of, "" for a login; Person is a digest of who it is of.
	Terms  string `json:"terms,omitempty"`
	Person string `json:"person,omitempty"`

	// revision is that of a shared record when it was read, 0 for a new one.
	revision uint64

	// Secret is empty in a file when the secrets are in the keyring.
	Secret secrets `json:"secret,omitzero"`
}

type secrets struct {
	Access       string `json:"access,omitempty"`
	Refresh      string `json:"refresh,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
}

// fresh reports whether the access token stays valid for at least a tenth of its
// lifetime or 30 s, whichever is shorter.
func (r *record) fresh(now time.Time) bool {
	margin := min(30*time.Second, r.Life/10)
	return r.Secret.Access != "" && (r.Expires.IsZero() || now.Add(margin).Before(r.Expires))
}

// usable reports whether the access token is still valid.
func (r *record) usable(now time.Time) bool {
	return r.Secret.Access != "" && (r.Expires.IsZero() || now.Before(r.Expires))
}

// end removes the tokens and keeps what the next login can reuse.
func (r *record) end(reason string) {
	r.Ended, r.Renewable, r.Expires = reason, false, time.Time{}
	r.Secret.Access, r.Secret.Refresh = "", ""
}

func (r *record) encode() ([]byte, error) { return json.MarshalIndent(r, "", "  ") }

// Status describes a login, without its tokens.
type Status struct {
	// LoggedIn reports whether there are tokens, which may have expired; see Renewable.
	LoggedIn bool
	// Since is the time of the login, Renewed that of the last token, Expires its expiry; zero if unknown.
	Since, Renewed, Expires time.Time
	// Renewable reports whether it is refreshed without a user.
	Renewable bool
	// Ended is why the login has ended, "" if it has not.
	Ended string
	// Issuer is the server that issued the tokens, Resource their resource.
	Issuer, Resource string
	Scopes           []string
	// Store is "file", "keyring" or "store".
	Store string
	// Exchanged says that the tokens are got in exchange for that of the principal.
	Exchanged bool
}

// clockDifference is the accepted difference between the clocks of gateways.
const clockDifference = 5 * time.Second

// IsSince reports whether the login began at or after a time. That may have been at another gateway, by its clock.
func (s Status) IsSince(t time.Time) bool {
	if s.Store == storeShared {
		t = t.Add(-clockDifference)
	}
	return !s.Since.Before(t)
}

// Status returns the stored status of the upstream's login.
func (h *Handler) Status() (Status, error) {
	r, err := h.store.readPublic()
	if err != nil {
		return Status{}, err
	}
	if h.exchange != nil {
		if s, ok := h.exchange.status(r); ok {
			return s, nil
		}
	}
	if r == nil {
		return Status{}, nil
	}
	s := r.status()
	if err := h.checkClient(r); err != nil && s.LoggedIn {
		s.LoggedIn, s.Ended = false, "the client_id in the settings is not that of the login"
	}
	return s, nil
}

func (r *record) status() Status {
	return Status{
		LoggedIn: r.Ended == "", Since: r.Since, Renewed: r.Renewed, Expires: r.Expires, Renewable: r.Renewable, Ended: r.Ended,
		Issuer: r.Issuer, Resource: r.Resource, Scopes: r.Scopes, Store: r.Store,
	}
}
