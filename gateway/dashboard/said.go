package dashboard

import (
	"encoding/base64"
	"net/http"

	"sallyport/internal/sanitize"
)

// A flash message is the result of a form, shown once on the next page. A cookie carries it.
const (
	saidCookie = "sallyport_said"
	maxSaid    = 300
)

// Said is the result or the error of a form.
type Said struct {
	Text string
	Bad  bool
}

func setSaid(w http.ResponseWriter, said Said) {
	if said.Text == "" {
		return
	}
	tone := "+"
	if said.Bad {
		tone = "-"
	}
	value := base64.RawURLEncoding.EncodeToString([]byte(tone + sanitize.Line(said.Text, maxSaid)))
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Value: value, Path: "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// takeSaid returns the message of a request, and deletes the cookie.
func takeSaid(w http.ResponseWriter, r *http.Request) Said {
	cookie, err := r.Cookie(saidCookie)
	if err != nil {
		return Said{}
	}
	http.SetCookie(w, &http.Cookie{Name: saidCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(text) == 0 {
		return Said{}
	}
	return Said{Text: sanitize.Line(string(text[1:]), maxSaid), Bad: text[0] == '-'}
}
