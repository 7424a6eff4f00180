package doctorcmd

import (
	"fmt"

	"sallyport/internal/access"
	"sallyport/internal/tool"
)

// checkTokens checks that the tokens can be read.
func (a *app) checkTokens() []finding {
	dir := a.DataDir()
	if dir == "" {
		return nil
	}
	all, err := access.List(dir)
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
