package doctorcmd

import (
	"context"
	"fmt"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/access"
	"sallyport/internal/tool"
)

// checkTokens checks that the tokens can be read.
func (a *app) checkTokens(ctx context.Context) []finding {
	if a.DataDir() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var all []access.Token
	err := cli.UseTokens(ctx, a.App, func(ctx context.Context, in access.Place) (err error) {
		all, err = access.List(ctx, in)
		return err
	})
	if err == nil && len(all) == 0 {
		return nil
	}
	f := finding{}
	f.Name = "tokens"
	if err != nil {
		e := tool.AsError(err)
		f.Detail, f.Fix = e.Message, e.Hint
		return []finding{f}
	}
	f.OK, f.Detail = true, fmt.Sprintf("%d made with sallyport token", len(all))
	return []finding{f}
}
