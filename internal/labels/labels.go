// Package labels has the labels of workers, each KEY=VALUE, by which programs are placed. Its main functions are [Parse] and [Missing].
package labels

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxLabels is the maximum number of labels.
const maxLabels = 16

var (
	keyForm   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	valueForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,63}$`)
)

// Parse reads labels, each KEY=VALUE.
func Parse(texts []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		all[key] = value
	}
	return all, Check(all)
}

// Check returns an error if the labels are invalid.
func Check(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("more than %d labels", maxLabels)
	}
	for key, value := range labels {
		if !keyForm.MatchString(key) || !valueForm.MatchString(value) {
			return fmt.Errorf(`%.80q is not a label: KEY=VALUE, in KEY a small letter, then small letters, digits, "-" and "_", in VALUE letters, digits, ".", "-" and "_"`, key+"="+value)
		}
	}
	return nil
}

// Missing returns which of the wanted labels, each KEY=VALUE, are not among those of a worker.
func Missing(wanted []string, has map[string]string) (missing []string) {
	for _, text := range wanted {
		key, value, _ := strings.Cut(text, "=")
		if got, ok := has[key]; !ok || got != value {
			missing = append(missing, text)
		}
	}
	return slices.Clip(missing)
}
