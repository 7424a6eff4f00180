package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"sallyport/gateway/upstream"
	"sallyport/gateway/upstream/oauth"
	"sallyport/internal/access"
	"sallyport/internal/tokenexchange"
)

// metadataDocument is the client that the suite's authorization servers know.
const metadataDocument = "https://conformance-test.local/client-metadata.json"

// authorize gives the session what the auth scenarios need: a handler of tokens
// that keeps them in dir and whose logins a browser without a person makes.
func authorize(opts *upstream.Options, url, scenario, dir string, given scenarioContext) {
	if !strings.HasPrefix(scenario, "auth/") {
		return
	}
	settings := oauth.Settings{
		ID: "suite", URL: url, Store: "file", ClientMetadata: metadataDocument,
		ClientID: given.ClientID, ClientSecret: given.ClientSecret,
	}
	if strings.Contains(scenario, "client-credentials") {
		settings.Type = "client_credentials"
	}
	if given.IDToken != "" {
		settings.ClientMetadata, settings.Principal, settings.Exchange = "", "suite", exchange(given)
	}
	opts.Auth = oauth.New(settings, &oauth.Options{
		Dir: dir, Browse: browse, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
}

// exchange returns how the ID token of a person is exchanged for an assertion of its identity.
func exchange(given scenarioContext) *oauth.Exchange {
	x := &oauth.Exchange{Exchange: *tokenexchange.New()}
	x.Issuer, x.TokenEndpoint, x.ClientID = given.Provider, given.ProviderEndpoint, given.ProviderClient
	x.SubjectTokenType, x.RequestedTokenType = tokenexchange.IDToken, tokenexchange.IDJAG
	claims, known := tokenexchange.Decode(given.IDToken)
	person := access.Subject{Token: given.IDToken, Kind: tokenexchange.IDToken, Issuer: claims.Issuer, ID: claims.Subject}
	x.Subject = func(issuer, kind string) (access.Subject, bool) {
		return person, known && issuer == person.Issuer && kind == person.Kind
	}
	return x
}

// browse opens the page; the suite's authorization server agrees at once and
// sends the browser back.
func browse(ctx context.Context, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return fmt.Errorf("open page: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("open page: %w", err)
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
