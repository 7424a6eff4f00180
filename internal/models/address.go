package models

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"sallyport/internal/tool"
)

// The bases of providers.
const (
	openAIBase    = "https://api.openai.com/v1"
	anthropicBase = "https://api.anthropic.com/v1"
)

// DefaultAPIVersion is the version of Azure OpenAI that is asked for if the settings name none.
const DefaultAPIVersion = "2024-10-21"

var versioned = regexp.MustCompile(`/v\d+[a-z0-9]*(/openai)?$`)

// address returns the URL of requests.
func (s Settings) address() (*url.URL, error) {
	switch s.API {
	case OpenAI:
		return s.plain(cmp.Or(s.URL, openAIBase), "/chat/completions", s.Model)
	case Anthropic:
		return s.plain(cmp.Or(s.URL, anthropicBase), "/messages", s.Model)
	case Azure:
		return s.azure()
	}
	return nil, invalidf("use openai, azure or anthropic", "there is no API %.40q", string(s.API))
}

// plain completes a base with a path. A base without a path gets /v1.
func (s Settings) plain(base, tail, model string) (*url.URL, error) {
	u, err := parse(base)
	if err != nil {
		return nil, err
	}
	if model == "" {
		return nil, invalidf("name it with the key model", "the model has no name")
	}
	trimmed := strings.TrimSuffix(u.Path, tail)
	if trimmed == u.Path && (trimmed == "" || s.API == Anthropic && !versioned.MatchString(trimmed)) {
		trimmed += "/v1"
	}
	u.Path = path.Join("/", trimmed, tail)
	return u, nil
}

// azure returns the address of a deployment.
func (s Settings) azure() (*url.URL, error) {
	if s.URL == "" || s.Deployment == "" {
		return nil, invalidf("such as https://NAME.openai.azure.com, and the name of a deployment there", "Azure OpenAI needs a URL and a deployment")
	}
	u, err := parse(s.URL)
	if err != nil {
		return nil, err
	}
	base, _, _ := strings.Cut(u.Path, "/openai")
	u.Path = path.Join("/", base, "openai/deployments", s.Deployment, "chat/completions")
	u.RawQuery = url.Values{"api-version": {cmp.Or(s.APIVersion, DefaultAPIVersion)}}.Encode()
	return u, nil
}

func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, invalidf("it begins with https:// or http://, such as http://localhost:11434/v1", "the URL of the model is no URL of an endpoint")
	}
	if u.User != nil {
		return nil, invalidf("the key has a key of its own in the settings", "the URL of the model has a user or a password in it")
	}
	u.Path, u.RawPath, u.Fragment = strings.TrimRight(u.Path, "/"), "", ""
	return u, nil
}

func invalidf(hint, format string, args ...any) error {
	return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}
