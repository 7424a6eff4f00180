package natsstream

import (
	"crypto/rand"
	"regexp"
)

// idForm is that of rand.Text.
var idForm = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// NewID returns a random name that can be part of a subject.
func NewID() string { return rand.Text() }

// IsID reports whether s has the form of what [NewID] returns.
func IsID(s string) bool { return idForm.MatchString(s) }
