package feedback

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"sallyport/internal/tool"
)

const (
	// maxPairs is how many pairs of one principal are stored.
	maxPairs = 2000
	// halfLife is how long it takes for the strength of a pair to halve.
	halfLife = 30 * 24 * time.Hour
	// maxStrength is the maximum strength, forgotten the strength below which a pair is removed.
	maxStrength = 50
	minStrength = 0.05
)

// Pair says how often a tool was called after searches for the same words.
type Pair struct {
	Words Words   `json:"w"`
	Tool  tool.ID `json:"t"`
	// Digest is that of the tool's definition ([tool.Tool.Digest]).
	Digest string `json:"d"`
	// Strength counts the searches after which it was called, as of At, in seconds since
	// 1970; it halves in 30 days.
	Strength float64 `json:"n"`
	At       int64   `json:"a"`
}

// at returns the strength at another second. It never grows, even if the clock is set back.
func (p Pair) at(second int64) float64 {
	return p.Strength * math.Exp2(-float64(max(0, second-p.At))/halfLife.Seconds())
}

func (p Pair) key() string { return p.Words.key() + "\n" + p.Tool.String() + "\n" + p.Digest }

// Pairs has the pairs of one principal, by words, tool and digest.
type Pairs map[string]Pair

// mergePair adds the strengths of two versions of a pair; the words' weights are those of the later one.
func mergePair(a, b Pair) Pair {
	if a.At > b.At {
		a, b = b, a
	}
	b.Strength = min(b.Strength+a.at(b.At), maxStrength)
	return b
}

// Merge adds the pairs in more to k, and removes the weakest beyond the limit.
func (k Pairs) Merge(more Pairs) {
	for key, p := range more {
		if old, ok := k[key]; ok {
			p = mergePair(old, p)
		}
		k[key] = p
	}
	k.prune(maxPairs)
}

// prune removes forgotten pairs, and the weakest ones beyond most.
func (k Pairs) prune(most int) {
	now := time.Now().Unix()
	maps.DeleteFunc(k, func(_ string, p Pair) bool { return p.at(now) < minStrength })
	if len(k) <= most {
		return
	}
	keys := slices.Sorted(maps.Keys(k))
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(k[b].at(now), k[a].at(now)) })
	for _, key := range keys[most:] {
		delete(k, key)
	}
}

var errDamaged = errors.New("invalid pairs")

// MarshalJSON writes a list, sorted by key.
func (k Pairs) MarshalJSON() ([]byte, error) {
	pairs := make([]Pair, 0, len(k))
	for _, key := range slices.Sorted(maps.Keys(k)) {
		pairs = append(pairs, k[key])
	}
	return json.Marshal(pairs)
}

// UnmarshalJSON reads only what MarshalJSON wrote.
func (k *Pairs) UnmarshalJSON(data []byte) error {
	var pairs []Pair
	if err := json.Unmarshal(data, &pairs); err != nil || pairs == nil || len(pairs) > maxPairs {
		return errDamaged
	}
	all := Pairs{}
	for _, p := range pairs {
		if !p.valid() {
			return errDamaged
		}
		all[p.key()] = p
	}
	*k = all
	return nil
}

// valid reports whether a pair is valid. Times in the future are: a machine without a
// clock starts in 1970, and must not lose its pairs because of that.
func (p Pair) valid() bool {
	raw, err := hex.DecodeString(p.Digest)
	return err == nil && len(raw) == 16 && p.Tool != tool.ID{} && len(p.Words) > 0 && len(filterWords(p.Words)) == len(p.Words) &&
		p.Strength > 0 && p.Strength <= maxStrength && p.At >= 0
}
