package secretstore

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"hash/crc32"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// gcp is Google Secret Manager.
type gcp struct {
	client
	set   GCP
	base  string
	env   environment
	plain client // reaches the metadata server

	mu    sync.Mutex
	token string
	ends  time.Time
}

func newGCP(set GCP, env environment, transport func(ca string) (http.RoundTripper, error)) (manager, error) {
	set.Credentials = cmp.Or(set.Credentials, env.first("GOOGLE_APPLICATION_CREDENTIALS"))
	set.Project = cmp.Or(set.Project, env.first("GOOGLE_CLOUD_PROJECT"))
	base, err := checkAddress("Google Secret Manager", cmp.Or(set.Endpoint, "https://secretmanager.googleapis.com"), false)
	if err != nil {
		return nil, err
	}
	t, err := transport(set.CA)
	if err != nil {
		return nil, err
	}
	return &gcp{client: newClient("Google Secret Manager", t), set: set, base: base.String() + "/v1/", env: env, plain: newClient("the metadata server", withoutProxy(t))}, nil
}

func (g *gcp) read(ctx context.Context, n name) (answer, error) {
	path, err := g.fullName(n.path)
	if err != nil {
		return answer{}, err
	}
	for try := 0; ; try++ {
		token, err := g.accessToken(ctx)
		if err != nil {
			return answer{}, err
		}
		res, err := g.send(ctx, http.MethodGet, g.base+path+":access", http.Header{"Authorization": {"Bearer " + token}, "Accept": {"application/json"}}, nil)
		if err != nil {
			return answer{}, err
		}
		if res.status == http.StatusUnauthorized && try == 0 {
			g.forget()
			continue
		}
		if err := g.explain(res); err != nil {
			return answer{}, err
		}
		return g.payload(res)
	}
}

// fullName completes the name of a secret with the project and the version.
func (g *gcp) fullName(path string) (string, error) {
	if !strings.HasPrefix(path, "projects/") {
		if g.set.Project == "" {
			return "", &Error{Kind: Missing, Message: "the project of the secret is not known", Fix: "set secret_managers.gcp.project, or write projects/PROJECT/secrets/NAME"}
		}
		path = "projects/" + url.PathEscape(g.set.Project) + "/secrets/" + path
	}
	if !strings.Contains(path, "/versions/") {
		path += "/versions/latest"
	}
	return path, nil
}

// payload returns the value, which must have the checksum that is sent with it.
func (g *gcp) payload(res response) (answer, error) {
	var got struct {
		Payload struct {
			Data       []byte `json:"data"`
			DataCRC32C string `json:"dataCrc32c"`
		} `json:"payload"`
	}
	if err := g.decode(res, &got); err != nil {
		return answer{}, err
	}
	sum := strconv.FormatUint(uint64(crc32.Checksum(got.Payload.Data, crc32.MakeTable(crc32.Castagnoli))), 10)
	if got.Payload.DataCRC32C != "" && got.Payload.DataCRC32C != sum {
		return answer{}, &Error{Kind: Invalid, Message: "the value has another checksum than Google Secret Manager says"}
	}
	return answer{text: string(got.Payload.Data)}, nil
}

// explain returns the error of an answer, nil for a success.
func (g *gcp) explain(r response) error {
	e := r.statusError(g.what)
	if e == nil {
		return nil
	}
	var said struct {
		Error struct {
			Status string `json:"status"`
		} `json:"error"`
	}
	if json.Unmarshal(r.body, &said) == nil && codeForm.MatchString(said.Error.Status) {
		e.Message = g.what + " answers " + said.Error.Status
	}
	switch said.Error.Status {
	case "NOT_FOUND":
		e.Kind, e.Fix = Missing, "check the project, the name and the version"
	case "FAILED_PRECONDITION":
		e.Kind, e.Fix = Missing, "the version is disabled or destroyed"
	case "PERMISSION_DENIED":
		e.Kind, e.Fix = Refused, "give the service account the role Secret Manager Secret Accessor"
	case "UNAUTHENTICATED":
		e.Kind, e.Fix = Refused, "check the key of the service account"
	case "RESOURCE_EXHAUSTED":
		e.Kind = Unreachable
	}
	return e
}

func (g *gcp) renew(context.Context, lease) (lease, error) { return lease{}, errNoLease }

func (g *gcp) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token = ""
}

// accessToken returns an access token, from the key of a service account or the metadata server.
func (g *gcp) accessToken(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token != "" && time.Now().Add(early).Before(g.ends) {
		return g.token, nil
	}
	var res response
	var err error
	switch {
	case g.set.Credentials != "":
		res, err = g.byKey(ctx)
	case g.set.Instance:
		res, err = g.byMachine(ctx)
	default:
		err = &Error{Kind: Refused, Message: "there are no credentials for Google", Fix: "set secret_managers.gcp.credentials or instance, or GOOGLE_APPLICATION_CREDENTIALS"}
	}
	if err != nil {
		return "", err
	}
	var got struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := g.decode(res, &got); err != nil || got.AccessToken == "" {
		return "", &Error{Kind: Invalid, Message: "Google gave no access token"}
	}
	g.token, g.ends = got.AccessToken, time.Now().Add(seconds(got.ExpiresIn))
	return g.token, nil
}

// byMachine asks the metadata server of the machine.
func (g *gcp) byMachine(ctx context.Context) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	host := cmp.Or(g.env.first("GCE_METADATA_HOST"), "metadata.google.internal")
	res, err := g.plain.send(ctx, http.MethodGet, "http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token", http.Header{"Metadata-Flavor": {"Google"}}, nil)
	if err != nil {
		return res, err
	}
	if e := res.statusError(g.plain.what); e != nil {
		return res, e
	}
	if res.header.Get("Metadata-Flavor") != "Google" {
		return res, &Error{Kind: Invalid, Message: "what answers is not the metadata server of Google"}
	}
	return res, nil
}

// googleKey is the file of a service account's key.
type googleKey struct {
	Type       string `json:"type"`
	Email      string `json:"client_email"`
	KeyID      string `json:"private_key_id"`
	PrivateKey string `json:"private_key"`
	TokenURI   string `json:"token_uri"`
}

// byKey exchanges a signed assertion for an access token.
func (g *gcp) byKey(ctx context.Context) (response, error) {
	data, err := readCredential(g.set.Credentials)
	if err != nil {
		return response{}, err
	}
	var key googleKey
	if json.Unmarshal(data, &key) != nil || key.Type != "service_account" {
		return response{}, &Error{Kind: Refused, Message: "the file of credentials is not the key of a service account", Fix: "create a key in JSON for it"}
	}
	uri := cmp.Or(key.TokenURI, "https://oauth2.googleapis.com/token")
	if _, err := checkAddress("the token service of Google", uri, false); err != nil {
		return response{}, err
	}
	assertion, err := key.assertion(uri, time.Now())
	if err != nil {
		return response{}, &Error{Kind: Refused, Message: "the private key of the service account cannot be used", Fix: "create another key for it"}
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	service := client{"the token service of Google", g.http}
	res, err := service.send(ctx, http.MethodPost, uri, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(form.Encode()))
	if err != nil {
		return res, err
	}
	if e := res.statusError(service.what); e != nil {
		e.Fix = cmp.Or(e.Fix, "check that the key is not deleted, and the clock of this machine")
		return res, e
	}
	return res, nil
}

// assertion returns a JSON Web Token that the key signs with RS256.
func (k googleKey) assertion(audience string, now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(k.PrivateKey))
	if block == nil {
		return "", errNotHere
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return "", errNotHere
	}
	encode := base64.RawURLEncoding.EncodeToString
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": k.KeyID})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"iss": k.Email, "scope": "https://www.googleapis.com/auth/cloud-platform", "aud": audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
	if err != nil {
		return "", err
	}
	text := encode(head) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + encode(signature), nil
}
