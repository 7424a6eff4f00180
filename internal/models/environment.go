package models

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/internal/tool"
)

// providers are the values of LLM_PROVIDER, with the API of each.
var providers = map[string]API{
	"openai": OpenAI, "azure": Azure, "azure_openai": Azure, "azure-openai": Azure, "anthropic": Anthropic, "ollama": OpenAI, "local": OpenAI,
}

// FromEnvironment returns the endpoint that environment variables describe; ok is false if they describe none:
//
//   - LLM_PROVIDER: openai, azure_openai, anthropic or ollama; without it the first one that has a key;
//   - LLM_MODEL: the model; OPENAI_MODEL, ANTHROPIC_MODEL and OLLAMA_MODEL are understood too;
//   - OPENAI_API_KEY, OPENAI_BASE_URL;
//   - AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY, AZURE_OPENAI_DEPLOYMENT or AZURE_OPENAI_DEPLOYMENT_NAME,
//     AZURE_OPENAI_API_VERSION;
//   - ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL; OLLAMA_HOST.
func FromEnvironment(lookup func(name string) (string, bool)) (s Settings, ok bool, err error) {
	env := func(names ...string) string {
		for _, name := range names {
			if value, set := lookup(name); set && strings.TrimSpace(value) != "" {
				return strings.TrimSpace(value)
			}
		}
		return ""
	}
	name := strings.ToLower(env("LLM_PROVIDER"))
	if name == "" {
		name = providerWithKey(env)
	}
	if name == "" {
		return s, false, nil
	}
	api, known := providers[name]
	if !known {
		return s, false, &tool.Error{
			Kind: tool.Invalid, Message: fmt.Sprintf("LLM_PROVIDER names no provider: %.40q", name), Hint: "use one of " + strings.Join(slices.Sorted(maps.Keys(providers)), ", "),
		}
	}
	s = Settings{API: api}
	switch {
	case name == "ollama" || name == "local":
		s.URL, s.Model, s.Key = ollama(env("OLLAMA_HOST", "OPENAI_BASE_URL")), env("LLM_MODEL", "OLLAMA_MODEL", "OPENAI_MODEL"), env("LLM_API_KEY")
	case api == OpenAI:
		s.URL, s.Model, s.Key = env("OPENAI_BASE_URL", "OPENAI_API_BASE"), env("LLM_MODEL", "OPENAI_MODEL"), env("OPENAI_API_KEY", "LLM_API_KEY")
	case api == Anthropic:
		s.URL, s.Model, s.Key = env("ANTHROPIC_BASE_URL"), env("LLM_MODEL", "ANTHROPIC_MODEL"), env("ANTHROPIC_API_KEY", "LLM_API_KEY")
	case api == Azure:
		s.URL, s.Key = env("AZURE_OPENAI_ENDPOINT"), env("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_KEY", "LLM_API_KEY")
		s.Deployment, s.APIVersion = env("AZURE_OPENAI_DEPLOYMENT", "AZURE_OPENAI_DEPLOYMENT_NAME", "LLM_MODEL"), env("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION")
	}
	return s, true, nil
}

// providerWithKey returns the provider with a key, Azure first: its users often have both.
func providerWithKey(env func(...string) string) string {
	switch {
	case env("AZURE_OPENAI_ENDPOINT") != "" && env("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_KEY") != "":
		return "azure"
	case env("OPENAI_API_KEY") != "":
		return "openai"
	case env("ANTHROPIC_API_KEY") != "":
		return "anthropic"
	}
	return ""
}

// ollama completes the address of a local server.
func ollama(host string) string {
	host = cmp.Or(host, "http://localhost:11434")
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	return host
}
