package cli

import (
	"cmp"
	"fmt"
	"strings"

	"sallyport/gateway/catalog"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

// ReportMissing prints which upstreams are not available, and which have quarantined tools.
func (a *App) ReportMissing(ups []catalog.Upstream) error {
	var err error
	for _, up := range ups {
		if why := UpstreamProblem(up); why != "" {
			a.Say(why)
			err = Status(ExitFailed)
		}
		if up.Held > 0 {
			a.Say(up.ID + ": " + quarantineNote(up))
		}
	}
	return err
}

func quarantineNote(up catalog.Upstream) string {
	are := "are"
	if up.Held == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s %s quarantined; see `sallyport upstreams review %s`", Count(up.Held, "tool"), are, up.Name)
}

// SelectUpstreams returns the upstream with the name or id only, or all if only is "".
func SelectUpstreams(ups []catalog.Upstream, only string) ([]catalog.Upstream, error) {
	if only == "" {
		return ups, nil
	}
	var ids []string
	for _, up := range ups {
		if up.ID == only || up.Name == only {
			return []catalog.Upstream{up}, nil
		}
		ids = append(ids, up.ID)
	}
	err := &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no upstream %.80q", only), Hint: "there are " + cmp.Or(strings.Join(ids, ", "), "none")}
	if near := suggest.Of(only, ids); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	return nil, err
}
