package index

// weights holds the constants of ranking, tuned on one half of the dev sets (bench/search/README.md).
type weights struct {
	// k1 is BM25's term saturation.
	k1 float64
	// field is the weight of an occurrence, b the strength of length normalization, average the mean field length.
	field, b, average [fieldCount]float64
	// Weights relative to a word of the query: of a synonym, of a synonym of a word
	// that no document has, of adjacent words written as one, of a stop word, of a
	// similarly spelt word, of a feedback term.
	synonym, substitute, compound, stop, fuzzy, feedback float64
	// phrase is the weight of a concept of a phrase, inPhrase that of the words of a phrase of several words.
	phrase, inPhrase float64
	// upstream is the weight of the evidence for a tool's upstream.
	upstream float64
	// lacking is the weight in the coverage of a name or number that no document has, relative to a rare word.
	lacking float64
	// vector is the weight of a field in a document's vector. dense is the gain of a document with the same meaning
	// as the query, as a share of the best score, denseMissing the additional gain if no word matches.
	vector              [fieldCount]float32
	dense, denseMissing float64
	// duplicate is the factor on a document's score for each better one of the same name.
	duplicate float64
	// nameFit is the gain, as a share of its score, of a document whose name has the same words as the query.
	nameFit float64
}

func defaultWeights() weights {
	return weights{
		k1:           1.2,
		average:      averages(),
		field:        [fieldCount]float64{fieldName: 3, fieldTitle: 2, fieldUpstream: 0.5, fieldLead: 2, fieldDescription: 0.7, fieldParam: 1, fieldParamText: 0.5, fieldValue: 0.3, fieldResult: 0.2},
		b:            [fieldCount]float64{fieldName: 0.7, fieldTitle: 0.4, fieldUpstream: 0.5, fieldLead: 0.8, fieldDescription: 0.6, fieldParam: 0.6, fieldParamText: 0.4, fieldValue: 0.4, fieldResult: 0.4},
		synonym:      0.2,
		substitute:   1,
		compound:     0.7,
		stop:         0.1,
		fuzzy:        0.2,
		upstream:     0.3,
		nameFit:      0.15,
		lacking:      0.3,
		duplicate:    0.6,
		feedback:     0.05,
		phrase:       1,
		inPhrase:     0.5,
		vector:       [fieldCount]float32{fieldName: 2, fieldTitle: 1, fieldLead: 1, fieldUpstream: 0.7},
		dense:        0.45,
		denseMissing: 1.45,
	}
}

// averages returns the mean lengths of non-empty fields, in terms, measured on the
// tools of 36 real servers and three public collections. They are constants so that
// the score of a tool does not depend on the other tools.
func averages() [fieldCount]float64 {
	return [fieldCount]float64{fieldName: 6.6, fieldTitle: 5.4, fieldUpstream: 32, fieldLead: 8.2, fieldDescription: 40, fieldParam: 14, fieldParamText: 57, fieldValue: 10, fieldResult: 12}
}

// occurrence returns the weight of one occurrence in a field of length terms.
func (w weights) occurrence(f field, length int) float64 {
	return w.field[f] / (1 - w.b[f] + w.b[f]*float64(length)/w.average[f])
}
