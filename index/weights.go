package index

// weights are the constants of ranking, found on one half of the dev sets (bench/search/README.md).
type weights struct {
	// k1 says how fast repetition stops counting.
	k1 float64
	// field is the worth of an occurrence, b how much a field's length counts against it, in parts of the average.
	field, b, average [fieldCount]float64
	// Of a term's own worth: a synonym, one that stands in for a word that no
	// document has, two neighbours written as one word, a stop word, a word that
	// is only like the one asked for, a term of the first documents.
	synonym, standIn, joined, stop, fuzzy, feedback float64
	// phrase is what a concept is worth that a phrase of the query means, inPhrase the words of one of several words.
	phrase, inPhrase float64
	// upstream is the worth of the evidence for a tool's upstream relative to that for the tool.
	upstream float64
	// lacking is what a name or a number counts for in what was asked where no document has it, in parts of a rare word.
	lacking float64
	// vector is what a field counts in a document's vector. dense is what a document gains, in parts of the
	// best score, that means just what the query does, denseMissing what it gains in addition where no word matched.
	vector              [fieldCount]float32
	dense, denseMissing float64
	// twin is what is left of a document's lead for each better one of the same name.
	twin float64
	// nameFit is how much a document gains, in parts of its score, when its name and the query are the same words.
	nameFit float64
}

func defaultWeights() weights {
	return weights{
		k1:           1.2,
		average:      averages(),
		field:        [fieldCount]float64{fieldName: 3, fieldTitle: 2, fieldUpstream: 0.5, fieldLead: 2, fieldDescription: 0.7, fieldParam: 1, fieldParamText: 0.5, fieldValue: 0.3, fieldResult: 0.2},
		b:            [fieldCount]float64{fieldName: 0.7, fieldTitle: 0.4, fieldUpstream: 0.5, fieldLead: 0.8, fieldDescription: 0.6, fieldParam: 0.6, fieldParamText: 0.4, fieldValue: 0.4, fieldResult: 0.4},
		synonym:      0.2,
		standIn:      1,
		joined:       0.7,
		stop:         0.1,
		fuzzy:        0.2,
		upstream:     0.3,
		nameFit:      0.15,
		lacking:      0.3,
		twin:         0.6,
		feedback:     0.05,
		phrase:       1,
		inPhrase:     0.5,
		vector:       [fieldCount]float32{fieldName: 2, fieldTitle: 1, fieldLead: 1, fieldUpstream: 0.7},
		dense:        0.45,
		denseMissing: 1.45,
	}
}

// averages are the mean lengths of the fields, in terms, where there is anything
// in them: of the tools of 36 real servers and three public collections. They are
// constants, so that what a tool scores does not change when others come and go.
func averages() [fieldCount]float64 {
	return [fieldCount]float64{fieldName: 6.6, fieldTitle: 5.4, fieldUpstream: 32, fieldLead: 8.2, fieldDescription: 40, fieldParam: 14, fieldParamText: 57, fieldValue: 10, fieldResult: 12}
}

// occurrence returns what one occurrence counts in a field of length terms.
func (w weights) occurrence(f field, length int) float64 {
	return w.field[f] / (1 - w.b[f] + w.b[f]*float64(length)/w.average[f])
}
