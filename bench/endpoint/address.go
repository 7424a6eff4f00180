package endpoint

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"

	"sallyport/internal/sanitize"
	"sallyport/internal/tool"
)

// API is how an endpoint is spoken with.
type API string

// The APIs.
const (
	// OpenAI is chat completions, as most servers have them.
	OpenAI API = "openai"
	// Anthropic is its messages.
	Anthropic API = "anthropic"
)

// APIOf guesses an API by an address: Anthropic has it in its host or path, or a path that ends in /messages.
func APIOf(address string) API {
	u, err := url.Parse(address)
	if err != nil || strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions") {
		return OpenAI // Anthropic has these too
	}
	if strings.Contains(strings.ToLower(u.Host+u.Path), "anthropic") || strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/messages") {
		return Anthropic
	}
	return OpenAI
}

// Private reports whether no one else can read what is sent to an address: it goes through TLS, or stays on this machine.
func Private(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "https" {
		return err == nil
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
}

// place is where an endpoint's answers are, and its list of models.
type place struct {
	Host         string
	turns, names string
}

var versioned = regexp.MustCompile(`/v\d+$`)

// locate completes an address as people write it. All of these are one place:
// http://host, http://host/v1/, http://host/v1/chat/completions.
func locate(address string, api API) (place, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return place{}, &tool.Error{
			Kind: tool.Invalid, Message: fmt.Sprintf("%.80q is no URL of an endpoint", sanitize.Line(address, 80)),
			Hint: "it begins with http:// or https://, such as http://localhost:11434/v1",
		}
	}
	if u.User != nil {
		return place{}, &tool.Error{Kind: tool.Invalid, Message: "the URL has a user or a password in it", Hint: "keys come from the environment, see --key-env"}
	}
	u.Path, u.RawPath, u.Fragment = strings.TrimRight(u.Path, "/"), "", ""
	tail := "/chat/completions"
	if api == Anthropic {
		tail = "/messages"
	}
	base := strings.TrimSuffix(u.Path, tail)
	// An address with a path of its own is taken at its word, but that Anthropic's clients put /v1 behind any base.
	if base == u.Path && (base == "" || api == Anthropic && !versioned.MatchString(base)) {
		base += "/v1"
	}
	at := func(last string) string {
		whole := *u
		whole.Path = path.Join("/", base, last)
		return whole.String()
	}
	return place{Host: u.Host, turns: at(tail), names: at("/models")}, nil
}
