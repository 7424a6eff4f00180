package clients_test

import (
	"bytes"
	"fmt"
	"testing"

	"sallyport/internal/clients"
	"sallyport/internal/settingsfile"
	"sallyport/internal/testutil/golden"
)

// TestInstallURL reads the entry of a gateway over HTTP as each client does.
func TestInstallURL(t *testing.T) {
	var all bytes.Buffer
	for _, c := range clients.All() {
		for _, variable := range []string{"", "SALLYPORT_TOKEN"} {
			us := clients.Self{URL: "http://gateway.example:8080/mcp", TokenVariable: variable}
			made, err := c.Install(nil, us, place())
			if err != nil {
				t.Fatal(c.Name, err)
			}
			fmt.Fprintf(&all, "== %s, token %q\n%s", c.Title, variable, made)
			e := readOurs(t, c, made)
			if c.Name == "claude-desktop" {
				if e.Command != "npx" || e.Args[2] != us.URL {
					t.Errorf("%s: %+v", c.Name, e)
				}
				continue
			}
			if e.URL != us.URL || e.Transport == "sse" {
				t.Errorf("%s: %+v", c.Name, e)
			}
			header := e.Headers["Authorization"]
			if (header != "") != (variable != "") || variable != "" && !c.NeedsToken(us) && header != "Bearer ${SALLYPORT_TOKEN}" {
				t.Errorf("%s: the header is %q", c.Name, header)
			}
		}
	}
	golden.Check(t, "testdata/remote.txt", all.String())
}

func readOurs(t *testing.T, c clients.Client, data []byte) settingsfile.Entry {
	t.Helper()
	servers, _, err := clients.NewReader(place()).Read(c, "f", data)
	if err != nil || len(servers) != 1 {
		t.Fatalf("%s: %v, %+v in\n%s", c.Name, err, servers, data)
	}
	return servers[0].Entry
}

// TestInstallOtherKind replaces an entry that starts sallyport by one with a URL, and that by one with another URL.
func TestInstallOtherKind(t *testing.T) {
	for _, c := range clients.All() {
		data := []byte(nil)
		start := clients.Self{Command: "/opt/bin/sallyport", Args: []string{"serve"}}
		steps := []clients.Self{start, {URL: "http://127.0.0.1:8080/mcp"}, {URL: "https://gateway.example/mcp", TokenVariable: "T"}, start}
		for _, us := range steps {
			made, err := c.Install(data, us, place())
			if err != nil {
				t.Fatalf("%s: %v after\n%s", c.Name, err, data)
			}
			readOurs(t, c, made)
			data = made
		}
	}
}
