package pii

// Lease returns the start of a range of size numbers that no other process of the principal has used or will use. It
// may write a file; it is called rarely.
type Lease func(principal string, size int) (base int)

const (
	// firstRange is the size of a vault's first range of numbers; each further range is ten times larger.
	firstRange = 100
	mostRange  = 100_000
)

// numbers are the token numbers that a vault may issue. A token in a model's context may be older than the vault
// (after a restart of the gateway, or in another session of the client): it must not denote another value then.
type numbers struct {
	lease  func(size int) (base int)
	ranges []numberRange
}

type numberRange struct{ base, size int }

// nth returns the number of the nth value of a kind, from 1 on.
func (n *numbers) nth(i int) int {
	for at := 0; ; at++ {
		if at == len(n.ranges) {
			n.more()
		}
		r := n.ranges[at]
		if i <= r.size {
			return r.base + i
		}
		i -= r.size
	}
}

func (n *numbers) more() {
	size := firstRange
	if len(n.ranges) > 0 {
		size = min(mostRange, 10*n.ranges[len(n.ranges)-1].size)
	}
	n.ranges = append(n.ranges, numberRange{n.lease(size), size})
}

// place is the inverse of nth; 0 for a number that is not among them.
func (n *numbers) place(number int) int {
	before := 0
	for _, r := range n.ranges {
		if number > r.base && number <= r.base+r.size {
			return before + number - r.base
		}
		before += r.size
	}
	return 0
}
