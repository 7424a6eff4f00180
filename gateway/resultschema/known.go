package resultschema

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"sallyport/internal/jsontype"
)

const (
	// maxCount is the maximum of Entry.Count.
	maxCount = 1_000_000
	// maxKnown is how many definitions of one upstream are stored.
	maxKnown = 2000
	// remembered is how many days the entry of an unused definition is kept.
	remembered = 90
)

// Entry has the shape of the results of one definition of a tool.
type Entry struct {
	Shape jsontype.Shape `json:"s"`
	// Count is the number of results merged into Shape.
	Count int `json:"n"`
	// Day is when it was last offered or called, in days since 1970.
	Day int `json:"d"`
}

// Known has the entries of one upstream's tools, by the digest of their
// definition ([tool.Tool.Digest]).
type Known map[string]Entry

func today() int { return int(time.Now().Unix() / (24 * 60 * 60)) }

// join merges two entries of different results.
func join(a, b Entry) Entry {
	return Entry{Shape: jsontype.Merge(a.Shape, b.Shape), Count: min(a.Count+b.Count, maxCount), Day: max(a.Day, b.Day)}
}

// Join merges the entries in more into k, and removes old ones.
func (k Known) Join(more Known) {
	for digest, e := range more {
		k[digest] = join(k[digest], e)
	}
	day := today()
	maps.DeleteFunc(k, func(_ string, e Entry) bool { return e.Day < day-remembered })
	for _, digest := range k.newestFirst()[min(len(k), maxKnown):] {
		delete(k, digest)
	}
}

// newestFirst returns the digests, latest day first, sorted within a day.
func (k Known) newestFirst() []string {
	digests := slices.Sorted(maps.Keys(k))
	slices.SortStableFunc(digests, func(a, b string) int { return k[b].Day - k[a].Day })
	return digests
}

var errDamaged = errors.New("invalid shapes")

// UnmarshalJSON rejects what cannot have been written from a Known.
func (k *Known) UnmarshalJSON(data []byte) error {
	var entries map[string]Entry
	if err := json.Unmarshal(data, &entries); err != nil {
		return err
	}
	latest := today() + 2 // clocks differ
	for digest, e := range entries {
		if raw, err := hex.DecodeString(digest); err != nil || len(raw) != 16 || e.Count < 0 || e.Count > maxCount || e.Day < 0 || e.Day > latest {
			return errDamaged
		}
	}
	if len(entries) > maxKnown {
		return errDamaged
	}
	*k = entries
	return nil
}
