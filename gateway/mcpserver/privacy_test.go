package mcpserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/gateway"
	"sallyport/gateway/mcpserver"
	"sallyport/internal/config"
	"sallyport/internal/testutil"
)

// TestPrivacyFiles reads a file with personal data by a real server, in a program, and
// writes it to another: the client sees tokens, the disk gets the data. What a program
// may try to get at a value fails.
func TestPrivacyFiles(t *testing.T) {
	t.Parallel()
	folder, modules := t.TempDir(), testutil.Upstreams(t)
	const people = "id,full_name,email,mobile\n1,Ann O'Neil,ann@corp.example,+14155552671\n2,Bo Li,BO@corp.example,0207 946 0823\n"
	if err := os.WriteFile(filepath.Join(folder, "people.csv"), []byte(people), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(name string, args ...string) config.Upstream {
		script := filepath.Join(modules, "@modelcontextprotocol", "server-"+name, "dist", "index.js")
		return config.Upstream{Name: name, ID: name, Command: "node", Args: append([]string{script}, args...), Dir: folder, Timeout: 20 * time.Second}
	}
	cfg := config.Default()
	cfg.Upstreams = []config.Upstream{server("filesystem", folder), server("everything", "stdio")}
	cfg.Privacy = config.Privacy{Mode: config.PrivacyTokenize}
	g, err := gateway.Open(withRunsc(t, &cfg), &gateway.Options{Snapshots: testutil.Snapshots(), ConnectWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	program := strings.ReplaceAll(`
import base64, sallyport
from servers.filesystem import read_text_file, write_file
from servers.everything import echo
text = str(read_text_file(path="FOLDER/people.csv"))
print(text)
write_file(path="FOLDER/copy.csv", content=read_text_file(path="FOLDER/people.csv")["content"] + "# copied\n")
print(str(read_text_file(path="FOLDER/copy.csv")))
token = "[EMAIL_1]"
print("echo", echo(message=token + " [email_1] %5BEMAIL_1%5D"))
print("raw", sallyport.call("everything.echo", {"message": token}))
for forged in ["[EMAIL_999]", "[EMAIL_" + "01]", base64.b64encode(token.encode()).decode(), token[:-1], "[TEXT_1]"]:
    try:
        write_file(path="FOLDER/forged.txt", content=forged)
        print("forged", forged, read_text_file(path="FOLDER/forged.txt"))
    except Exception as e:
        print("refused", e)
try:
    read_text_file(path="FOLDER/" + token)
except Exception as e:
    print("error", e)
`, "FOLDER", folder)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		client := connectTo(t, g.Service(), version)
		said, failed := call(t, client, "execute_code", map[string]any{"code": program})
		if failed {
			t.Fatalf("%s: %s", version, said)
		}
		for _, hidden := range []string{"Ann O'Neil", "ann@corp", "BO@corp", "+14155552671", "0207 946", "Bo Li"} {
			if strings.Contains(said, hidden) {
				t.Errorf("%s: %q in\n%s", version, hidden, said)
			}
		}
		for _, shown := range []string{"1,[NAME_1],[EMAIL_1],[PHONE_1]", "# copied", "echo", "error", "refused unknown token [EMAIL_999]"} {
			if !strings.Contains(said, shown) {
				t.Errorf("%s: no %q in\n%s", version, shown, said)
			}
		}
		if copied, err := os.ReadFile(filepath.Join(folder, "copy.csv")); err != nil || string(copied) != people+"# copied\n" {
			t.Errorf("%s: the copy is %q, %v", version, copied, err)
		}
		if forged, err := os.ReadFile(filepath.Join(folder, "forged.txt")); err != nil || strings.Contains(string(forged), "@") {
			t.Errorf("%s: a forged token became %q, %v", version, forged, err)
		}
	}
}

func TestPrivacyTools(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Profiles, cfg.Privacy.RestoreTo = config.Profiles{config.ProfilePrivacy}, []string{config.RestoreToModel}
	g, err := gateway.Open(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	client := connectWith(t, g.Service(), &mcpserver.Options{Privacy: g.Privacy, Profiles: cfg.Profiles})
	for _, test := range []struct{ tool, text, want string }{
		{"sanitize_pii", "mail ann@corp.example or [EMAIL_1], card 4111 1111 1111 1111", "mail [EMAIL_1] or [TEXT_1], card [CARD_1]\n(found: 1 card, 1 email)"},
		{"sanitize_pii", "nothing", "nothing"},
		{"sanitize_pii", "[EMAIL_1]", "[EMAIL_1]"},
		{"sanitize_pii", "", "text is missing or empty"},
		{"restore_pii", "to [EMAIL_1], [TEXT_1], [EMAIL_2]", "to ann@corp.example, [EMAIL_1], [EMAIL_2]"},
	} {
		if got, _ := call(t, client, test.tool, map[string]any{"text": test.text}); got != test.want {
			t.Errorf("%s(%q) = %q, want %q", test.tool, test.text, got, test.want)
		}
	}
}
