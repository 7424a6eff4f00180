package signin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"

	"sallyport/internal/expr"
)

// addUserinfo adds the claims of the userinfo endpoint to those of a verified ID token, which remain as they are. The answer must
// have the same subject (OpenID Connect Core 1.0, section 5.3.4).
func (p *Provider) addUserinfo(ctx context.Context, at *endpoints, token string, claims map[string]any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.userinfo, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/json")
	answer, err := p.web.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answered %d", answer.StatusCode)
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind == "application/jwt" {
		return errors.New("the provider signs it: register the client for userinfo as application/json")
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	value, err := expr.Decode(body)
	more, ok := value.(map[string]any)
	if err != nil || !ok {
		return errors.New("it is no JSON object")
	}
	if subject, ok := more["sub"].(string); !ok || subject != claims["sub"] {
		return errors.New("it is of another subject")
	}
	maps.Copy(more, claims)
	maps.Copy(claims, more)
	return nil
}
