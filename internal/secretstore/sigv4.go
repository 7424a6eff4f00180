package secretstore

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// sign adds the headers of AWS Signature Version 4 to those of a request without a query. All headers are signed.
func sign(header http.Header, method string, u *url.URL, body []byte, keys awsKeys, region, service string, now time.Time) {
	now = now.UTC()
	moment, day := now.Format("20060102T150405Z"), now.Format("20060102")
	header.Set("X-Amz-Date", moment)
	if keys.session != "" {
		header.Set("X-Amz-Security-Token", keys.session)
	}
	signed, lines := canonicalHeaders(header, u.Host)
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	request := strings.Join([]string{method, path, "", lines, signed, digest(body)}, "\n")
	scope := day + "/" + region + "/" + service + "/aws4_request"
	text := strings.Join([]string{"AWS4-HMAC-SHA256", moment, scope, digest([]byte(request))}, "\n")
	key := []byte("AWS4" + keys.secret)
	for _, part := range []string{day, region, service, "aws4_request", text} {
		key = authenticate(key, part)
	}
	header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+keys.id+"/"+scope+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(key))
}

// canonicalHeaders returns the names of the headers and host, and their lines, sorted.
func canonicalHeaders(header http.Header, host string) (names, lines string) {
	values := map[string]string{"host": host}
	for name, all := range header {
		values[strings.ToLower(name)] = strings.Join(strings.Fields(strings.Join(all, ",")), " ")
	}
	sorted := slices.Sorted(maps.Keys(values))
	var b strings.Builder
	for _, name := range sorted {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return strings.Join(sorted, ";"), b.String()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func authenticate(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
