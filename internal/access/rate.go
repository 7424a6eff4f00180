package access

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is a rate limit of Count per Per; a Count of 0 is no limit.
type Rate struct {
	Count int
	Per   time.Duration
}

// maxCount is the most that a rate can be.
const maxCount = 1_000_000

// ParseRate parses N/s, N/m or N/h; 0 is no limit.
func ParseRate(text string) (Rate, error) {
	if text == "0" {
		return Rate{}, nil
	}
	number, unit, _ := strings.Cut(text, "/")
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	n, err := strconv.Atoi(number)
	if err != nil || per == 0 || n < 1 || n > maxCount {
		return Rate{}, errors.New("a rate is a number a second, minute or hour, such as 600/m; 0 is no limit")
	}
	return Rate{n, per}, nil
}

// String returns the rate in the form of ParseRate.
func (r Rate) String() string {
	switch r.Per {
	case time.Second:
		return fmt.Sprintf("%d/s", r.Count)
	case time.Minute:
		return fmt.Sprintf("%d/m", r.Count)
	case time.Hour:
		return fmt.Sprintf("%d/h", r.Count)
	}
	return "0"
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// MarshalText implements [encoding.TextMarshaler].
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
