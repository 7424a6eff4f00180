package tokenexchange

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// Claims are those of a JWT that a check needs. Its signature is not verified: a token that comes directly from the token
// endpoint over TLS is of its server.
type Claims struct {
	// Type is the parameter typ of the header.
	Type            string
	Issuer, Subject string
	Audience        []string
	ClientID        string
	Resource        []string
}

// Decode returns the claims of a token; false if it is no JWT.
func Decode(token string) (Claims, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Claims{}, false
	}
	var header struct {
		Type string `json:"typ"`
		Alg  string `json:"alg"`
	}
	var body struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience texts  `json:"aud"`
		Client   string `json:"client_id"`
		Resource texts  `json:"resource"`
	}
	if !decodePart(parts[0], &header) || header.Alg == "" || !decodePart(parts[1], &body) {
		return Claims{}, false
	}
	return Claims{Type: header.Type, Issuer: body.Issuer, Subject: body.Subject, Audience: body.Audience, ClientID: body.Client, Resource: body.Resource}, true
}

func decodePart(part string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(data, into) == nil
}

// texts is a claim that is a text or a list of them.
type texts []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *texts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// For reports whether a token is for one of the audiences; a slash at the end makes no difference.
func (c Claims) For(audiences ...string) bool { return names(c.Audience, audiences) }

// Of reports whether a token is for a resource.
func (c Claims) Of(resource string) bool { return names(c.Resource, []string{resource}) }

func names(have, want []string) bool {
	return slices.ContainsFunc(want, func(w string) bool {
		return slices.ContainsFunc(have, func(h string) bool { return strings.TrimSuffix(h, "/") == strings.TrimSuffix(w, "/") })
	})
}
