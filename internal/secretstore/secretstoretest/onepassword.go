package secretstoretest

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// Connect is a twin of 1Password Connect with one vault, "infra", and one item, "github", with the fields token, user and, in a
// section "Spare keys", token again.
type Connect struct {
	// Bearer is the access token.
	Bearer string

	mu    sync.Mutex
	value string
}

// The ids of the vault and the item.
const (
	ConnectVault = "aaaaaaaaaaaaaaaaaaaaaaaaa1"
	ConnectItem  = "bbbbbbbbbbbbbbbbbbbbbbbbb2"
)

// Set sets the value of the field token.
func (c *Connect) Set(value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = value
}

var connectFilter = regexp.MustCompile(`^(name|title) eq "([^"]*)"$`)

// ServeHTTP implements [http.Handler].
func (c *Connect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fail := func(status int, message string) {
		answer(w, status, map[string]any{"status": status, "message": message})
	}
	const vaults = "/v1/vaults"
	path := strings.TrimPrefix(r.URL.Path, vaults)
	switch {
	case r.Method != http.MethodGet:
		fail(http.StatusMethodNotAllowed, "Method not allowed")
	case r.Header.Get("Authorization") != "Bearer "+c.Bearer:
		fail(http.StatusUnauthorized, "Invalid bearer token")
	case path == "":
		c.list(w, r, "name", "infra", map[string]any{"id": ConnectVault, "name": "infra"})
	case strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/"+ConnectVault+"/"):
		fail(http.StatusForbidden, "Authorization: token does not have access to this vault")
	case path == "/"+ConnectVault+"/items":
		c.list(w, r, "title", "github", map[string]any{"id": ConnectItem, "title": "github", "vault": map[string]any{"id": ConnectVault}})
	case path == "/"+ConnectVault+"/items/"+ConnectItem:
		answer(w, http.StatusOK, c.item())
	default:
		fail(http.StatusNotFound, "Item not found")
	}
}

func (c *Connect) list(w http.ResponseWriter, r *http.Request, key, name string, entry map[string]any) {
	m := connectFilter.FindStringSubmatch(r.URL.Query().Get("filter"))
	if m == nil || m[1] != key {
		answer(w, http.StatusBadRequest, map[string]any{"status": http.StatusBadRequest, "message": "Invalid filter"})
		return
	}
	list := []any{}
	if m[2] == name {
		list = append(list, entry)
	}
	answer(w, http.StatusOK, list)
}

func (c *Connect) item() any {
	return map[string]any{
		"id": ConnectItem, "title": "github", "sections": []any{map[string]any{"id": "s1", "label": "Spare keys"}},
		"fields": []any{
			map[string]any{"id": "f1", "type": "CONCEALED", "label": "token", "value": c.value},
			map[string]any{"id": "f2", "type": "STRING", "label": "user", "value": "bot"},
			map[string]any{"id": "f3", "type": "CONCEALED", "label": "spare", "value": "spare-" + c.value, "section": map[string]any{"id": "s1"}},
			map[string]any{"id": "f4", "type": "STRING", "label": "host", "value": "one"},
			map[string]any{"id": "f5", "type": "STRING", "label": "host", "value": "two", "section": map[string]any{"id": "s1"}},
		},
	}
}
