package pii

// NewVault returns an empty vault that shares no numbers.
func NewVault() *Vault {
	next := 0
	return newVault(maxValues, func(size int) int {
		base := next
		next += size
		return base
	})
}
