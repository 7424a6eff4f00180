// Package webhook signs requests and verifies their signatures, as Standard Webhooks (https://www.standardwebhooks.com) says:
// HMAC-SHA256 of "id.timestamp.body", in base64 after "v1,".
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a request.
const (
	idHeader        = "Webhook-Id"
	timestampHeader = "Webhook-Timestamp"
	signatureHeader = "Webhook-Signature"
)

// tolerance is the maximum age of a timestamp: an older request may be a replay.
const tolerance = 5 * time.Minute

const (
	// maxSignatures limits the signatures of a request that are checked: while a secret is rotated, a sender signs with both.
	maxSignatures = 8
	// MaxID is the maximum length of an id, in bytes.
	MaxID = 256
)

// ErrSignature is the same for all failures, to reveal as little as possible.
var ErrSignature = errors.New("the signature is missing or wrong")

// Sign sets the headers of a request. Without a secret it has no signature.
func Sign(header http.Header, secret, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	header.Set(idHeader, id)
	header.Set(timestampHeader, timestamp)
	if secret != "" {
		header.Set(signatureHeader, "v1,"+base64.StdEncoding.EncodeToString(MAC(key(secret), id, ".", timestamp, ".", string(body))))
	}
}

// Verify checks the signature of a request in constant time, and returns the request's id.
func Verify(secret string, header http.Header, body []byte, now time.Time) (id string, err error) {
	id, timestamp := header.Get(idHeader), header.Get(timestampHeader)
	sum := MAC(key(secret), id, ".", timestamp, ".", string(body))
	given := strings.Fields(header.Get(signatureHeader))
	good := false
	for _, one := range given[:min(len(given), maxSignatures)] {
		encoded, known := strings.CutPrefix(one, "v1,")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		good = known && err == nil && hmac.Equal(signature, sum) || good
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if !good || err != nil || id == "" || len(id) > MaxID || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return "", ErrSignature
	}
	return id, nil
}

// key returns the key of a secret: base64 after "whsec_", else the text itself.
func key(secret string) string {
	encoded, marked := strings.CutPrefix(secret, "whsec_")
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if !marked || err != nil {
		return secret
	}
	return string(decoded)
}

// MAC returns the HMAC-SHA256 of parts, one after the other.
func MAC(key string, parts ...string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	for _, part := range parts {
		_, _ = mac.Write([]byte(part)) // never an error
	}
	return mac.Sum(nil)
}
