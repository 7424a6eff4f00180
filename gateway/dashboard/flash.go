package dashboard

import (
	"encoding/base64"
	"net/http"

	"sallyport/internal/sanitize"
)

// A flash message is the result of a form, shown once on the next page. A cookie carries it.
const (
	flashCookie = "sallyport_said"
	maxFlash    = 300
)

// Flash is the result or the error of a form.
type Flash struct {
	Text string
	Bad  bool
}

func setFlash(w http.ResponseWriter, said Flash) {
	if said.Text == "" {
		return
	}
	tone := "+"
	if said.Bad {
		tone = "-"
	}
	value := base64.RawURLEncoding.EncodeToString([]byte(tone + sanitize.Line(said.Text, maxFlash)))
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: value, Path: "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// takeFlash returns the message of a request, and deletes the cookie.
func takeFlash(w http.ResponseWriter, r *http.Request) Flash {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return Flash{}
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(text) == 0 {
		return Flash{}
	}
	return Flash{Text: sanitize.Line(string(text[1:]), maxFlash), Bad: text[0] == '-'}
}
