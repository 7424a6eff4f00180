// Package archtest tests architecture rules that the compiler does not check: which package may import which, which
// packages may use a library, what each direct dependency is for, and that every package has a package comment.
package archtest
