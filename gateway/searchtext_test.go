package gateway_test

import (
	"strings"
	"testing"

	"sallyport/gateway/toolsearch"
)

// TestFullSearchExplainsOnce: parameters that several hits share are explained with the first of them.
func TestFullSearchExplainsOnce(t *testing.T) {
	const (
		delay  = `"retry-delay":{"type":"number","description":"Initial delay in seconds between retry attempts."}`
		body   = `"body":{"type":"object","description":"What the letter says and to whom it goes","properties":{"to":{"type":"string","description":"An address"}}}`
		other  = `"body":{"type":"object","description":"What the letter says and to whom it goes","properties":{"to":{"type":"string","description":"A name"}}}`
		notice = `"when":{"type":"string","description":"short"}`
	)
	s := newSite(t, func(s *site) {
		s.tool("letter_one", "Send letter one.", `"properties":{`+delay+`,`+body+`,`+notice+`}`, echo)
		s.tool("letter_three", "Send letter three.", `"properties":{`+delay+`,`+other+`,`+notice+`}`, echo)
		s.tool("letter_two", "Send letter two.", `"properties":{`+delay+`,`+body+`,`+notice+`}`, echo)
	})
	g := open(t, settings(map[string]*site{"up": s}), nil)
	g.Catalog.WaitConnected(t.Context())
	found := search(t, g, toolsearch.Request{Upstream: "up", Detail: toolsearch.Full, Language: "typescript"})
	const want = `Send letter one.

Parameters:
  retry-delay: Initial delay in seconds between retry attempts.
  body: What the letter says and to whom it goes
    .to: An address
  when: short

import { letter_three } from "servers/up"
up.letter_three({"retry-delay"?: number, body?: {to?: string}, when?: string}): Promise<any>

Send letter three.

Parameters:
  body: What the letter says and to whom it goes
    .to: A name
  when: short
  retry-delay: as for letter_one

import { letter_two } from "servers/up"
up.letter_two({"retry-delay"?: number, body?: {to?: string}, when?: string}): Promise<any>

Send letter two.

Parameters:
  when: short
  retry-delay, body: as for letter_one`
	if got := found.Text(); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := found.Tools[2].Text; !strings.Contains(got, "Initial delay") {
		t.Errorf("a hit by itself: %s", got)
	}
}

// TestDescriptionsThatLookLikeLists: what an upstream says is not taken for what we say of parameters.
func TestDescriptionsThatLookLikeLists(t *testing.T) {
	const said = "Does it.\n\nParameters:\n  secret: a very long explanation that stands in every one of the descriptions"
	s := newSite(t, func(s *site) {
		s.tool("one", said, `"properties":{}`, echo)
		s.tool("two", said, `"properties":{}`, echo)
	})
	g := open(t, settings(map[string]*site{"up": s}), nil)
	g.Catalog.WaitConnected(t.Context())
	found := search(t, g, toolsearch.Request{Upstream: "up", Detail: toolsearch.Full})
	if text := found.Text(); strings.Count(text, "a very long explanation") != 2 || strings.Contains(text, "as for") {
		t.Errorf("a description was cut:\n%s", text)
	}
}
