package index

// weights are the constants of ranking, found on the even half of the dev sets.
type weights struct {
	// k1 says how fast repetition stops counting.
	k1 float64
	// field is the worth of an occurrence, b how much a field's length counts against it.
	field, b [fieldCount]float64
	// Of a term's own worth: a synonym, two neighbours written as one word, a
	// stop word, a word that is only like the one asked for.
	synonym, joined, stop, fuzzy float64
	// upstream is the worth of the evidence for a tool's upstream beside that for the tool.
	upstream float64
}

func defaultWeights() weights {
	return weights{
		k1:       1.2,
		field:    [fieldCount]float64{fieldName: 3, fieldTitle: 2, fieldUpstream: 2, fieldLead: 1.5, fieldDescription: 1, fieldParam: 1, fieldParamText: 0.5},
		b:        [fieldCount]float64{fieldName: 0.4, fieldTitle: 0.4, fieldUpstream: 0.5, fieldLead: 0.6, fieldDescription: 0.6, fieldParam: 0.6, fieldParamText: 0.6},
		synonym:  0.2,
		joined:   0.5,
		stop:     0.1,
		fuzzy:    0.6,
		upstream: 0.2,
	}
}

// factors returns what one occurrence in field f counts in each document, given the lengths.
func (w weights) factors(f field, lengths []int) []float32 {
	total, have := 0, 0
	for _, n := range lengths {
		total += n
		if n > 0 {
			have++
		}
	}
	average := float64(total) / float64(max(have, 1))
	factors := make([]float32, len(lengths))
	for i, n := range lengths {
		if n > 0 {
			factors[i] = float32(w.field[f] / (1 - w.b[f] + w.b[f]*float64(n)/average))
		}
	}
	return factors
}
