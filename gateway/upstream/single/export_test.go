package single

// CheckHeld gives up what another gateway runs now, as after a pause of this gateway.
func (r *Runner) CheckHeld() { r.checkHeld(nil) }
