package trigger

import (
	"crypto/hmac"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"sallyport/internal/webhook"
)

// Schemes of signatures, as definitions name them.
const (
	standard = "standard"
	gitHub   = "github"
)

// verify checks the signature of a request and returns the request id.
func verify(scheme, secret string, header http.Header, body []byte, now time.Time) (id string, err error) {
	if scheme == gitHub {
		return verifyGitHub(secret, header, body)
	}
	return webhook.Verify(secret, header, body, now)
}

// verifyGitHub implements GitHub's scheme: HMAC-SHA256 of the body, in hex after "sha256=". The delivery id is not signed.
func verifyGitHub(secret string, header http.Header, body []byte) (string, error) {
	id := header.Get("X-Github-Delivery")
	encoded, known := strings.CutPrefix(header.Get("X-Hub-Signature-256"), "sha256=")
	signature, err := hex.DecodeString(encoded)
	if !hmac.Equal(signature, webhook.MAC(secret, string(body))) || !known || err != nil || id == "" || len(id) > webhook.MaxID {
		return "", webhook.ErrSignature
	}
	return id, nil
}
