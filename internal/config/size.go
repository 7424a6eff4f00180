package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, never negative in a valid Config.
type Size int64

// The units that a size can be written in.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// String returns the size in the largest unit that needs no fraction, as ParseSize reads it.
func (s Size) String() string {
	for _, u := range units() {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return "0B"
}

// ParseSize reads a whole number and a unit, such as "512MiB" or "100B".
func ParseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "BKMGTikmgtb ")
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("is more than can be counted")
	case err != nil || digits[0] == '+':
		return 0, errors.New("is not a size: write a whole number and a unit, like 512MiB")
	case digits == text:
		return 0, fmt.Errorf("has no unit: write %sB, %sKiB, %sMiB or %sGiB", text, text, text, text)
	}
	unit, err := unitOf(text[len(digits):])
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt64/int64(unit) || n < math.MinInt64/int64(unit) {
		return 0, errors.New("is more than can be counted")
	}
	return Size(n) * unit, nil
}

func unitOf(name string) (Size, error) {
	for _, u := range units() {
		if u.name == name {
			return u.size, nil
		}
	}
	for _, u := range units() {
		if name := strings.TrimSpace(name); strings.EqualFold(strings.TrimRight(u.name, "iB"), strings.TrimRight(name, "iBb")) && name != "" {
			return 0, fmt.Errorf("has a unit that is not known; did you mean %s?", u.name)
		}
	}
	return 0, errors.New("has a unit that is not known: write B, KiB, MiB, GiB or TiB")
}

type unit struct {
	name string
	size Size
}

func units() []unit {
	return []unit{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}
}
