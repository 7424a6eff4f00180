// Package versions checks versions against conditions such as ">=0.40 <1".
package versions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Conditions are conditions that a version must meet; with none, any version does.
type Conditions []condition

// condition is one condition on a version.
type condition struct {
	op      string
	numbers []int
}

// Parse parses conditions that are separated by spaces: an operator (>=, >, <=, < or =) and a version.
func Parse(text string) (all Conditions, err error) {
	for word := range strings.FieldsSeq(text) {
		version := strings.TrimLeft(word, "<>=")
		c := condition{word[:len(word)-len(version)], numbersOf(version)}
		if !slices.Contains([]string{"<", "<=", "=", ">=", ">"}, c.op) || c.numbers == nil {
			return nil, fmt.Errorf(`%.40q is not a condition such as ">=1.2"`, word)
		}
		all = append(all, c)
	}
	return all, nil
}

// Hold reports whether a version meets all conditions. Only the numbers before a "-" or "+" count; missing ones are 0. A version
// without numbers meets no condition.
func (c Conditions) Hold(version string) bool {
	numbers := numbersOf(version)
	return !slices.ContainsFunc(c, func(one condition) bool { return !one.holds(numbers) })
}

// numbersOf returns the numbers of a version such as 1.2.3 or v1.2.3-beta, nil if it has none.
func numbersOf(version string) (numbers []int) {
	version = strings.TrimPrefix(version, "v")
	if end := strings.IndexAny(version, "-+"); end >= 0 {
		version = version[:end]
	}
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		numbers = append(numbers, n)
	}
	return numbers
}

func (c condition) holds(version []int) bool {
	if version == nil {
		return false
	}
	length := max(len(version), len(c.numbers))
	order := slices.Compare(padded(version, length), padded(c.numbers, length))
	switch c.op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0
}

func padded(numbers []int, length int) []int {
	return append(slices.Clone(numbers), make([]int, length-len(numbers))...)
}
