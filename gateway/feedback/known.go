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
	// maxPairs is how many pairs of one principal are remembered.
	maxPairs = 2000
	// halfLife is how long a pair takes to count half.
	halfLife = 30 * 24 * time.Hour
	// maxStrength is where counting ends, forgotten what is too little to remember.
	maxStrength = 50
	forgotten   = 0.05
)

// Pair says how often a tool was called after searches for the same words.
type Pair struct {
	Words Words   `json:"w"`
	Tool  tool.ID `json:"t"`
	// Digest is that of the tool's definition ([tool.Tool.Digest]).
	Digest string `json:"d"`
	// Strength counts the searches that it was called after, as it was at the second
	// At (since 1970); it halves in 30 days.
	Strength float64 `json:"n"`
	At       int64   `json:"a"`
}

// at is the strength at another second. It never grows: clocks are set back.
func (p Pair) at(second int64) float64 {
	return p.Strength * math.Exp2(-float64(max(0, second-p.At))/halfLife.Seconds())
}

func (p Pair) key() string { return p.Words.key() + "\n" + p.Tool.String() + "\n" + p.Digest }

// Known are the pairs of one principal, by words, tool and digest.
type Known map[string]Pair

// join adds up two strengths of one pair; the later one has the words' weights.
func join(a, b Pair) Pair {
	if a.At > b.At {
		a, b = b, a
	}
	b.Strength = min(b.Strength+a.at(b.At), maxStrength)
	return b
}

// Join adds what more tells to k, and forgets what is worth least.
func (k Known) Join(more Known) {
	for key, p := range more {
		if old, ok := k[key]; ok {
			p = join(old, p)
		}
		k[key] = p
	}
	k.prune(maxPairs)
}

// prune forgets what is worth nothing any more, and the least beyond the most.
func (k Known) prune(most int) {
	now := time.Now().Unix()
	maps.DeleteFunc(k, func(_ string, p Pair) bool { return p.at(now) < forgotten })
	if len(k) <= most {
		return
	}
	keys := slices.Sorted(maps.Keys(k))
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(k[b].at(now), k[a].at(now)) })
	for _, key := range keys[most:] {
		delete(k, key)
	}
}

var errDamaged = errors.New("it holds no pairs")

// MarshalJSON writes a list, sorted by key.
func (k Known) MarshalJSON() ([]byte, error) {
	pairs := make([]Pair, 0, len(k))
	for _, key := range slices.Sorted(maps.Keys(k)) {
		pairs = append(pairs, k[key])
	}
	return json.Marshal(pairs)
}

// UnmarshalJSON reads only what MarshalJSON wrote.
func (k *Known) UnmarshalJSON(data []byte) error {
	var pairs []Pair
	if err := json.Unmarshal(data, &pairs); err != nil || pairs == nil || len(pairs) > maxPairs {
		return errDamaged
	}
	all := Known{}
	for _, p := range pairs {
		if !p.sound() {
			return errDamaged
		}
		all[p.key()] = p
	}
	*k = all
	return nil
}

// sound does not look for times to come: a machine without a clock starts in 1970,
// and must not forget all because of that.
func (p Pair) sound() bool {
	raw, err := hex.DecodeString(p.Digest)
	return err == nil && len(raw) == 16 && p.Tool != tool.ID{} && len(p.Words) > 0 && len(kept(p.Words)) == len(p.Words) &&
		p.Strength > 0 && p.Strength <= maxStrength && p.At >= 0
}
