package trigger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Schemes of signatures, as definitions name them.
const (
	standard = "standard"
	gitHub   = "github"
)

// tolerance is the maximum age of a timestamp: an older request may be a replay.
const tolerance = 5 * time.Minute

const (
	// maxSignatures limits the signatures of a request that are checked: while a secret is rotated, a sender signs with both.
	maxSignatures = 8
	maxID         = 256
)

// errSignature is the same for all failures, to reveal as little as possible.
var errSignature = errors.New("the signature is missing or wrong")

// verify checks the signature of a request and returns the request id.
func verify(scheme, secret string, header http.Header, body []byte, now time.Time) (id string, err error) {
	if scheme == gitHub {
		return verifyGitHub(secret, header, body)
	}
	return verifyStandard(secret, header, body, now)
}

// verifyStandard implements Standard Webhooks: HMAC-SHA256 of "id.timestamp.body", in base64 after "v1,".
func verifyStandard(secret string, header http.Header, body []byte, now time.Time) (string, error) {
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	sum := sign(standardKey(secret), id, ".", timestamp, ".", string(body))
	given := strings.Fields(header.Get("Webhook-Signature"))
	good := false
	for _, one := range given[:min(len(given), maxSignatures)] {
		encoded, known := strings.CutPrefix(one, "v1,")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		good = known && err == nil && hmac.Equal(signature, sum) || good
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if !good || err != nil || id == "" || len(id) > maxID || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return "", errSignature
	}
	return id, nil
}

// standardKey returns the key of a secret: base64 after "whsec_", else the text itself.
func standardKey(secret string) string {
	encoded, marked := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !marked || err != nil {
		return secret
	}
	return string(key)
}

// verifyGitHub implements GitHub's scheme: HMAC-SHA256 of the body, in hex after "sha256=". The delivery id is not signed.
func verifyGitHub(secret string, header http.Header, body []byte) (string, error) {
	id := header.Get("X-Github-Delivery")
	encoded, known := strings.CutPrefix(header.Get("X-Hub-Signature-256"), "sha256=")
	signature, err := hex.DecodeString(encoded)
	if !hmac.Equal(signature, sign(secret, string(body))) || !known || err != nil || id == "" || len(id) > maxID {
		return "", errSignature
	}
	return id, nil
}

func sign(key string, parts ...string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	for _, part := range parts {
		_, _ = mac.Write([]byte(part)) // never an error
	}
	return mac.Sum(nil)
}
