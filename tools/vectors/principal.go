package main

import "math/rand/v2"

// principal returns the first k principal components of rows by orthogonal iteration. The
// mean of rows must be 0.
func principal(rows [][]float32, k int) [][]float32 {
	spread := covariance(rows)
	random := rand.New(rand.NewPCG(1, 2))
	axes := make([][]float32, k)
	for i := range axes {
		axes[i] = make([]float32, len(spread))
		for j := range axes[i] {
			axes[i][j] = float32(random.NormFloat64())
		}
	}
	for range 40 {
		for i, axis := range axes {
			next := make([]float32, len(axis))
			for j, row := range spread {
				next[j] = dot(row, axis)
			}
			for _, other := range axes[:i] {
				add(next, other, -dot(next, other))
			}
			axes[i] = scale(next, 1/norm(next))
		}
	}
	return axes
}

func covariance(rows [][]float32) [][]float32 {
	spread := make([][]float32, len(rows[0]))
	for i := range spread {
		spread[i] = make([]float32, len(spread))
	}
	for _, row := range rows {
		for i, x := range row {
			add(spread[i], row, x/float32(len(rows)))
		}
	}
	return spread
}
