package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sallyport/internal/sanitize"
)

// endpoints are those of an identity provider.
type endpoints struct {
	Issuer      string   `json:"issuer"`
	Token       string   `json:"token_endpoint"`
	Revocation  string   `json:"revocation_endpoint"`
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

func (e endpoints) basic() bool { return prefersBasic(e.AuthMethods) }

// endpoints returns the endpoints of the identity provider. The SDK's reader of metadata is of no use here: it refuses a provider
// without PKCE, which an exchange does not need.
func (e *exchanger) endpoints(ctx context.Context) (endpoints, error) {
	found, err := e.metadata(ctx)
	switch {
	case e.TokenEndpoint != "": // the metadata says only how clients authenticate there, and where tokens are revoked
		found.Token = e.TokenEndpoint
	case err != nil:
		return endpoints{}, fmt.Errorf("read the metadata of %s: %w", sanitize.Line(e.Issuer, 200), err)
	}
	if found.Revocation != "" && e.guard.check("revocation endpoint", found.Revocation) != nil {
		found.Revocation = ""
	}
	return found, e.guard.check("token endpoint", found.Token)
}

// metadata reads the metadata of OpenID Connect, or else that of RFC 8414.
func (e *exchanger) metadata(ctx context.Context) (endpoints, error) {
	issuer, err := url.Parse(e.Issuer)
	if err != nil {
		return endpoints{}, errors.New("the issuer is not a URL")
	}
	path := strings.TrimSuffix(issuer.Path, "/")
	openID, server := *issuer, *issuer
	openID.Path, server.Path = path+"/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"+path
	found, err := e.read(ctx, openID.String())
	if err != nil {
		var again error
		if found, again = e.read(ctx, server.String()); again != nil {
			return endpoints{}, err
		}
	}
	if strings.TrimSuffix(found.Issuer, "/") != strings.TrimSuffix(e.Issuer, "/") {
		return endpoints{}, fmt.Errorf("it is of another issuer: %s", sanitize.Line(found.Issuer, 200))
	}
	return found, nil
}

// metadataTimeout bounds a request for metadata.
const metadataTimeout = 10 * time.Second

func (e *exchanger) read(ctx context.Context, at string) (found endpoints, err error) {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return found, withoutURL(err)
	}
	resp, err := e.web.Do(req)
	if err != nil {
		return found, withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return found, fmt.Errorf("it answers %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxRecord)).Decode(&found); err != nil {
		return found, errors.New("the metadata is no JSON object")
	}
	return found, nil
}
