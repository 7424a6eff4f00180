package config

// Source gives the settings in force. An *atomic.Pointer[Config] is one.
type Source interface {
	Load() *Config
}
