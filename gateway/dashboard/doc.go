// Package dashboard is the gateway's web interface: server-rendered pages at / and below /ui/. [New] returns their
// handler. Each page is a row of the table in pages.go: its path, title and required scope, and a method that gets
// its data from the gateway; a template renders the data. The request's context has the caller, as for the API.
//
// All text of upstreams, programs and clients is untrusted. It gets into a page through html/template only, and the
// content security policy allows only the gateway's own scripts: files of static/, with their digests in their names.
// Pages and forms work without scripts; with scripts, parts of the pages update themselves.
package dashboard
