// Package dashboard is the gateway's face for people: pages that the server renders, at / and below /ui/. [New]
// returns the handler of them. Each page is a row of the table in pages.go: where it is, what it is called, who may
// see it, and a method that gets its data from one of the gateway's verbs; a template of the same name shows that.
// The request's context has the caller, as for the other faces.
//
// All text of upstreams, programs and clients is hostile. It gets into a page through html/template only, and the
// policy of every answer allows no script but ours: files of static/, served under names that have their digests.
// Pages can be read, and forms sent, without any script; with it, parts of them stay up to date by themselves.
package dashboard
