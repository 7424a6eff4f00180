package secretstore

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/internal/weburl"
)

func (a *aws) fromVariables(context.Context, string) (awsKeys, error) {
	id, secret := a.env.first("AWS_ACCESS_KEY_ID"), a.env.first("AWS_SECRET_ACCESS_KEY")
	if id == "" && secret == "" {
		return awsKeys{}, errNotHere
	}
	return awsKeys{id: id, secret: secret, session: a.env.first("AWS_SESSION_TOKEN")}, nil
}

// fromWebIdentity assumes a role by a token of an OpenID provider, such as that of a pod in EKS.
func (a *aws) fromWebIdentity(ctx context.Context, region string) (awsKeys, error) {
	file, role := a.env.first("AWS_WEB_IDENTITY_TOKEN_FILE"), a.env.first("AWS_ROLE_ARN")
	if file == "" || role == "" {
		return awsKeys{}, errNotHere
	}
	token, err := readCredential(file)
	if err != nil {
		return awsKeys{}, err
	}
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {role}, "WebIdentityToken": {string(token)},
		"RoleSessionName": {cmp.Or(a.env.first("AWS_ROLE_SESSION_NAME"), "sallyport")},
	}
	address := cmp.Or(a.env.first("AWS_ENDPOINT_URL_STS"), "https://"+awsHost("sts", region))
	if _, err := checkAddress("AWS STS", address, false); err != nil {
		return awsKeys{}, err
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	sts := client{"AWS STS", a.http}
	res, err := sts.send(ctx, http.MethodPost, strings.TrimSuffix(address, "/")+"/", header, []byte(form.Encode()))
	if err != nil {
		return awsKeys{}, err
	}
	return sts.assumedRole(res)
}

func (c client) assumedRole(res response) (awsKeys, error) {
	if e := res.statusError(c.what); e != nil {
		var refused struct {
			Code string `xml:"Error>Code"`
		}
		if xml.Unmarshal(res.body, &refused) == nil && codeForm.MatchString(refused.Code) {
			e.Message = c.what + " answers " + refused.Code
		}
		e.Fix = cmp.Or(e.Fix, "check AWS_ROLE_ARN and the trust policy of the role")
		return awsKeys{}, e
	}
	var got struct {
		Keys struct {
			AccessKeyID     string `xml:"AccessKeyId"`
			SecretAccessKey string
			SessionToken    string
			Expiration      time.Time
		} `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	if xml.Unmarshal(res.body, &got) != nil || got.Keys.AccessKeyID == "" {
		return awsKeys{}, &Error{Kind: Invalid, Message: c.what + " answers something else than its API"}
	}
	k := got.Keys
	return awsKeys{k.AccessKeyID, k.SecretAccessKey, k.SessionToken, k.Expiration}, nil
}

// fromFiles reads the profile from the shared files.
func (a *aws) fromFiles(context.Context, string) (awsKeys, error) {
	values := a.profile("AWS_SHARED_CREDENTIALS_FILE", "credentials", a.set.Profile)
	if len(values) == 0 || values["aws_access_key_id"] == "" {
		return awsKeys{}, errNotHere
	}
	return awsKeys{id: values["aws_access_key_id"], secret: values["aws_secret_access_key"], session: values["aws_session_token"]}, nil
}

// sharedRegion returns the region of the profile, "" for none.
func (a *aws) sharedRegion() string {
	section := a.set.Profile
	if section != "default" {
		section = "profile " + section
	}
	return a.profile("AWS_CONFIG_FILE", "config", section)["region"]
}

// profile returns the values in a section of a shared file, which the variable or the home folder names.
func (a *aws) profile(variable, file, section string) map[string]string {
	path := a.env.first(variable)
	if home := a.env.first("HOME", "USERPROFILE"); path == "" && home != "" {
		path = filepath.Join(home, ".aws", file)
	}
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) > maxAnswer {
		return nil
	}
	return readSection(data, section)
}

// readSection returns the values in a section of an INI file.
func readSection(data []byte, section string) map[string]string {
	values, inside := map[string]string{}, false
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			inside = strings.TrimSpace(strings.TrimSuffix(name, "]")) == section
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok && inside {
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return values
}

// containerHosts are those that give the credentials of a container over plain HTTP, as the AWS tools allow.
var containerHosts = []string{"169.254.170.2", "169.254.170.23", "fd00:ec2::23"}

// fromContainer gets the credentials of a task in ECS or a pod in EKS.
func (a *aws) fromContainer(ctx context.Context, _ string) (awsKeys, error) {
	address := a.env.first("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if relative := a.env.first("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		address = "http://169.254.170.2/" + strings.TrimPrefix(relative, "/")
	}
	if address == "" {
		return awsKeys{}, errNotHere
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && !weburl.IsLoopback(u.Hostname()) && !slices.Contains(containerHosts, u.Hostname()) {
		return awsKeys{}, &Error{Kind: Refused, Message: "AWS_CONTAINER_CREDENTIALS_FULL_URI names another host than AWS's own", Fix: "use https://"}
	}
	header := http.Header{}
	if token := a.env.first("AWS_CONTAINER_AUTHORIZATION_TOKEN"); token != "" {
		header.Set("Authorization", token)
	}
	if file := a.env.first("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		token, err := readCredential(file)
		if err != nil {
			return awsKeys{}, err
		}
		header.Set("Authorization", string(token))
	}
	res, err := a.plain.send(ctx, http.MethodGet, address, header, nil)
	if err != nil {
		return awsKeys{}, err
	}
	return a.plain.machineKeys(res)
}

// fromInstance gets the credentials of an EC2 instance from its metadata service, version 2.
func (a *aws) fromInstance(ctx context.Context, _ string) (awsKeys, error) {
	if !a.set.Instance {
		return awsKeys{}, errNotHere
	}
	base := strings.TrimSuffix(cmp.Or(a.env.first("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254"), "/")
	if u, err := url.Parse(base); err != nil || u.Scheme == "http" && !weburl.IsLoopback(u.Hostname()) && !isLinkLocal(u.Hostname()) {
		return awsKeys{}, &Error{Kind: Refused, Message: "AWS_EC2_METADATA_SERVICE_ENDPOINT must be an address of this machine"}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	token, err := a.machineText(ctx, http.MethodPut, base+"/latest/api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"300"}})
	if err != nil {
		return awsKeys{}, err
	}
	header := http.Header{"X-Aws-Ec2-Metadata-Token": {token}}
	const roles = "/latest/meta-data/iam/security-credentials/"
	role, err := a.machineText(ctx, http.MethodGet, base+roles, header)
	if err != nil {
		return awsKeys{}, err
	}
	role, _, _ = strings.Cut(role, "\n")
	res, err := a.plain.send(ctx, http.MethodGet, base+roles+url.PathEscape(role), header, nil)
	if err != nil {
		return awsKeys{}, err
	}
	return a.plain.machineKeys(res)
}

func isLinkLocal(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLinkLocalUnicast() || host == "fd00:ec2::254")
}

// machineText returns a short text of the metadata service.
func (a *aws) machineText(ctx context.Context, method, address string, header http.Header) (string, error) {
	res, err := a.plain.send(ctx, method, address, header, nil)
	if err != nil {
		return "", err
	}
	if e := res.statusError(a.plain.what); e != nil {
		return "", e
	}
	text := strings.TrimSpace(string(res.body))
	if text == "" || len(text) > 1000 {
		return "", &Error{Kind: Invalid, Message: "the metadata service answers something else than its API"}
	}
	return text, nil
}

// machineKeys reads the credentials of a container or an instance.
func (c client) machineKeys(res response) (awsKeys, error) {
	if e := res.statusError(c.what); e != nil {
		return awsKeys{}, e
	}
	var got struct {
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      time.Time
	}
	if json.Unmarshal(res.body, &got) != nil || got.Expiration.IsZero() {
		return awsKeys{}, &Error{Kind: Invalid, Message: c.what + " are not what the API of AWS says"}
	}
	return awsKeys{got.AccessKeyID, got.SecretAccessKey, got.Token, got.Expiration}, nil
}
