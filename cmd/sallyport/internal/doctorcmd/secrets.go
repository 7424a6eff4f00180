package doctorcmd

import (
	"fmt"

	"sallyport/internal/config"
	"sallyport/sandbox"
)

// checkSecrets says of each reference to a secret manager whether it could be read, without the value.
func checkSecrets(cfg *config.Config) (found []finding) {
	for _, s := range cfg.ManagedSecrets {
		check := sandbox.Check{Name: "secret ${" + s.Name + "}", OK: s.Problem == "", Detail: fmt.Sprintf("%s:%d:%d: it can be read", cfg.Path, s.Line, s.Column)}
		if s.Problem != "" {
			check.Detail, check.Fix = fmt.Sprintf("%s:%d:%d: %s", cfg.Path, s.Line, s.Column, s.Problem), s.Fix
		}
		found = append(found, finding{Check: check})
	}
	return found
}
