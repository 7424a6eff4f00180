package access

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"sallyport/internal/sanitize"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// namePattern matches the names of tokens.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// TokenSpec describes a token to create.
type TokenSpec struct {
	// Name is unique; the principal of the token is token:NAME.
	Name   string
	Scopes []tool.Scope
	// Lifetime is how long it is valid; 0: until it is revoked.
	Lifetime time.Duration
	// Rate replaces the rate limit of the settings; zero does not.
	Rate Rate
}

// Create creates a token in a place. The returned text is the token, which is not stored.
func Create(ctx context.Context, in Place, w TokenSpec) (text string, made Token, err error) {
	if !namePattern.MatchString(w.Name) {
		return "", Token{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("invalid token name %s", sanitize.Line(fmt.Sprintf("%q", w.Name), 80)), Hint: "a name has a-z, 0-9, dots, dashes and underscores, at most 63, such as ci or grafana-1"}
	}
	if len(w.Scopes) == 0 {
		return "", Token{}, &tool.Error{Kind: tool.Invalid, Message: "a token needs at least one scope", Hint: "for example --scope mcp, or --scope read,execute"}
	}
	now := time.Now().UTC().Truncate(time.Second)
	made = Token{Name: w.Name, Scopes: slices.Clone(w.Scopes), Created: now, Rate: w.Rate}
	if w.Lifetime > 0 {
		expires := now.Add(w.Lifetime)
		made.Expires = &expires
	}
	made.ID, text = newSecret()
	made.Digest = digest(text)
	if in == nil {
		return "", Token{}, errNoPlace
	}
	err = in.edit(ctx, func(all []Token) ([]Token, error) {
		if slices.ContainsFunc(all, func(t Token) bool { return t.Name == w.Name }) {
			return nil, &tool.Error{Kind: tool.Failed, Message: "token " + w.Name + " already exists", Hint: "sallyport token revoke " + w.Name + " revokes it; a new one of that name has its workspaces"}
		}
		if len(all) >= maxTokens {
			return nil, &tool.Error{Kind: tool.Limit, Message: fmt.Sprintf("there are %d tokens already", len(all)), Hint: "sallyport token list shows which are not used"}
		}
		return append(all, made), nil
	})
	return text, made, err
}

// Revoke revokes a token by its name or its id.
func Revoke(ctx context.Context, in Place, name string) error {
	if in == nil {
		return errNoPlace
	}
	return in.edit(ctx, func(all []Token) ([]Token, error) {
		at := slices.IndexFunc(all, func(t Token) bool { return t.Name == name || t.ID == name })
		if at < 0 {
			return nil, &tool.Error{Kind: tool.NotFound, Message: "there is no token " + sanitize.Line(name, 80), Hint: nearName(name, all)}
		}
		return slices.Delete(all, at, at+1), nil
	})
}

func nearName(name string, all []Token) string {
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	if near := suggest.Of(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "list them with sallyport token list"
}

// List returns the tokens of a place, sorted by name.
func List(ctx context.Context, in Place) ([]Token, error) {
	if in == nil {
		return nil, errNoPlace
	}
	if f, ok := in.(*folder); ok { // which has none if they cannot be read
		if _, err := readTokens(f.dir); err != nil {
			return nil, err
		}
	}
	all, err := in.tokens(ctx, true)
	if err != nil {
		return nil, err
	}
	return sorted(all, in.used(ctx)), nil
}

// ParseScopes parses the names of scopes, and drops duplicates.
func ParseScopes(names []string) ([]tool.Scope, error) {
	var all []tool.Scope
	known := tool.Scopes()
	for _, name := range names {
		scope := tool.Scope(name)
		if !slices.Contains(known, scope) {
			return nil, &tool.Error{Kind: tool.Invalid, Message: "unknown scope " + sanitize.Line(name, 60), Hint: scopeHint(name, known)}
		}
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all, nil
}

func scopeHint(name string, known []tool.Scope) string {
	var names []string
	for _, s := range known {
		names = append(names, string(s))
	}
	if near := suggest.Of(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "scopes are " + fmt.Sprint(names)
}
