package cli

import (
	"strconv"
	"strings"
	"time"
)

// ParseSpan parses a span of time: a Go duration that is not negative, or days such as 90d, up to 100 years of them.
func ParseSpan(text string) (span time.Duration, ok bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil && n <= 36500 //nolint:gosec // it is at most 36500
	}
	span, err := time.ParseDuration(text)
	return span, err == nil && span >= 0
}
