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
	// maxDefinitions is how many definitions of one upstream are stored.
	maxDefinitions = 2000
	// maxAgeDays is how many days the entry of an unused definition is kept.
	maxAgeDays = 90
)

// Entry has the shape of the results of one definition of a tool.
type Entry struct {
	Shape jsontype.Shape `json:"s"`
	// Count is the number of results merged into Shape.
	Count int `json:"n"`
	// Day is when it was last offered or called, in days since 1970.
	Day int `json:"d"`
}

// Entries has the entries of one upstream's tools, by the digest of their
// definition ([tool.Tool.Digest]).
type Entries map[string]Entry

func today() int { return int(time.Now().Unix() / (24 * 60 * 60)) }

// mergeEntry merges two entries of different results.
func mergeEntry(a, b Entry) Entry {
	return Entry{Shape: jsontype.Merge(a.Shape, b.Shape), Count: min(a.Count+b.Count, maxCount), Day: max(a.Day, b.Day)}
}

// Merge merges the entries in more into k, and removes old ones.
func (k Entries) Merge(more Entries) {
	for digest, e := range more {
		k[digest] = mergeEntry(k[digest], e)
	}
	day := today()
	maps.DeleteFunc(k, func(_ string, e Entry) bool { return e.Day < day-maxAgeDays })
	for _, digest := range k.newestFirst()[min(len(k), maxDefinitions):] {
		delete(k, digest)
	}
}

// newestFirst returns the digests, latest day first, sorted within a day.
func (k Entries) newestFirst() []string {
	digests := slices.Sorted(maps.Keys(k))
	slices.SortStableFunc(digests, func(a, b string) int { return k[b].Day - k[a].Day })
	return digests
}

var errDamaged = errors.New("invalid shapes")

// UnmarshalJSON rejects what cannot have been written from a Known.
func (k *Entries) UnmarshalJSON(data []byte) error {
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
	if len(entries) > maxDefinitions {
		return errDamaged
	}
	*k = entries
	return nil
}
