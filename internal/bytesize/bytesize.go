// Package bytesize has numbers of bytes with a unit, as settings write them: 512MiB.
package bytesize

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// The units that a size can be written in, besides "B".
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

var sizeText = regexp.MustCompile(`^(-?[0-9]+) ?([A-Za-z]*)$`)

// String returns the size in the largest unit that needs no fraction, as Parse reads it.
func (s Size) String() string {
	for _, name := range []string{"TiB", "GiB", "MiB", "KiB"} {
		if unit := unit(name); s != 0 && s%unit == 0 {
			return strconv.FormatInt(int64(s/unit), 10) + name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// Parse parses a whole number and a unit: B, KiB, MiB, GiB or TiB, as in
// "512MiB". Its error continues a sentence that begins with the name of the setting.
func Parse(text string) (Size, error) {
	parts := sizeText.FindStringSubmatch(text)
	switch {
	case parts == nil:
		return 0, errors.New("is not a size: write a whole number and a unit, like 512MiB")
	case parts[2] == "":
		return 0, fmt.Errorf("has no unit: write %.20sB, %.20[1]sKiB, %.20[1]sMiB or %.20[1]sGiB", text)
	}
	unit := unit(parts[2])
	if unit == 0 {
		return 0, unknownUnit(parts[2])
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) || n < math.MinInt64/int64(unit) {
		return 0, errors.New("is more than can be counted")
	}
	return Size(n) * unit, nil
}

// unit returns the size of a unit, 0 if the name is unknown.
func unit(name string) Size {
	switch name {
	case "B":
		return 1
	case "KiB":
		return KiB
	case "MiB":
		return MiB
	case "GiB":
		return GiB
	case "TiB":
		return TiB
	}
	return 0
}

// unknownUnit returns the error for an unknown unit. For "MB" it suggests "MiB".
func unknownUnit(name string) error {
	if meant := strings.ToUpper(name[:1]) + "iB"; unit(meant) > 0 {
		return fmt.Errorf("has the unknown unit %.10q; did you mean %q?", name, meant)
	}
	return fmt.Errorf("has the unknown unit %.10q; write B, KiB, MiB, GiB or TiB", name)
}
