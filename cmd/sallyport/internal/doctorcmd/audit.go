package doctorcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/auditor"
	"sallyport/internal/audit"
	"sallyport/internal/config"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
)

// checkAudit checks that the audit log can be written.
func (a *app) checkAudit(cfg *config.Config) []finding {
	check := sandbox.Check{Name: "audit"}
	dir := a.DataDir()
	switch {
	case cfg.Audit.Off:
		check.OK, check.Warn, check.Detail, check.Fix = true, true, "off: there is no audit record", "remove audit.enabled: false from upstreams.yaml"
		return []finding{{Check: check}}
	case dir == "":
		check.OK, check.Warn, check.Detail, check.Fix = !cfg.Audit.Required, true, "no audit record: there is no data directory", "set HOME or XDG_DATA_HOME, or use --data DIR"
		return []finding{{Check: check}}
	case a.CheckDataVersion() != nil: // as checkRecords reports; nothing is written to it
		return nil
	}
	dir = audit.Dir(dir)
	opts := auditor.LogOptions(cfg)
	opts.Logger = a.Logger(slog.LevelError)
	l, err := audit.Open(dir, &opts)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		check.Detail, check.Fix = sanitize.Line(err.Error(), 300), "nothing runs until it can be written: free disk space, or check the permissions; `sallyport log verify` shows damage"
		return []finding{{Check: check}}
	}
	check.OK, check.Detail = true, dir
	if head, err := audit.HeadOf(dir); err == nil {
		check.Detail = fmt.Sprintf("%s, %d records", dir, head.Seq)
		verifyAudit(&check, dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		check.OK, check.Detail = false, sanitize.Line(err.Error(), 300)
	}
	return append([]finding{{Check: check}}, a.checkSinks(cfg, dir)...)
}

// checkSinks reports sinks that do not accept records.
func (a *app) checkSinks(cfg *config.Config, dir string) (found []finding) {
	if problem := cfg.Audit.Sinks.Problem; problem != "" {
		check := sandbox.Check{Name: "audit sinks", Detail: problem, Fix: "correct it; until then records are sent to no sink"}
		found = append(found, finding{Check: check})
	}
	states, err := audit.States(dir)
	if err != nil {
		return found
	}
	for _, s := range states {
		if !strings.Contains(cfg.Audit.Sinks.String(), s.Name) {
			continue // not in the current settings
		}
		check := sandbox.Check{Name: "audit sink " + sanitize.Line(s.Name, 30), OK: true, Detail: fmt.Sprintf("has record %d", s.Seq)}
		if s.Error != "" {
			check.Warn, check.Fix = true, "missing records are sent later; check its address under audit.sinks"
			check.Detail += ", " + cli.SinkState(s) + ": " + sanitize.Line(s.Error, 200)
		}
		found = append(found, finding{Check: check})
	}
	return found
}
