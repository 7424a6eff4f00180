package names

// class is a list of words.
type class uint8

// The classes of words, as bits.
const (
	givenName class = 1 << iota
	surname
	common // a word as it is written in small letters
	city
	region // a country, a state, a river
	road   // street, avenue, -straße
	title  // Mr, Dr
	proper // another name: of a month, a language, a group
)

const (
	// classes is the number of classes.
	classes = 8
	// listCommon is the number of the list of common words.
	listCommon = 2
)

// filter is a Bloom filter of digests with about 1% false positives.
type filter []byte

const hashes = 5

func (f filter) has(digest uint64) bool {
	n := uint64(len(f)) * 8
	if n == 0 {
		return false
	}
	step := digest>>32 | 1
	for range hashes {
		at := digest % n
		if f[at/8]&(1<<(at%8)) == 0 {
			return false
		}
		digest += step * 0x9e3779b97f4a7c15
	}
	return true
}

func (f filter) add(digest uint64) {
	n := uint64(len(f)) * 8
	step := digest>>32 | 1
	for range hashes {
		at := digest % n
		f[at/8] |= 1 << (at % 8)
		digest += step * 0x9e3779b97f4a7c15
	}
}
