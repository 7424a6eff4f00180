package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Logout revokes the tokens if the server supports that (RFC 7009), and deletes them
// in any case. was reports whether there was a login, revoked whether the server
// revoked the tokens. An error means that the revocation failed, or that the tokens
// could not be deleted.
func (h *Handler) Logout(ctx context.Context) (was, revoked bool, err error) {
	release, err := h.acquire(ctx)
	if err != nil {
		return false, false, err
	}
	defer release()
	r, unread := h.store.read()
	if unread == nil && r == nil {
		return false, false, nil
	}
	if err := h.store.remove(); err != nil {
		return true, false, err
	}
	if unread != nil || r.RevokeURL == "" {
		return true, false, nil
	}
	if err := h.revoke(ctx, r); err != nil {
		return true, false, fmt.Errorf("revoke the tokens of %s, which are forgotten here: %w", h.settings.ID, err)
	}
	return true, true, nil
}

func (h *Handler) revoke(ctx context.Context, r *record) error {
	var errs []error
	if r.Secret.Refresh != "" {
		errs = append(errs, h.revokeOne(ctx, r, r.Secret.Refresh, "refresh_token"))
	}
	if r.Secret.Access != "" {
		errs = append(errs, h.revokeOne(ctx, r, r.Secret.Access, "access_token"))
	}
	return errors.Join(errs...)
}

func (h *Handler) revokeOne(ctx context.Context, r *record, token, hint string) error {
	by := h.route
	if h.exchange.issued(r) {
		by = h.exchange.route
	}
	if err := by.guard.check("revocation endpoint", r.RevokeURL); err != nil {
		return err
	}
	c := h.clientOf(r)
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if !c.basic || c.secret == "" {
		form.Set("client_id", c.id)
		if c.secret != "" {
			form.Set("client_secret", c.secret)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if c.basic && c.secret != "" {
		req.SetBasicAuth(url.QueryEscape(c.id), url.QueryEscape(c.secret))
	}
	resp, err := by.web.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the authorization server answers %d", resp.StatusCode)
	}
	return nil
}
