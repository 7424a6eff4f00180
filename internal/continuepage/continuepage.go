// Package continuepage serves the redirect of an authorization server. Browsers send no SameSite=Strict cookie with a redirect
// from another site, but they do with a navigation that a page of this site begins: so the redirect is a page that continues to
// another page of this site. See [Serve].
package continuepage

import (
	"html/template"
	"net/http"
)

// maxQuery bounds the query of a redirect, in bytes.
const maxQuery = 16 << 10

var page = template.Must(template.New("continue").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sallyport</title><meta http-equiv="refresh" content="0;url={{.}}"></head>
<body><p><a href="{{.}}">Continue</a></p></body></html>
`))

// Serve writes a page that goes on to a path of this site with the query of the request. The query is that of another site: it
// is passed on, and neither checked nor shown.
func Serve(w http.ResponseWriter, r *http.Request, path string) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	if len(r.URL.RawQuery) > maxQuery {
		http.Error(w, "the address is too long", http.StatusRequestURITooLong)
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	_ = page.Execute(w, path+"?"+r.URL.Query().Encode()) // the client is gone
}
