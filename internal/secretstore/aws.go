package secretstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// aws is AWS Secrets Manager.
type aws struct {
	client
	set AWS
	env environment
	// plain reaches the addresses of the machine or container that give credentials.
	plain client

	mu   sync.Mutex
	keys awsKeys
}

// awsKeys are credentials. Those without an end do not expire.
type awsKeys struct {
	id, secret, session string
	ends                time.Time
}

func newAWS(set AWS, env environment, transport func(ca string) (http.RoundTripper, error)) (manager, error) {
	set.Endpoint = cmp.Or(set.Endpoint, env.first("AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_ENDPOINT_URL"))
	set.Profile = cmp.Or(set.Profile, env.first("AWS_PROFILE"), "default")
	if set.Endpoint != "" {
		if _, err := checkAddress("AWS Secrets Manager", set.Endpoint, false); err != nil {
			return nil, err
		}
	}
	t, err := transport(cmp.Or(set.CA, env.first("AWS_CA_BUNDLE")))
	if err != nil {
		return nil, err
	}
	a := &aws{client: newClient("AWS Secrets Manager", t), set: set, env: env, plain: newClient("the credentials of this machine", withoutProxy(t))}
	return a, nil
}

// withoutProxy returns a transport for addresses that only this machine reaches.
func withoutProxy(t http.RoundTripper) http.RoundTripper {
	if own, ok := t.(*http.Transport); ok {
		own = own.Clone()
		own.Proxy = nil
		return own
	}
	return t
}

// regionName matches a region, which becomes a part of a host name.
var regionName = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]+)+$`)

// region returns the region of a secret: that of its ARN, else that of the settings.
func (a *aws) region(n name) (string, error) {
	if parts := strings.Split(n.path, ":"); len(parts) > 3 && parts[0] == "arn" {
		if regionName.MatchString(parts[3]) {
			return parts[3], nil
		}
	}
	region := cmp.Or(a.set.Region, a.env.first("AWS_REGION", "AWS_DEFAULT_REGION"), a.sharedRegion())
	if !regionName.MatchString(region) {
		return "", &Error{Kind: Refused, Message: "the region of AWS is not known", Fix: "set secret_managers.aws.region, or AWS_REGION"}
	}
	return region, nil
}

// awsHost returns the host of a service in a region.
func awsHost(service, region string) string {
	host := service + "." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	return host
}

func (a *aws) read(ctx context.Context, n name) (answer, error) {
	region, err := a.region(n)
	if err != nil {
		return answer{}, err
	}
	ask := map[string]string{"SecretId": n.path}
	if v := n.version.Get("version"); v != "" {
		ask["VersionId"] = v
	}
	if v := n.version.Get("stage"); v != "" {
		ask["VersionStage"] = v
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return answer{}, err
	}
	res, err := a.signed(ctx, region, body)
	if err != nil {
		return answer{}, err
	}
	var got struct {
		SecretString *string
		SecretBinary []byte
	}
	if err := a.decode(res, &got); err != nil {
		return answer{}, err
	}
	if got.SecretString != nil {
		return answer{text: *got.SecretString}, nil
	}
	return answer{text: string(got.SecretBinary)}, nil
}

// signed sends a signed request. Credentials that have expired are replaced once.
func (a *aws) signed(ctx context.Context, region string, body []byte) (response, error) {
	address := cmp.Or(a.set.Endpoint, "https://"+awsHost("secretsmanager", region))
	for try := 0; ; try++ {
		keys, err := a.credentials(ctx, region)
		if err != nil {
			return response{}, err
		}
		header := http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"secretsmanager.GetSecretValue"}}
		u, err := url.Parse(strings.TrimSuffix(address, "/") + "/")
		if err != nil {
			return response{}, err
		}
		sign(header, http.MethodPost, u, body, keys, region, "secretsmanager", time.Now())
		res, err := a.send(ctx, http.MethodPost, u.String(), header, body)
		if err != nil {
			return response{}, err
		}
		err = explainAWS(a.client, res)
		if code := awsCode(res); err != nil && try == 0 && !keys.ends.IsZero() && (code == "ExpiredTokenException" || code == "UnrecognizedClientException") {
			a.forget()
			continue
		}
		return res, err
	}
}

// awsCode returns the error code of an answer, "" for none.
func awsCode(r response) string {
	var e struct {
		Type string `json:"__type"`
	}
	if json.Unmarshal(r.body, &e) != nil || e.Type == "" {
		e.Type, _, _ = strings.Cut(r.header.Get("X-Amzn-Errortype"), ":")
	}
	if _, after, ok := strings.Cut(e.Type, "#"); ok {
		e.Type = after
	}
	if !codeForm.MatchString(e.Type) {
		return ""
	}
	return e.Type
}

// explainAWS returns the error of an answer, nil for a success.
func explainAWS(c client, r response) error {
	e := r.statusError(c.what)
	if e == nil {
		return nil
	}
	code := awsCode(r)
	if code != "" {
		e.Message = c.what + " answers " + code
	}
	switch code {
	case "ResourceNotFoundException":
		e.Kind, e.Fix = Missing, "check the name and the region"
	case "InvalidRequestException":
		e.Kind, e.Fix = Missing, "it may be marked for deletion; restore it"
	case "ThrottlingException", "InternalServiceError", "RequestLimitExceeded":
		e.Kind, e.Fix = Unreachable, "try again later"
	case "AccessDeniedException", "DecryptionFailure":
		e.Kind, e.Fix = Refused, "allow secretsmanager:GetSecretValue on it, and kms:Decrypt on its key"
	case "InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired":
		e.Kind, e.Fix = Refused, "check the secret key, the region and the clock of this machine"
	case "UnrecognizedClientException", "ExpiredTokenException", "InvalidClientTokenId", "IncompleteSignature", "MissingAuthenticationToken":
		e.Kind, e.Fix = Refused, "check the access key, and that its session has not expired"
	}
	return e
}

func (a *aws) renew(context.Context, lease) (lease, error) { return lease{}, errNoLease }

// forget drops the credentials.
func (a *aws) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = awsKeys{}
}

// early is how long before their end credentials are replaced.
const early = 2 * time.Minute

// credentials returns credentials, from the first source that has some.
func (a *aws) credentials(ctx context.Context, region string) (awsKeys, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.keys.id != "" && !a.keys.ends.IsZero() && time.Now().Add(early).Before(a.keys.ends) {
		return a.keys, nil
	}
	for _, source := range []func(context.Context, string) (awsKeys, error){a.fromVariables, a.fromWebIdentity, a.fromFiles, a.fromContainer, a.fromInstance} {
		keys, err := source(ctx, region)
		if errors.Is(err, errNotHere) {
			continue
		}
		if err == nil && (keys.id == "" || keys.secret == "") {
			err = &Error{Kind: Refused, Message: "the credentials of AWS are incomplete", Fix: "both the access key and the secret key are needed"}
		}
		a.keys = keys
		return keys, err
	}
	return awsKeys{}, &Error{Kind: Refused, Message: "there are no credentials for AWS", Fix: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or secret_managers.aws.instance"}
}

// errNotHere is the error of a source that is not configured.
var errNotHere = errors.New("not configured")
