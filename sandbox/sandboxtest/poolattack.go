package sandboxtest

// onPool are attacks on those who come later, or are made of the same snapshot. More is in apart.go, which runs several at once.
var onPool = []Attack{}
