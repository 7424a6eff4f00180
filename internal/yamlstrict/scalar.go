package yamlstrict

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// The functions below parse one value each, for [Scalar], and return it or an error text.

// Duration parses a number with a unit, or several of them, as in 1m30s.
func Duration(n *yaml.Node) (time.Duration, string) {
	d, err := time.ParseDuration(n.Value)
	switch {
	case err == nil:
		return d, ""
	case n.Tag == "!!int":
		return 0, fmt.Sprintf("has no unit: write %.20ss for seconds", n.Value)
	}
	return 0, "is not a duration: write a number and a unit, like 30s or 1m30s"
}

// Age parses a duration that may be in days, as in 90d.
func Age(n *yaml.Node) (time.Duration, string) {
	if days, ok := strings.CutSuffix(n.Value, "d"); ok {
		if count, err := strconv.Atoi(days); err == nil && count >= 0 && count <= 36500 {
			return time.Duration(count) * 24 * time.Hour, ""
		}
	}
	age, wrong := Duration(n)
	if wrong != "" && n.Tag != "!!int" {
		wrong = "is not an age: write a number and a unit, like 90d or 12h"
	}
	return age, wrong
}

// Count parses a whole number in plain digits.
func Count(n *yaml.Node) (int, string) {
	count, err := strconv.Atoi(n.Value)
	if err != nil || n.Tag != "!!int" {
		return 0, "is not a whole number in plain digits"
	}
	return count, ""
}

// Bool reads true or false.
func Bool(n *yaml.Node) (bool, string) {
	if n.Tag != "!!bool" {
		return false, "must be true or false"
	}
	return strings.EqualFold(n.Value, "true"), ""
}
