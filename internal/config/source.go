package config

// Source returns the current settings. An *atomic.Pointer[Config] implements it.
type Source interface {
	Load() *Config
}
