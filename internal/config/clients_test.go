package config_test

import (
	"testing"

	"sallyport/internal/config"
)

// TestModeOf selects modes by the names and versions of clients.
func TestModeOf(t *testing.T) {
	cfg := config.Default()
	cfg.Clients = []config.ClientMode{
		{Name: "codex*", Versions: ">=0.40 <1", Mode: config.ModeDirect},
		{Name: "codex*", Mode: config.ModeSearch},
		{Name: "opencode", Versions: "=1.2", Mode: config.ModeDirect},
		{Name: "*", Versions: ">2", Mode: config.ModeSearch},
	}
	for _, tc := range []struct {
		name, version string
		want          config.Mode
	}{
		{"codex-mcp-client", "0.40.0", config.ModeDirect},
		{"Codex", "0.99.9-alpha.1", config.ModeDirect},
		{"codex", "v0.41", config.ModeDirect},
		{"codex", "0.39.9", config.ModeSearch},
		{"codex", "1.0", config.ModeSearch},
		{"codex", "unknown", config.ModeSearch},
		{"opencode", "1.2.0", config.ModeDirect},
		{"opencode", "1.2.1", ""},
		{"open/code", "1.2", ""},
		{"other", "2.0.1", config.ModeSearch},
		{"other", "2", ""},
		{"", "", ""},
	} {
		if got := cfg.ModeOf(tc.name, tc.version); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.name, tc.version, got, tc.want)
		}
	}
}
