package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/hostdial"
)

const (
	fetchTimeout = 30 * time.Second
	// maxBody bounds the body of a response, in bytes.
	maxBody = 4 << 20
)

// fetchRequest is an HTTP request of a plugin, fetchResponse its response.
type fetchRequest struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    *string           `json:"body"`
}

type fetchResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// fetcher makes the requests of a plugin to the hosts that it may reach. The sandbox has no network.
type fetcher struct {
	hosts  []string
	client *http.Client
}

func newFetcher(hosts []string) *fetcher {
	f := &fetcher{hosts: hosts}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		transport = usual.Clone()
	}
	transport.DialContext = dialGranted
	f.client = &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("more than 5 redirects")
		}
		return f.check(r.URL)
	}}
	return f
}

// dialGranted connects to a host that the operator granted, which may be one of a private network, but never the metadata of a cloud.
func dialGranted(ctx context.Context, _, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	conn, err := hostdial.Host{Name: name, Port: uint16(number), Private: true}.Dial(ctx, addresses)
	if err != nil {
		return nil, fmt.Errorf("host %.100s cannot be reached: %w", name, err)
	}
	return conn, nil
}

// addresses returns an address as it is, and those of a name.
func addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{ip}, nil
	}
	return hostdial.Resolve(ctx, name)
}

// check returns an error for a URL that the plugin may not reach.
func (f *fetcher) check(u *url.URL) error {
	host := strings.TrimSuffix(strings.ToLower(u.Host), ":443")
	switch {
	case u.Scheme != "https":
		return errors.New("only https URLs can be requested")
	case !slices.Contains(f.hosts, host):
		return fmt.Errorf("host %.100s is not granted; name it in hosts of plugin.yaml, and grant it in upstreams.yaml", host)
	}
	return nil
}

// do makes one request. Its errors are for the plugin.
func (f *fetcher) do(ctx context.Context, r fetchRequest) (fetchResponse, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return fetchResponse{}, errors.New("the URL is invalid")
	}
	if err := f.check(u); err != nil {
		return fetchResponse{}, err
	}
	var body io.Reader
	if r.Body != nil {
		body = strings.NewReader(*r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, u.String(), body)
	if err != nil {
		return fetchResponse{}, errors.New("the request is invalid")
	}
	for name, value := range r.Headers {
		request.Header.Set(name, value)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return fetchResponse{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return fetchResponse{}, err
	case len(data) > maxBody:
		return fetchResponse{}, fmt.Errorf("the response has more than %d MiB", maxBody>>20)
	}
	found := fetchResponse{Status: response.StatusCode, Headers: map[string]string{}, Body: string(data)}
	for name := range response.Header {
		found.Headers[strings.ToLower(name)] = response.Header.Get(name)
	}
	return found, nil
}
