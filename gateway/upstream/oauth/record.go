package oauth

import (
	"encoding/json"
	"time"
)

// record is one login: what a file holds, and an item of the keyring.
type record struct {
	Version  int    `json:"version"`
	Upstream string `json:"upstream"`
	// URL is the upstream's endpoint, Resource what the tokens are for, Issuer the server that issued them.
	URL      string `json:"url"`
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	// Scopes are what was granted, or asked for where the server does not say.
	Scopes []string `json:"scopes,omitempty"`
	// Since is the login, Renewed the last token, Expires its end (zero: not said), Life how long it is good for.
	Since   time.Time     `json:"since"`
	Renewed time.Time     `json:"renewed"`
	Expires time.Time     `json:"expires,omitzero"`
	Life    time.Duration `json:"life,omitempty"`
	// Ended says why the login is over: the server wants a new one. "" while it lasts.
	Ended string `json:"ended,omitempty"`
	// Renewable: there is a refresh token.
	Renewable bool `json:"renewable"`
	// Store is where Secret is: file or keyring.
	Store string `json:"store"`

	TokenURL  string `json:"token_endpoint"`
	RevokeURL string `json:"revocation_endpoint,omitempty"`
	// ClientID was got by registration if Registered; Redirect is what it was registered with.
	ClientID   string `json:"client_id"`
	Registered bool   `json:"registered,omitempty"`
	Redirect   string `json:"redirect,omitempty"`
	// Basic: the client's secret goes into a header, not into the body.
	Basic bool `json:"basic,omitempty"`

	// Secret is empty in a file when the record is in the keyring.
	Secret secrets `json:"secret,omitzero"`
}

type secrets struct {
	Access       string `json:"access,omitempty"`
	Refresh      string `json:"refresh,omitempty"`
	ClientSecret string `json:"client_secret,omitempty"`
}

// fresh says whether the access token will be good for a while: a tenth of its
// life, at most half a minute.
func (r *record) fresh(now time.Time) bool {
	margin := min(30*time.Second, r.Life/10)
	return r.Secret.Access != "" && (r.Expires.IsZero() || now.Add(margin).Before(r.Expires))
}

// usable says whether the access token is still good at all.
func (r *record) usable(now time.Time) bool {
	return r.Secret.Access != "" && (r.Expires.IsZero() || now.Before(r.Expires))
}

// end takes the tokens away and keeps what the next login can use.
func (r *record) end(reason string) {
	r.Ended, r.Renewable, r.Expires = reason, false, time.Time{}
	r.Secret.Access, r.Secret.Refresh = "", ""
}

func (r *record) encode() ([]byte, error) { return json.MarshalIndent(r, "", "  ") }

// Status is what may be known about a login. It holds no token.
type Status struct {
	// LoggedIn: there are tokens, which may have expired; see Renewable.
	LoggedIn bool
	// Since is the login, Renewed the last token, Expires its end; zero where there is none.
	Since, Renewed, Expires time.Time
	// Renewable: it is refreshed without anybody.
	Renewable bool
	// Ended says why a login is over.
	Ended string
	// Issuer issued the tokens, Resource is what they are for.
	Issuer, Resource string
	Scopes           []string
	// Store is "file" or "keyring".
	Store string
}

// Status reads what is stored about the upstream's login.
func (h *Handler) Status() (Status, error) {
	r, err := h.store.public()
	if err != nil || r == nil {
		return Status{}, err
	}
	s := Status{
		LoggedIn: r.Ended == "", Since: r.Since, Renewed: r.Renewed, Expires: r.Expires, Renewable: r.Renewable, Ended: r.Ended,
		Issuer: r.Issuer, Resource: r.Resource, Scopes: r.Scopes, Store: r.Store,
	}
	if err := h.fits(r); err != nil && s.LoggedIn {
		s.LoggedIn, s.Ended = false, "the client_id in the settings is not that of the login"
	}
	return s, nil
}
