package settingsedit_test

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/gateway/settingsedit"
	"sallyport/internal/tool"
)

// withSecrets has secrets in each place of an upstream.
const withSecrets = `upstreams:
  crm:
    command: npx
    args: [-y, server, --api-key, k3y-In-4rgs, "--token=t0k-In-4rgs", "https://u:p4ss-in-arg@db.example.com/x"]
    env:
      PASSWORD: hunter # was: h4nter-Old-1
      QUOTED: 'it is: #1'
      PORT: "8080"
      FROM: ${CRM_TOKEN}
      OTHER: ${CRM:-d3fault-value}
      # OLD_TOKEN: c0mmented-0ut
      KEY: |
        -----BEGIN KEY-----
        MIIB1tjKq0Xo9
        -----END KEY-----
  web:
    url: https://h0st-user:pw-s3cret@web.example.com/mcp?api_key=q-s3cret&page=2
    headers: {Authorization: Bearer b3arer-s3cret, X-One: plain ü}
    timeout: 30s
  app:
    url: https://app.example.com/v1/aB3dE5fG7hI9jK1lM3nO5/mcp
    auth: {client_id: me, client_secret: c1ient-s3cret}
`

// secrets are those of the settings above, by upstream.
var secrets = map[string][]string{
	"crm": {"k3y-In-4rgs", "t0k-In-4rgs", "p4ss-in-arg", "hunter", "h4nter-Old-1", "it is", "d3fault-value", "c0mmented-0ut", "BEGIN", "MIIB1tjKq0Xo9", "END KEY"},
	"web": {"pw-s3cret", "q-s3cret", "b3arer-s3cret", "plain"},
	"app": {"aB3dE5fG7hI9jK1lM3nO5", "c1ient-s3cret"},
}

// plain are texts of the settings above that are no secrets, by upstream.
var plain = map[string][]string{"crm": {"server, --api-key, ", "8080", "${CRM_TOKEN}"}, "web": {"@web.example.com/", "page=2"}, "app": {"/v1/", "client_id: me"}}

// shows returns a secret of the settings that a value shows when it is printed, "" for none.
func shows(value any, of string) string {
	text := fmt.Sprintf("%+v %#v", value, value)
	for _, s := range secrets[of] {
		if strings.Contains(text, s) {
			return s
		}
	}
	return ""
}

// TestSecretsHidden: a part shows no secret, and what is saved without an edit is the file as it was, byte for byte.
func TestSecretsHidden(t *testing.T) {
	for of := range secrets {
		d := open(t, withSecrets)
		part, err := d.Open(admin(t), "upstreams", of)
		if err != nil {
			t.Fatal(err)
		}
		if s := shows(part, of); s != "" || part.Secrets == 0 || strings.Count(part.Text, "(hidden-") != part.Secrets {
			t.Errorf("%s shows %q, %d secrets:\n%s", of, s, part.Secrets, part.Text)
		}
		for _, plain := range plain[of] {
			if !strings.Contains(part.Text, plain) {
				t.Errorf("%s does not show %s:\n%s", of, plain, part.Text)
			}
		}
		problems, _, err := d.Save(admin(t), settingsedit.Draft{Keys: part.Keys, Version: part.Version, Text: part.Text})
		if err != nil || problems != nil || d.content(t) != withSecrets {
			t.Errorf("%+v, %v:\n%s", problems, err, d.content(t))
		}
	}
}

// TestSecretsEdited: what is around a secret can change, another value replaces it, and one that is left out is gone.
func TestSecretsEdited(t *testing.T) {
	for _, test := range []struct{ of, old, edited, before, after string }{
		{"web", "timeout: 30s", "timeout: 60s", "timeout: 30s", "timeout: 60s"},
		{"web", "page=2", "page=3", "page=2", "page=3"},
		{"web", "{Authorization: (hidden-3)", "{Authorization: Bearer n3w-value-1", "b3arer-s3cret", "n3w-value-1"},
		{"web", "{Authorization: (hidden-3), ", "{", "Authorization: Bearer b3arer-s3cret, ", ""},
		{"app", "client_secret: (hidden-2)", "client_secret: \"${APP_SECRET}\"", "c1ient-s3cret", "\"${APP_SECRET}\""},
		{"crm", "[-y, server", "[-y, --verbose, server", "[-y, server", "[-y, --verbose, server"},
		{"crm", "      # OLD_TOKEN: (hidden-8)\n", "", "      # OLD_TOKEN: c0mmented-0ut\n", ""},
	} {
		d := open(t, withSecrets)
		old, edited := strings.ReplaceAll(test.old, "\n      ", "\n    "), test.edited
		old = strings.TrimPrefix(old, "  ")
		problems, _, err := d.Save(admin(t), d.edit(t, old, edited, "upstreams", test.of))
		if want := strings.Replace(withSecrets, test.before, test.after, 1); err != nil || problems != nil || d.content(t) != want {
			t.Errorf("%q: %+v, %v; the file is\n%s\nwant\n%s", test.edited, problems, err, d.content(t), want)
		}
	}
}

// TestSecretsMoved: a placeholder stands for its secret only at its own key, where it stays hidden.
func TestSecretsMoved(t *testing.T) {
	for _, test := range []struct{ of, old, edited, says string }{
		{"web", "timeout: 30s", "description: (hidden-3)", "another key"},
		{"web", "X-One: (hidden-4)", "X-Two: (hidden-4)", "another key"},
		{"web", "X-One: (hidden-4)", "X-One: (hidden-3)", "another key"},
		{"web", "X-One: (hidden-4)", "X-One: (hidden-9)", "no secret"},
		{"web", "X-One: (hidden-4)", "X-One: (hidden-0)", "no secret"},
		{"web", "timeout: 30s", "timeout: (hidden-5)", "no secret"},
		{"web", "timeout: 30s", "timeout: 30s # (hidden-3)", "another key"},
		{"web", "timeout: 30s", "(hidden-3): 30s", "another key"},
		{"web", "https://h0st-user:(hidden-1)@web.example.com", "https://(hidden-1)/web.example.com", "no longer be hidden"},
		{"web", "api_key=(hidden-2)", "page=(hidden-2)", "no longer be hidden"},
		{"crm", "--api-key, (hidden-1)", "--name, (hidden-1)", "no longer be hidden"},
		{"crm", "'(hidden-6)'", "(hidden-6)", "(hidden-"},
		{"app", "(hidden-2)", "[(hidden-2)", ""},
	} {
		d := open(t, withSecrets)
		problems, _, err := d.Save(admin(t), d.edit(t, test.old, test.edited, "upstreams", test.of))
		if err != nil || len(problems) == 0 || !strings.Contains(problems[0].Message, test.says) || d.content(t) != withSecrets {
			t.Errorf("%q: %+v, %v", test.edited, problems, err)
		}
		if s := shows(problems, test.of); s != "" {
			t.Errorf("%q: the problems show %s: %+v", test.edited, s, problems)
		}
	}
}

// TestSecretsInProblems: a problem shows the line as it was typed, with its caret at the right place, and no secret of another part.
func TestSecretsInProblems(t *testing.T) {
	d := open(t, strings.Replace(withSecrets, "X-One: plain ü}", "X-One: plain ü, Y: [z]}", 1))
	problems, _, err := d.Save(admin(t), d.edit(t, "client_id: me", "client_id: you", "upstreams", "app"))
	if err != nil || len(problems) != 1 || problems[0].Line != 0 || problems[0].Snippet != "" || shows(problems, "web") != "" {
		t.Errorf("another part: %+v, %v", problems, err)
	}
	problems, _, err = d.Save(admin(t), d.edit(t, "timeout: 30s", "timeout: 31s", "upstreams", "web"))
	want := "  3 |   headers: {Authorization: (hidden-3), X-One: (hidden-4), Y: [(hidden-5)]}\n" + strings.Repeat(" ", len("  3 |   headers: {Authorization: (hidden-3), X-One: (hidden-4), Y: ")) + "^"
	if err != nil || len(problems) != 1 || problems[0].Line != 3 || problems[0].Snippet != want || shows(problems, "web") != "" {
		t.Errorf("this part: %v\n%s\nwant\n%s", err, problems[0].Snippet, want)
	}
}

// TestSecretsVersion: the version of a part tells nothing of a secret, and a secret that changes in the meantime is kept.
func TestSecretsVersion(t *testing.T) {
	changed := strings.Replace(withSecrets, "c1ient-s3cret", "an0ther-s3cret", 1)
	one, other := open(t, withSecrets), open(t, changed)
	a, errA := one.Open(admin(t), "upstreams", "app")
	b, errB := other.Open(admin(t), "upstreams", "app")
	if errA != nil || errB != nil || a.Version != b.Version {
		t.Fatalf("%q, %q, %v, %v", a.Version, b.Version, errA, errB)
	}
	problems, _, err := other.Save(admin(t), settingsedit.Draft{Keys: a.Keys, Version: a.Version, Text: strings.Replace(a.Text, "me", "you", 1)})
	if err != nil || problems != nil || other.content(t) != strings.Replace(changed, "client_id: me", "client_id: you", 1) {
		t.Errorf("%+v, %v: %s", problems, err, other.content(t))
	}
}

// TestSecretsNotShown: a part with a secret that cannot be hidden is not shown.
func TestSecretsNotShown(t *testing.T) {
	for _, entry := range []string{`env: {A: "s\x33cret-\"1"}`, "env:\n      A: some s3cret\n        words", "env: {A: (hidden-1)}", "env: {command: x, A: command}\n    cwd: /command"} {
		d := open(t, "upstreams:\n  a:\n    command: x\n    "+entry+"\n")
		part, err := d.Open(admin(t), "upstreams", "a")
		if strings.HasPrefix(entry, "env: {command") {
			if err != nil || !strings.Contains(part.Text, "{command: (hidden-1), A: (hidden-2)}") {
				t.Errorf("%q: %q, %v", entry, part.Text, err)
			}
			continue
		}
		if tool.AsError(err).Kind != tool.Failed || part.Text != "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %+v, %v", entry, part, err)
		}
	}
}
