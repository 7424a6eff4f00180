package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// The functions below read one value each and return it, or what is wrong with it.

func parseDuration(n *yaml.Node) (time.Duration, string) {
	d, err := time.ParseDuration(n.Value)
	switch {
	case err == nil:
		return d, ""
	case n.Tag == "!!int":
		return 0, fmt.Sprintf("has no unit: write %.20ss for seconds", n.Value)
	}
	return 0, "is not a duration: write a number and a unit, like 30s or 1m30s"
}

func parseSize(n *yaml.Node) (Size, string) {
	size, err := ParseSize(n.Value)
	if err != nil {
		return 0, err.Error()
	}
	return size, ""
}

func parseCount(n *yaml.Node) (int, string) {
	count, err := strconv.Atoi(n.Value)
	if err != nil || n.Tag != "!!int" {
		return 0, "is not a whole number in plain digits"
	}
	return count, ""
}

func parseBool(n *yaml.Node) (bool, string) {
	if n.Tag != "!!bool" {
		return false, "must be true or false"
	}
	return strings.EqualFold(n.Value, "true"), ""
}
