package clients_test

import (
	"testing"

	"sallyport/internal/clients"
)

func TestLooksSecret(t *testing.T) {
	for _, test := range [][2]string{
		{"GITHUB_TOKEN", "x"}, {"API_KEY", "YOUR_API_KEY"}, {"apiKey", "abc"}, {"openaiApiKey", "abc"}, {"DB_PASSWORD", "1234567"}, {"Authorization", "Bearer abc"},
		{"X-Auth", "abc"}, {"MYTOKEN", "abc"}, {"AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"}, {"x", "ghp_0123456789abcdefghij"}, {"x", "sk-proj-0123456789abcdef"},
		{"x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"}, {"x", "postgres://u:pw@h/db"}, {"x", "6f1ed002-ab55-4b1c-9e6e-6c0e4a3b1d2f"},
		{"x", "9f86d081884c7d659a2feaa0c55ad015"}, {"x", "aB3dE5fG7hI9jK1lM3nO"}, {"x", "-----BEGIN PRIVATE KEY-----"},
	} {
		if !clients.LooksSecret(test[0], test[1]) {
			t.Errorf("%s=%s does not look secret", test[0], test[1])
		}
	}
	for _, test := range [][2]string{
		{"MAX_TOKENS", "4096"}, {"AUTH_TYPE", "oauth"}, {"TOKEN_FILE", "/run/token"}, {"SSL_KEY", "./server.key"}, {"AUTHOR", "Ada Lovelace"}, {"KEYBOARD", "de"},
		{"AUTH_ENABLED", "true"}, {"AUTH_URL", "https://login.example.com/x"}, {"API_KEY", "${API_KEY}"}, {"API_KEY", ""}, {"x", "@modelcontextprotocol/server-filesystem"},
		{"x", "mcp-server-sequential-thinking@2025.12.18"}, {"x", "https://api.githubcopilot.com/mcp/"}, {"x", "/usr/local/lib/node_modules/x1y2z3a4b5c6d7e8"},
		{"x", "ghcr.io/github/github-mcp-server"}, {"x", "a sentence of many words, 12 of them"}, {"x", "us-east-1"}, {"x", "my_long_upstream_name_with_2_digits_99"}, {"x", "C:\\Users\\ada\\server.js"},
	} {
		if clients.LooksSecret(test[0], test[1]) {
			t.Errorf("%s=%s looks secret", test[0], test[1])
		}
	}
}
