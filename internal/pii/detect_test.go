package pii_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sallyport/internal/pii"
)

// TestSecretsInText: forms in which people and programs write secrets; what stands between the bars is found.
func TestSecretsInText(t *testing.T) {
	t.Parallel()
	d := detector(t, nil)
	for _, c := range []string{
		"aws_secret_access_key = |wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY|",
		`"SecretAccessKey": "|wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY|"`,
		"password: |Tr0ub4dor&3x|", "password: |kJhGfDsAqW|", "password: |8364920174|", `password: |a"b'c;9dX|`, "password='|x;y(z)9|'",
		"the password is |hunter2x9|, keep it", `password is "|Sommer 2024!|"`, "api_key: |abcdef1234567890abcdef|",
		"|-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF2abcABCADExyz0123456789\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----| ok",
		"|-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq1\nabcdefgh0123456789ABC|\nthe rest is cut off",
		"DefaultEndpointsProtocol=https;AccountName=x;AccountKey=|Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==|;EndpointSuffix=x",
		"|https://hooks.slack.com/services/T0" + "123ABCD/B0123ABCD/abcdEFGHijklMNOPqrstUVWX|",
		"|https://discord.com/api/webhooks/123456789012345678/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_abcd|",
		"Authorization: Basic |dXNlcjpwYXNzd29yZDEyMw==|", "curl -H 'Authorization: Bearer |abcdefghijklmnop123456|' x",
		"api_key: |abcdef|", "api_key: |abcdef|...", "api_key: |abcdef123456|", "API_KEY=|abcdef1|", `api_key: "|abcdef|"`, "password: |qwerty|", "secret: |xkrbtw|", "my api_key is |abcdef123456|",
		"api_key: required", "api_key: string", "api_key: ${KEY}", "api_key: strength of the key", "token: undefined", "api_key: rhythm", "api_key: length", "password: abc",
		"ssn: |123-45-6789|", "my ssn is |123-45-6789|, call", "|555-123-4567|", "call |555-123-4567| now", "phone: |555-123-4567|", "+1 |", "|+49 (0)30 123456|", "|+44 (0)20 7946 0958|", "|+41 (0)44 668 18 00|", "|+43 (0)1 588000|", "|+31 (0)20 624 1111|", "|+39 (0)6 69821234|",
		"the password is wrong", "password: please ask Bob", "Password: required", "token: see the docs", "password is required for login", "secret: <your secret here>",
		"authorization: see RFC 7235", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "AccountKey=<key>",
	} {
		text, want := strings.ReplaceAll(c, "|", ""), ""
		if parts := strings.Split(c, "|"); len(parts) == 3 {
			want = parts[1]
		}
		found := d.Find(text)
		switch {
		case want == "" && len(found) > 0 && c != "+1 |":
			t.Errorf("%q: found %q", text, text[found[0].Start:found[0].End])
		case want != "" && (len(found) != 1 || text[found[0].Start:found[0].End] != want):
			t.Errorf("%q: found %v, want %q", text, found, want)
		}
	}
}

// TestRandomPasswords: of random passwords behind a label nearly all are found, whole.
func TestRandomPasswords(t *testing.T) {
	t.Parallel()
	const letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!#%&*+-_=?@^~/"
	d, r, missed := detector(t, nil), rand.New(rand.NewPCG(1, 2)), 0
	for n := range 1000 {
		value := make([]byte, 8+n%16)
		for i := range value {
			value[i] = letters[r.IntN(len(letters))]
		}
		for _, form := range []string{"password: %s", "password = %s", `"password": "%s"`, "my password is %s"} {
			text := fmt.Sprintf(form, value)
			if found := d.Find(text); len(found) != 1 || !strings.Contains(text[found[0].Start:found[0].End], string(value[1:len(value)-1])) {
				if missed++; missed < 12 {
					t.Logf("%q: %v", text, found)
				}
			}
		}
	}
	if missed > 40 {
		t.Errorf("missed %d of 4000", missed)
	}
}

// TestKeysOfJSON: members that hold names, addresses and tokens, by their keys and those beside them.
func TestKeysOfJSON(t *testing.T) {
	t.Parallel()
	d := detector(t, nil)
	for raw, want := range map[string]string{
		`{"displayName":"Ottilie Quarrendon"}`:                                  `{"displayName":"<name>"}`,
		`{"name":"Ottilie Quarrendon","email":"ottilie@q.org"}`:                 `{"name":"<name>","email":"<email>"}`,
		`{"email":"oq@q.org","name":"Blue Chair"}`:                              `{"email":"<email>","name":"Blue Chair"}`,
		`{"name":"sallyport","stars":3}`:                                        `{"name":"sallyport","stars":3}`,
		`{"author":"Ottilie Quarrendon"}`:                                       `{"author":"<name>"}`,
		`{"author":"gitlab-bot"}`:                                               `{"author":"gitlab-bot"}`,
		`{"author":{"id":1,"name":"Ottilie von Quarrendon"}}`:                   `{"author":{"id":1,"name":"<name>"}}`,
		`{"repository":{"name":"Hello World"}}`:                                 `{"repository":{"name":"Hello World"}}`,
		`{"owner":"Acme Software Inc"}`:                                         `{"owner":"Acme Software Inc"}`,
		`{"assignee":"Ottilie Quarrendon","reporter":null}`:                     `{"assignee":"<name>","reporter":null}`,
		`{"nombre":"Ottilie Quarrendon","apellidos":"Quarrendon"}`:              `{"nombre":"<name>","apellidos":"<name>"}`,
		`{"prenom":"Ottilie","strasse":"Lange Gasse 4","direccion":"Calle 4"}`:  `{"prenom":"<name>","strasse":"<address>","direccion":"<address>"}`,
		`{"line1":"4 Main Street","city":"Springfield"}`:                        `{"line1":"<address>","city":"<address>"}`,
		`{"city":"Springfield","population":3}`:                                 `{"city":"Springfield","population":3}`,
		`{"token":"f3b1c9d8e7a6450b9c8d7e6f5a4b3c2d","nextToken":"CAUQAA1234"}`: `{"token":"<secret>","nextToken":"CAUQAA1234"}`,
		`{"token":"hello world"}`:                                               `{"token":"hello world"}`,
	} {
		got := string(d.ReplaceJSON([]byte(raw), nil, func(k pii.Kind, _ string, _ bool) (string, bool) { return "<" + string(k) + ">", true }))
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", raw, got, want)
		}
	}
}
