package dashboard

import (
	"encoding/base64"
	"net/http"

	"sallyport/internal/plain"
)

// What a form has done is said once, on the page that comes next: a cookie carries it there.
const (
	saidCookie = "sallyport_said"
	maxSaid    = 300
)

func setSaid(w http.ResponseWriter, text string) {
	if text == "" {
		return
	}
	value := base64.RawURLEncoding.EncodeToString([]byte(plain.Line(text, maxSaid)))
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Value: value, Path: "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// takeSaid returns what is to be said, and has the browser forget it.
func takeSaid(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(saidCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return plain.Line(string(text), maxSaid)
}
