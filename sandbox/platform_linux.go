package sandbox

// Platform returns nil if this system can run sandboxes, otherwise an error that says what to do.
func Platform() error { return nil }
