// Package archtest holds the rules of the house that a compiler does not check: which package may import which, who owns
// which foreign library, what each direct dependency is for, and that every package says what it is. It has only tests.
package archtest
