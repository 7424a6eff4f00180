package secretstoretest

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// AWS is a twin of AWS Secrets Manager, of AssumeRoleWithWebIdentity of STS, and of the metadata service of an instance.
type AWS struct {
	// Region is its only region.
	Region string
	// Role and WebToken are for STS; Instance is the role of the instance.
	Role, WebToken, Instance string
	// Lasts is the lifetime of temporary credentials.
	Lasts time.Duration

	mu      sync.Mutex
	keys    map[string]awsKey // by access key id
	secrets map[string]string
	issued  int
	denied  bool
	busy    bool
}

type awsKey struct {
	secret, session string
	ends            time.Time
}

// Key makes an access key valid.
func (a *AWS) Key(id, secret, session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addKey(id, awsKey{secret: secret, session: session})
}

func (a *AWS) addKey(id string, k awsKey) {
	if a.keys == nil {
		a.keys = map[string]awsKey{}
	}
	a.keys[id] = k
}

// Put stores a secret.
func (a *AWS) Put(name, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.secrets == nil {
		a.secrets = map[string]string{}
	}
	a.secrets[name] = text
}

// Set makes it deny or throttle all reads.
func (a *AWS) Set(denied, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied, a.busy = denied, busy
}

// Issued returns how many temporary credentials it gave.
func (a *AWS) Issued() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.issued
}

// ServeHTTP implements [http.Handler].
func (a *AWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	const roles = "/latest/meta-data/iam/security-credentials/"
	switch {
	case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") != "":
		_, _ = io.WriteString(w, "imds-session")
	case strings.HasPrefix(r.URL.Path, "/latest/") && r.Header.Get("X-Aws-Ec2-Metadata-Token") != "imds-session":
		http.Error(w, "Unauthorized", http.StatusUnauthorized) // version 1 is off
	case r.URL.Path == roles && a.Instance != "":
		_, _ = io.WriteString(w, a.Instance)
	case r.URL.Path == roles+a.Instance && a.Instance != "":
		id, k := a.issue()
		answer(w, http.StatusOK, map[string]any{"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": id, "SecretAccessKey": k.secret, "Token": k.session, "Expiration": k.ends.UTC().Format(time.RFC3339)})
	case strings.HasPrefix(r.URL.Path, "/latest/"):
		http.NotFound(w, r)
	case r.Header.Get("X-Amz-Target") == "":
		a.assumeRole(w, body)
	default:
		a.getSecret(w, r, body)
	}
}

// issue gives temporary credentials.
func (a *AWS) issue() (string, awsKey) {
	a.issued++
	id := fmt.Sprintf("ASIATEMPORARY%07d", a.issued)
	k := awsKey{"temporary/secret+" + id, "session==" + id, time.Now().Add(a.Lasts)}
	a.addKey(id, k)
	return id, k
}

func (a *AWS) assumeRole(w http.ResponseWriter, body []byte) {
	form, err := url.ParseQuery(string(body))
	w.Header().Set("Content-Type", "text/xml")
	if err != nil || form.Get("Action") != "AssumeRoleWithWebIdentity" || form.Get("Version") != "2011-06-15" || form.Get("RoleArn") != a.Role || a.WebToken == "" || form.Get("WebIdentityToken") != a.WebToken || form.Get("RoleSessionName") == "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>No OpenIDConnect provider found</Message></Error></ErrorResponse>`)
		return
	}
	id, k := a.issue()
	fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, id, k.secret, k.session, k.ends.UTC().Format(time.RFC3339))
}

func awsError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": code, "Message": message})
}

func (a *AWS) getSecret(w http.ResponseWriter, r *http.Request, body []byte) {
	if code, why := a.verify(r, body); code != "" {
		awsError(w, http.StatusBadRequest, code, why)
		return
	}
	var in struct {
		SecretID     string `json:"SecretId"`
		VersionStage string
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1":
		awsError(w, http.StatusBadRequest, "UnknownOperationException", "")
	case json.Unmarshal(body, &in) != nil || in.SecretID == "":
		awsError(w, http.StatusBadRequest, "InvalidParameterException", "")
	case a.busy:
		awsError(w, http.StatusBadRequest, "ThrottlingException", "Rate exceeded")
	case a.denied:
		awsError(w, http.StatusBadRequest, "AccessDeniedException", "User is not authorized to perform: secretsmanager:GetSecretValue because no identity-based policy allows the action")
	case a.secrets[in.SecretID] == "" || in.VersionStage == "AWSPENDING":
		awsError(w, http.StatusBadRequest, "ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_ = json.NewEncoder(w).Encode(map[string]any{"Name": in.SecretID, "VersionId": "1", "SecretString": a.secrets[in.SecretID], "VersionStages": []string{"AWSCURRENT"}, "CreatedDate": 1.5e9})
	}
}

// credential is the header of a signed request, as the documentation of Signature Version 4 has it.
var credential = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([A-Z0-9]+)/(\d{8})/([a-z0-9-]+)/secretsmanager/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)

// verify recomputes the signature from the request as it arrived; code is "" if it is right.
func (a *AWS) verify(r *http.Request, body []byte) (code, why string) {
	m := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return "IncompleteSignatureException", "Authorization header requires its parameters"
	}
	key, known := a.keys[m[1]]
	moment, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	names := strings.Split(m[4], ";")
	switch {
	case !known || key.session != r.Header.Get("X-Amz-Security-Token"):
		return "UnrecognizedClientException", "The security token included in the request is invalid."
	case !key.ends.IsZero() && time.Now().After(key.ends):
		return "ExpiredTokenException", "The security token included in the request is expired"
	case err != nil || time.Since(moment).Abs() > 5*time.Minute || !strings.HasPrefix(r.Header.Get("X-Amz-Date"), m[2]):
		return "InvalidSignatureException", "Signature expired"
	case m[3] != a.Region:
		return "InvalidSignatureException", "Credential should be scoped to a valid region"
	case !slices.IsSorted(names) || !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date"):
		return "InvalidSignatureException", "'Host' or 'X-Amz-Date' must be a signed header"
	}
	return a.compare(r, body, m, names, key)
}

// compare recomputes the signature; m are the parts of the header.
func (a *AWS) compare(r *http.Request, body []byte, m, names []string, key awsKey) (code, why string) {
	var lines strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		lines.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	canonical := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n%x", r.Method, r.URL.EscapedPath(), r.URL.RawQuery, lines.String(), m[4], sha256.Sum256(body))
	scope := m[2] + "/" + m[3] + "/secretsmanager/aws4_request"
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", r.Header.Get("X-Amz-Date"), scope, sha256.Sum256([]byte(canonical)))
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		_, _ = io.WriteString(h, text)
		return h.Sum(nil)
	}
	signing := mac(mac(mac(mac([]byte("AWS4"+key.secret), m[2]), m[3]), "secretsmanager"), "aws4_request")
	if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(mac(signing, text))), []byte(m[5])) != 1 {
		return "InvalidSignatureException", "The request signature we calculated does not match the signature you provided."
	}
	return "", ""
}
