package budgets

// Share makes b behave as on a store of several gateways.
func (b *Budgets) Share() { b.shared = true }
