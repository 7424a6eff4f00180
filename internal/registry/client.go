package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// URL is the official registry.
const URL = "https://registry.modelcontextprotocol.io"

// The bounds of an answer and of a request.
const (
	maxBody = 4 << 20
	timeout = 20 * time.Second
	// maxEntries bounds the entries of a search; a page of the registry has at most 100.
	maxEntries = 100
)

var (
	// ErrNotFound reports that the registry has no such server or version.
	ErrNotFound = errors.New("not found")
	// ErrInvalid reports an answer that breaks the API.
	ErrInvalid = errors.New("the registry's answer is invalid")
)

// Client reads a registry. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// New returns a client of the registry at an https URL.
func New(base string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), http: NewHTTP()}
}

// NewHTTP returns a client for public metadata: with a bound of time, and without redirects to other hosts or to plain HTTP.
func NewHTTP() *http.Client {
	return &http.Client{Timeout: timeout, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) > 5 || next.URL.Scheme != via[0].URL.Scheme || next.URL.Host != via[0].URL.Host {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// Get returns a version of a server; version "" is the latest one.
func (c *Client) Get(ctx context.Context, name, version string) (Entry, error) {
	if !IsName(name) {
		return Entry{}, fmt.Errorf("%.80q is not the name of a server", name)
	}
	wanted := version
	if version == "" {
		version = "latest"
	} else if !IsVersion(version) {
		return Entry{}, fmt.Errorf("%.80q is not a version", version)
	}
	var e Entry
	// A deleted entry says so; without the parameter the registry would know no such server.
	path, query := "/v0.1/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version), url.Values{"include_deleted": {"true"}}
	if err := c.read(ctx, path, query, &e); err != nil {
		return Entry{}, err
	}
	switch {
	case e.Server.Name != name:
		return Entry{}, fmt.Errorf("%w: it is about another server than %s", ErrInvalid, name)
	case wanted != "" && e.Server.Version != wanted:
		return Entry{}, fmt.Errorf("%w: it is about another version than %s", ErrInvalid, wanted)
	}
	return e, e.check()
}

// Search returns the latest versions of the servers with a text in their names, at most limit of them, and whether there
// are more. Entries with an invalid name or version are left out.
func (c *Client) Search(ctx context.Context, text string, limit int) (found []Entry, more bool, err error) {
	query := url.Values{"search": {text}, "version": {"latest"}, "limit": {fmt.Sprint(min(max(limit, 1), maxEntries))}}
	var page struct {
		Servers  []Entry `json:"servers"`
		Metadata struct {
			NextCursor string `json:"nextCursor"`
		} `json:"metadata"`
	}
	if err := c.read(ctx, "/v0.1/servers", query, &page); err != nil {
		return nil, false, err
	}
	for _, e := range page.Servers {
		if e.check() == nil && e.Status() != Deleted {
			found = append(found, e)
		}
	}
	more = page.Metadata.NextCursor != "" || len(found) > limit
	return found[:min(len(found), limit)], more, nil
}

// check checks the parts of an entry that become part of names and command lines.
func (e Entry) check() error {
	switch {
	case !IsName(e.Server.Name):
		return fmt.Errorf("%w: a name has a wrong form", ErrInvalid)
	case !IsVersion(e.Server.Version):
		return fmt.Errorf("%w: the version of %s has a wrong form", ErrInvalid, e.Server.Name)
	case e.Status() != Active && e.Status() != Deprecated && e.Status() != Deleted:
		return fmt.Errorf("%w: %s has an unknown status", ErrInvalid, e.Server.Name)
	}
	return nil
}

func (c *Client) read(ctx context.Context, path string, query url.Values, into any) error {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return ReadJSON(ctx, c.http, address, "application/json, application/problem+json", into)
}

// ReadJSON reads a JSON document of at most 4 MiB. Its errors wrap [ErrNotFound] and [ErrInvalid], and have no text of the
// server.
func ReadJSON(ctx context.Context, client *http.Client, address, accept string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("read registry: %w", err)
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "sallyport")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("read registry: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", request.URL.Host, ErrNotFound)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("read registry: %s answered HTTP %d", request.URL.Host, response.StatusCode)
	case !strings.HasSuffix(kind, "json"):
		return fmt.Errorf("%w: %s sent no JSON", ErrInvalid, request.URL.Host)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("read registry: %w", err)
	case len(data) > maxBody:
		return fmt.Errorf("%w: it is larger than 4 MiB", ErrInvalid)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: it is not the JSON of the API", ErrInvalid)
	}
	return nil
}
