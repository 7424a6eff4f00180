package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"sallyport/internal/access"
	"sallyport/internal/sanitize"
	"sallyport/internal/tokenexchange"
)

// Exchange is how a principal gets tokens in exchange for the one with which it signed in (RFC 8693).
type Exchange struct {
	tokenexchange.Exchange
	// Subject returns the token of the principal, of a kind and an issuer; false if it has none.
	Subject func(issuer, kind string) (access.Subject, bool)
}

// route is where requests with secrets may go, and the client that sends them.
type route struct {
	guard guard
	web   *http.Client
}

// exchanger exchanges the tokens of one principal.
type exchanger struct {
	*Exchange
	route
	h *Handler // its store, lock and clock
	// began is called after the first exchange for a person; nil for none.
	began func(ctx context.Context)
}

// newExchanger returns nil for settings without an exchange. Its client follows no redirect: the identity provider is that of the
// settings.
func newExchanger(h *Handler) *exchanger {
	s := h.settings.Exchange
	if s == nil {
		return nil
	}
	g := newGuard(cmp.Or(s.TokenEndpoint, s.Issuer))
	web := g.client(h.opts.Client, Settings{})
	web.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	return &exchanger{Exchange: s, route: route{g, web}, h: h}
}

// OnExchange makes f be called after the first exchange for a person. Call it before the handler is used.
func (h *Handler) OnExchange(f func(ctx context.Context)) {
	if h.exchange != nil {
		h.exchange.began = f
	}
}

// subject returns the token of the principal.
func (e *exchanger) subject() (access.Subject, bool) {
	if e.Subject == nil {
		return access.Subject{}, false
	}
	return e.Subject(e.Issuer, e.SubjectTokenType)
}

// person returns a digest of who a token is of.
func person(s access.Subject) string { return digest(s.Issuer, s.ID) }

func digest(parts ...string) string {
	data, err := json.Marshal(parts)
	if err != nil { // texts only
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// terms returns a digest of the settings on which a token depends.
func (e *exchanger) terms() string {
	return digest(e.Issuer, e.TokenEndpoint, e.ClientID, e.SubjectTokenType, e.RequestedTokenType, e.Audience, e.Resource, strings.Join(e.h.settings.Scopes, " "), e.h.settings.ClientID, e.h.settings.ClientMetadata, e.h.settings.Issuer)
}

// issued reports whether the identity provider issued the token of a record.
func (e *exchanger) issued(r *record) bool {
	return e != nil && r.Terms != "" && r.Issuer == e.Issuer && e.RequestedTokenType != tokenexchange.IDJAG
}

// made reports whether a record is of an exchange by the settings in force, for the person of a token if there is one.
func (e *exchanger) made(r *record, s access.Subject) bool {
	return r != nil && r.Terms == e.terms() && (s.Token == "" || r.Person == person(s))
}

// token returns a token other than the refused one: the stored one, or one in exchange for the token of the principal.
// Without either, it is that of a login if the settings allow one, which is "" before it.
func (e *exchanger) token(ctx context.Context, refused string) (string, error) {
	subject, present := e.subject()
	r, err := e.h.store.readCached()
	if err != nil {
		return "", err
	}
	switch {
	case e.made(r, subject) && r.Secret.Access != refused && (r.fresh(e.h.opts.Now()) || !present && r.usable(e.h.opts.Now())):
		return r.Secret.Access, nil
	case e.Login && (!present || isLogin(r)):
		return e.h.loginToken(ctx, r)
	case !present:
		return "", e.needSubject()
	}
	return e.newToken(ctx, subject, refused)
}

// isLogin reports whether a record is of a login that has not ended.
func isLogin(r *record) bool { return r != nil && r.Terms == "" && r.Ended == "" }

// needSubject is the error of a principal without a token to exchange.
func (e *exchanger) needSubject() error {
	what := "access token with which its client calls the gateway"
	if e.SubjectTokenType == tokenexchange.IDToken {
		what = "ID token of its sign-in"
	}
	return &LoginError{
		Upstream: e.h.settings.ID, Exchange: true,
		Reason: fmt.Sprintf("upstream %s needs the %s from %s, to exchange it: this caller has none that is valid, so it has to sign in there again", e.h.settings.ID, what, sanitize.Line(e.Issuer, 200)),
	}
}

// newToken exchanges the token of a principal. Concurrent callers share one exchange.
func (e *exchanger) newToken(ctx context.Context, subject access.Subject, refused string) (string, error) {
	release, err := e.h.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	old, err := e.h.store.read()
	if _, lost := errors.AsType[*LoginError](err); err != nil && !lost {
		return "", err
	}
	known := e.made(old, subject)
	if known && old.Secret.Access != refused && old.fresh(e.h.opts.Now()) {
		return old.Secret.Access, nil
	}
	r, err := e.trade(ctx, subject)
	switch {
	case err == nil:
		if known {
			r.Since = old.Since
		}
		return r.Secret.Access, e.keep(ctx, r, !known)
	case known && old.Secret.Access != refused && old.usable(e.h.opts.Now()):
		e.h.log.Warn("token not exchanged, the old one is still good", "err", err)
		return old.Secret.Access, nil
	}
	return "", fmt.Errorf("exchange the token of the caller: %w", err)
}

// keep stores a record, unless its person has logged out during the exchange: then the logout waits for the lock, or has deleted the
// records already.
func (e *exchanger) keep(ctx context.Context, r *record, first bool) error {
	if now, ok := e.subject(); !ok || person(now) != r.Person {
		return e.needSubject()
	}
	e.h.log.Info("token exchanged", "expires", r.Expires)
	if err := e.h.store.write(r); err != nil {
		return err
	}
	if first && e.began != nil {
		e.began(ctx)
	}
	return nil
}

// trade returns the record of a new token.
func (e *exchanger) trade(ctx context.Context, subject access.Subject) (*record, error) {
	at, err := e.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	if e.RequestedTokenType == tokenexchange.IDJAG {
		return e.redeem(ctx, at, subject)
	}
	audience, resource := e.target(e.h.settings.URL)
	token, err := e.request(ctx, at, subject, audience, resource)
	if err != nil {
		return nil, err
	}
	r := &record{Resource: cmp.Or(audience, resource), Issuer: e.Issuer, TokenURL: at.Token, RevokeURL: at.Revocation, ClientID: e.ClientID, Basic: at.basic()}
	e.fill(r, subject, token)
	return r, checkResult(token, subject, audience, resource)
}

// fill adds a new token to a record.
func (e *exchanger) fill(r *record, subject access.Subject, token *oauth2.Token) {
	r.Scopes, r.Since, r.Terms, r.Person = e.h.settings.Scopes, e.h.opts.Now(), e.terms(), person(subject)
	token.RefreshToken = "" // it would outlive the sign-in
	e.h.updateRecord(r, token)
}

// target returns the audience and the resource of the requested token, "" for none.
func (e *exchanger) target(upstream string) (audience, resource string) {
	if e.Audience == "" {
		return "", cmp.Or(e.Resource, upstream)
	}
	return e.Audience, e.Resource
}

// request requests a token in exchange for that of a principal.
func (e *exchanger) request(ctx context.Context, at endpoints, subject access.Subject, audience, resource string) (*oauth2.Token, error) {
	params := url.Values{
		"grant_type": {tokenexchange.GrantType}, "subject_token": {subject.Token}, "subject_token_type": {tokenexchange.URN(subject.Kind)},
		"requested_token_type": {tokenexchange.URN(e.RequestedTokenType)},
	}
	for name, value := range map[string]string{"audience": audience, "resource": resource, "scope": strings.Join(e.h.settings.Scopes, " ")} {
		if value != "" {
			params.Set(name, value)
		}
	}
	token, err := requestToken(ctx, e.route, client{id: e.ClientID, secret: e.Secret(), tokenURL: at.Token, basic: at.basic()}, params)
	if err != nil {
		return nil, withoutToken(err, subject.Token)
	}
	return token, e.checkType(token)
}

// checkType checks that a token is of the requested type. An access token may be a JWT.
func (e *exchanger) checkType(token *oauth2.Token) error {
	issued, _ := token.Extra("issued_token_type").(string)
	if issued == tokenexchange.URN(e.RequestedTokenType) || e.RequestedTokenType != tokenexchange.IDJAG && issued == tokenexchange.URN(tokenexchange.JWT) {
		return nil
	}
	return fmt.Errorf("the identity provider issued a token of another type than %s: %q", tokenexchange.URN(e.RequestedTokenType), sanitize.Line(issued, 100))
}

// withoutToken removes the description from an error that repeats a part of the token that was sent.
func withoutToken(err error, token string) error {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	for _, part := range append(strings.Split(token, "."), token) {
		if len(part) >= shownToken && strings.Contains(e.text, part[:shownToken]) {
			return &refusal{e.code, e.code}
		}
	}
	return e
}

// shownToken is how much of a token an error may show by chance, in bytes.
const shownToken = 8

// checkResult checks an exchanged token, as far as it can be read.
func checkResult(token *oauth2.Token, subject access.Subject, audience, resource string) error {
	if err := checkBearer(token); err != nil {
		return err
	}
	claims, ok := tokenexchange.Decode(token.AccessToken)
	if !ok {
		return nil
	}
	if err := checkPerson(claims, subject); err != nil {
		return err
	}
	wanted := slices.DeleteFunc([]string{audience, resource}, func(s string) bool { return s == "" })
	if len(claims.Audience) > 0 && !claims.For(wanted...) {
		return fmt.Errorf("the identity provider issued a token for another audience: %s, not %s: see auth.exchange.audience", sanitize.Line(strings.Join(claims.Audience, ", "), 200), sanitize.Line(strings.Join(wanted, " or "), 200))
	}
	return nil
}

// checkPerson checks that a token of the same issuer is of the same person.
func checkPerson(claims tokenexchange.Claims, subject access.Subject) error {
	if claims.Issuer == subject.Issuer && claims.Subject != subject.ID {
		return errors.New("the identity provider issued a token of another subject")
	}
	return nil
}

// refused handles a refusal of an exchanged token, or of a request without one.
func (e *exchanger) refused(ctx context.Context, used string, ask challenge) error {
	r, err := e.h.store.read()
	if err != nil {
		return err
	}
	_, present := e.subject()
	switch {
	case e.Login && (!present || isLogin(r)):
		if err := e.h.loginRefused(ctx, used, ask); err == nil || ask.scope || !present {
			return err
		}
	case ask.scope:
		return fmt.Errorf("the exchanged token lacks the scopes %s: request them by auth.scopes", strings.Join(ask.scopes, ", "))
	}
	_, err = e.token(ctx, used)
	return err
}

// status returns the status of a principal that needs no login.
func (e *exchanger) status(r *record) (Status, bool) {
	if e.Login && isLogin(r) {
		return Status{}, false
	}
	subject, present := e.subject()
	if e.made(r, subject) && (r.usable(e.h.opts.Now()) || present) {
		s := r.status()
		s.LoggedIn, s.Renewable, s.Exchanged = true, present, true
		if subject.Seen.After(s.Renewed) {
			s.Renewed = subject.Seen
		}
		return s, true
	}
	stale := r != nil && r.Terms != "" // of another person, by other settings, or expired
	s := Status{Issuer: e.Issuer, Exchanged: present || stale, LoggedIn: present, Since: subject.Seen, Renewed: subject.Seen, Renewable: present}
	return s, present || stale || e.Only()
}
