package secretstore_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/secretstore"
	"sallyport/internal/secretstore/secretstoretest"
)

func writeFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOnePassword: fields by vault, item and section, by names or ids.
func TestOnePassword(t *testing.T) {
	t.Parallel()
	c := &secretstoretest.Connect{Bearer: "connect-token"}
	c.Set("value-1")
	net := network{connectHost: c}
	s := net.open(nil, map[string]string{"OP_CONNECT_TOKEN": "connect-token"})
	want(t, s, "op:infra/github/token", "value-1")
	want(t, s, "op:infra/github/f2", "bot")
	want(t, s, "op:"+secretstoretest.ConnectVault+"/"+secretstoretest.ConnectItem+"/user", "bot")
	want(t, s, "op:infra/github/Spare keys/spare", "spare-value-1")
	want(t, s, "op:infra/github/Spare keys/host", "two")
	wantError(t, s, "op:infra/github/host", secretstore.Missing, "no field") // of two fields
	wantError(t, s, "op:infra/github/pasword", secretstore.Missing, `no field "pasword"`, "it has Spare keys/")
	wantError(t, s, "op:infra/gitlab/token", secretstore.Missing, `has no "gitlab"`)
	wantError(t, s, "op:other/github/token", secretstore.Missing, `has no "other"`, "may read the vault")
	wantError(t, s, "op:ccccccccccccccccccccccccc3/github/token", secretstore.Refused, "access to the vault")
	wrong := net.open(nil, map[string]string{"OP_CONNECT_TOKEN": "other"})
	wantError(t, wrong, "op:infra/github/token", secretstore.Refused, "HTTP 401", "OP_CONNECT_TOKEN")
	wantError(t, net.open(nil, nil), "op:infra/github/token", secretstore.Refused, "there is no token")
}

// TestAWS: credentials of each source sign requests that the service accepts, whole texts and fields of JSON.
func TestAWS(t *testing.T) {
	t.Parallel()
	a := &secretstoretest.AWS{Region: "eu-west-1", Role: "arn:aws:iam::1:role/gateway", WebToken: "header.claims.signature", Instance: "node", Lasts: time.Hour}
	a.Key("AKIDEXAMPLE", "secret/key+1", "")
	a.Key("AKIDSESSION", "secret/key+2", "session==token")
	a.Put("prod/github", `{"token":"value-1","retries":3}`)
	a.Put("plain", "value-2")
	a.Put("arn:aws:secretsmanager:eu-west-1:1:secret:prod/github-AbCdEf", "by-arn")
	net := network{awsHost: a, stsHost: a, "169.254.169.254": a}
	files := writeFile(t, "credentials", "[default]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = no\n\n; people\n[work]\naws_access_key_id=AKIDEXAMPLE\naws_secret_access_key = secret/key+1\n")
	config := writeFile(t, "config", "[profile work]\nregion = eu-west-1\n")
	for name, env := range map[string]map[string]string{
		"variables":    {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret/key+1"},
		"session":      {"AWS_ACCESS_KEY_ID": "AKIDSESSION", "AWS_SECRET_ACCESS_KEY": "secret/key+2", "AWS_SESSION_TOKEN": "session==token"},
		"profile":      {"AWS_PROFILE": "work", "AWS_SHARED_CREDENTIALS_FILE": files, "AWS_CONFIG_FILE": config},
		"web identity": {"AWS_WEB_IDENTITY_TOKEN_FILE": writeFile(t, "jwt", a.WebToken), "AWS_ROLE_ARN": a.Role},
		"instance":     nil,
	} {
		s := net.open(func(m *secretstore.Managers) {
			m.AWS.Instance = name == "instance"
			if name == "profile" {
				m.AWS.Region = ""
			}
		}, env)
		want(t, s, "aws:prod/github#token", "value-1")
		want(t, s, "aws:prod/github#retries", "3")
		want(t, s, "aws:prod/github", `{"token":"value-1","retries":3}`)
		want(t, s, "aws:plain?stage=AWSCURRENT", "value-2")
		want(t, s, "aws:arn:aws:secretsmanager:eu-west-1:1:secret:prod/github-AbCdEf", "by-arn")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	wantError(t, net.open(nil, nil), "aws:plain", secretstore.Refused, "no credentials for AWS")
}

// TestAWSErrors: what the service answers, as an operator reads it.
func TestAWSErrors(t *testing.T) {
	t.Parallel()
	a := &secretstoretest.AWS{Region: "eu-west-1", Lasts: time.Hour}
	a.Key("AKIDEXAMPLE", "secret/key+1", "")
	a.Put("plain", "value-2")
	net := network{awsHost: a, stsHost: a, "secretsmanager.us-east-1.amazonaws.com": a}
	env := func(id, secret string) map[string]string {
		return map[string]string{"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret}
	}
	good := net.open(nil, env("AKIDEXAMPLE", "secret/key+1"))
	wantError(t, good, "aws:none", secretstore.Missing, "ResourceNotFoundException", "the name and the region")
	wantError(t, good, "aws:plain?stage=AWSPENDING", secretstore.Missing)
	wantError(t, good, "aws:plain#field", secretstore.Missing, "no JSON object")
	wantError(t, net.open(nil, env("AKIDEXAMPLE", "secret/key+2")), "aws:plain", secretstore.Refused, "InvalidSignatureException", "the clock")
	wantError(t, net.open(nil, env("AKIDNONE", "x")), "aws:plain", secretstore.Refused, "UnrecognizedClientException", "access key")
	wantError(t, net.open(nil, env("AKIDEXAMPLE", "")), "aws:plain", secretstore.Refused, "incomplete")
	wantError(t, net.open(func(m *secretstore.Managers) { m.AWS.Region = "us-east-1" }, env("AKIDEXAMPLE", "secret/key+1")), "aws:plain", secretstore.Refused, "InvalidSignatureException")
	wantError(t, net.open(func(m *secretstore.Managers) { m.AWS.Region = "evil.example/" }, env("A", "b")), "aws:plain", secretstore.Refused, "region")
	a.Set(true, false)
	wantError(t, net.open(nil, env("AKIDEXAMPLE", "secret/key+1")), "aws:plain", secretstore.Refused, "AccessDeniedException", "secretsmanager:GetSecretValue")
	a.Set(false, true)
	wantError(t, net.open(nil, env("AKIDEXAMPLE", "secret/key+1")), "aws:plain", secretstore.Unreachable, "ThrottlingException")
	wantError(t, net.open(nil, map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": writeFile(t, "jwt", "x"), "AWS_ROLE_ARN": "r"}), "aws:plain", secretstore.Refused, "AWS STS answers InvalidIdentityToken")
	wantError(t, net.open(nil, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/x"}), "aws:plain", secretstore.Refused, "another host")
}

// TestTemporaryCredentials: those of AWS and Google are replaced before they end.
func TestTemporaryCredentials(t *testing.T) {
	t.Parallel()
	a := &secretstoretest.AWS{Region: "eu-west-1", Instance: "node", Lasts: time.Hour}
	a.Put("plain", "value-1")
	g := &secretstoretest.Google{Project: "prod", Lasts: time.Hour}
	g.Put("github", "value-2")
	net := network{awsHost: a, "169.254.169.254": a, googleHost: g, "metadata.google.internal": g}
	running(t, func() *secretstore.Store {
		return net.open(func(m *secretstore.Managers) { m.AWS.Instance, m.GCP.Instance, m.GCP.Project = true, true, "prod" }, nil)
	}, func(t *testing.T, s *secretstore.Store) {
		t.Helper()
		for range 20 {
			want(t, s, "aws:plain", "value-1")
			want(t, s, "gcp:github", "value-2")
			pass(10 * time.Minute)
		}
		if a.Issued() < 3 || a.Issued() > 5 || g.Issued() < 3 || g.Issued() > 5 {
			t.Errorf("%d and %d credentials in 200 minutes", a.Issued(), g.Issued())
		}
	})
}

// TestGoogle: a secret by the key of a service account, versions, and the errors.
func TestGoogle(t *testing.T) {
	t.Parallel()
	g := &secretstoretest.Google{Project: "prod-1", Lasts: time.Hour}
	g.Put("github", "value-1")
	g.Put("github", `{"token":"value-2"}`)
	net := network{googleHost: g, "oauth2.example.com": g}
	key := writeFile(t, "key.json", string(g.KeyFile(t, "https://oauth2.example.com")))
	s := net.open(func(m *secretstore.Managers) { m.GCP.Project = "prod-1" }, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": key})
	want(t, s, "gcp:github#token", "value-2")
	want(t, s, "gcp:github/versions/1", "value-1")
	want(t, s, "gcp:projects/prod-1/secrets/github/versions/latest", `{"token":"value-2"}`)
	if g.Issued() != 1 {
		t.Errorf("%d tokens", g.Issued())
	}
	wantError(t, s, "gcp:none", secretstore.Missing, "NOT_FOUND")
	wantError(t, s, "gcp:projects/other/secrets/github", secretstore.Refused, "PERMISSION_DENIED", "Secret Accessor")
	g.Set(false, true)
	wantError(t, s, "gcp:github/versions/2", secretstore.Invalid, "checksum")
	open := func(file string) *secretstore.Store {
		return net.open(nil, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file})
	}
	const full = "gcp:projects/prod-1/secrets/github"
	wantError(t, open(key), "gcp:github", secretstore.Missing, "project of the secret")
	wantError(t, open(writeFile(t, "user.json", `{"type":"authorized_user"}`)), full, secretstore.Refused, "not the key of a service account")
	wantError(t, open(writeFile(t, "evil.json", `{"type":"service_account","token_uri":"http://evil.example/token"}`)), full, secretstore.Refused, "as they are")
	wantError(t, net.open(nil, nil), full, secretstore.Refused, "no credentials for Google")
	g.KeyFile(t, "https://oauth2.example.com") // the key is replaced
	wantError(t, open(key), full, secretstore.Refused, "the token service of Google answers HTTP 400", "not deleted")
}

// TestContainer: the credentials of a container come from the address that the platform names, with its token.
func TestContainer(t *testing.T) {
	t.Parallel()
	a := &secretstoretest.AWS{Region: "eu-west-1"}
	a.Key("ASIACONTAINER", "secret", "session")
	a.Put("plain", "value-1")
	pod := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/credentials" || r.Header.Get("Authorization") != "pod-token" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"AccessKeyId":"ASIACONTAINER","SecretAccessKey":"secret","Token":"session","Expiration":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`))
	})
	net := network{awsHost: a, "169.254.170.23": pod}
	env := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": writeFile(t, "token", "pod-token")}
	want(t, net.open(nil, env), "aws:plain", "value-1")
}
